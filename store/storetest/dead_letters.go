package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// deadLetters are the cases of lists of what nobody wanted (SW-9, SW-10, EV-78, EV-82).
var deadLetters = []Case{
	{Name: "SW-9 letters of another tenant are neither listed, counted, requeued nor purged", Run: lettersApart},
	{Name: "SW-10 walking 2,500 letters: newest first, each once, as many as counted", Run: lettersWalked},
	{Name: "SW-10 what dies and is requeued during a walk", Run: lettersMoving},
	{Name: "SW-7 every part of a filter, alone and together", Run: lettersFiltered},
	{Name: "EV-78 EV-82 erased letters stay listed with their keys", Run: lettersErased},
	{Name: "a page of letters with payloads is bounded in bytes", Run: lettersLarge},
	{Name: "malformed filters and cursors are refused by name", Run: lettersRefused},
}

// Letters is the whole list of dead letters that pass the filter.
func (f *Fix) Letters(filter store.DeadFilter) []store.DeadLetter {
	f.T.Helper()
	var all []store.DeadLetter
	for cursor := ""; ; {
		page := must(f.DeadLetters(ctx, filter, 0, cursor, false))(f.T, "list dead letters")
		all = append(all, page.Letters...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

func letterIDs(letters []store.DeadLetter) []string {
	var ids []string
	for _, l := range letters {
		ids = append(ids, l.ID)
	}
	return ids
}

// Kill makes a new event a dead letter.
func (f *Fix) Kill(e rendezvous.Event) rendezvous.Event {
	f.T.Helper()
	f.Put(e)
	f.H.Advance(time.Microsecond)
	f.Sweep(0)
	f.WantState(e.EventID, rendezvous.EventDead)
	return e
}

// Count is how many letters pass the filter.
func (f *Fix) Count(filter store.DeadFilter) int {
	f.T.Helper()
	return must(f.CountDeadLetters(ctx, filter, 0, false))(f.T, "count dead letters").Count
}

// RequeueAll requeues letters under an op of its own.
func (f *Fix) RequeueAll(ids ...rendezvous.EventID) store.Requeuing {
	f.T.Helper()
	return must(f.RequeueDeadLetters(ctx, store.Selection{Events: ids}, store.Requeue{}, *kim, ID("op"), now))(f.T, "requeue")
}

// PurgeAll purges letters under an op of its own.
func (f *Fix) PurgeAll(ids ...rendezvous.EventID) store.Requeuing {
	f.T.Helper()
	return must(f.PurgeDeadLetters(ctx, store.Selection{Events: ids}, *kim, ID("op"), now))(f.T, "purge")
}

func lettersApart(t *testing.T, h *Harness) {
	two := h.Two(t)
	e := EventOf("paid", K("order", "1"))
	for _, f := range two {
		f.Put(e)
	}
	h.Advance(time.Second)
	two[0].Sweep(0)
	two[0].WantDead(e.EventID, rendezvous.DeadUnclaimed)
	two[1].WantLive(e)
	eq(t, "swept of the other", sweptIDs(two[1].Sweep(0)), []string{e.ID})
	mine := EventOf("paid", K("order", "1"))
	two[0].Kill(mine)
	eq(t, "letters", letterIDs(two[0].Letters(store.DeadFilter{})), []string{mine.ID, e.ID})
	for _, filter := range []store.DeadFilter{{}, {Key: &e.Keys[0]}, {Type: "paid"}, {Reason: rendezvous.DeadUnclaimed}, {Source: "shop"}} {
		eq(t, "letters of the other", letterIDs(two[1].Letters(filter)), []string{e.ID})
		eq(t, "count of the other", two[1].Count(filter), 1)
	}
	eq(t, "requeue across", two[1].RequeueAll(mine.EventID).Items[0].Outcome, store.RequeueNotFound)
	eq(t, "purge across", two[1].PurgeAll(mine.EventID).Items[0].Outcome, store.RequeueNotFound)
	out := must(two[1].PurgeDeadLetters(ctx, store.Selection{Filter: &store.DeadFilter{}, Bound: 500}, *kim, "all", now))(t, "purge all")
	eq(t, "purged", len(out.Items), 1)
	eq(t, "letters after that", len(two[0].Letters(store.DeadFilter{})), 2)
	again := must(two[0].PurgeDeadLetters(ctx, store.Selection{Filter: &store.DeadFilter{}, Bound: 500}, *kim, "all", now))(t, "purge under the same name")
	eq(t, "purged of the first", len(again.Items), 2) // an op is its tenant's
}

func lettersWalked(t *testing.T, h *Harness) {
	const n = 2500
	f, other := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	BufferAll(t, h.Store, EventsOf("acme", 0, n))
	other.PutNew("order.paid")
	h.Advance(time.Second)
	must(h.Store.SweepUnclaimed(ctx, h.Now(t), now, "", 5000))(t, "sweep all")
	for _, filter := range []store.DeadFilter{{}, {Type: "order.paid"}, {Reason: rendezvous.DeadUnclaimed}, {Source: "https://shop.example/orders"}} {
		var ids []string
		cursor, pages := "", 0
		for {
			page := must(f.DeadLetters(ctx, filter, 1000, cursor, false))(t, "list")
			ids = append(ids, letterIDs(page.Letters)...)
			if pages++; page.NextCursor == "" {
				break
			}
			cursor = page.NextCursor
		}
		eq(t, "pages", pages, 3)
		eq(t, "letters", len(ids), n)
		for i, id := range ids {
			eq(t, "letter", id, fmt.Sprintf("event-%06d", n-1-i))
		}
		eq(t, "counted", must(f.CountDeadLetters(ctx, filter, 0, true))(t, "count"), store.DeadCount{
			Count: n, ByReason: map[rendezvous.DeadReason]int{rendezvous.DeadUnclaimed: n},
		})
		for most, capped := range map[int]bool{n - 1: true, n: false, n + 1: false} {
			got := must(f.CountDeadLetters(ctx, filter, most, true))(t, "count up to")
			eq(t, fmt.Sprint("counted up to ", most), got, store.DeadCount{
				Count: min(n, most), Capped: capped, ByReason: map[rendezvous.DeadReason]int{rendezvous.DeadUnclaimed: min(n, most)},
			})
		}
		damaged := []byte(cursor)
		damaged[len(damaged)/2] ^= 1
		for what, list := range map[string]func() error{
			"of another tenant": func() error { _, err := other.DeadLetters(ctx, filter, 0, cursor, false); return err },
			"of another filter": func() error {
				_, err := f.DeadLetters(ctx, store.DeadFilter{Type: "x"}, 0, cursor, false)
				return err
			},
			"damaged":         func() error { _, err := f.DeadLetters(ctx, filter, 0, string(damaged), false); return err },
			"of another verb": func() error { _, err := f.Waiting(ctx, store.WaitFilter{}, 0, cursor); return err },
		} {
			code(t, "a cursor "+what, list(), rendezvous.CodeInvalid, "field", "cursor")
		}
	}
}

// lettersMoving: every letter that was dead when the walk began and still is appears exactly once.
func lettersMoving(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var letters []rendezvous.Event
	for range 6 {
		letters = append(letters, f.Kill(EventOf("paid", K("order", "1"))))
	}
	first := must(f.DeadLetters(ctx, store.DeadFilter{Key: &letters[0].Keys[0]}, 2, "", false))(t, "first page")
	eq(t, "first page", letterIDs(first.Letters), []string{letters[5].ID, letters[4].ID})
	f.RequeueAll(letters[5].EventID, letters[2].EventID)
	f.Kill(EventOf("paid", K("order", "1"))) // sweeps the requeued ones as well: they are dead again, under their old numbers
	f.RequeueAll(letters[3].EventID)
	f.PurgeAll(letters[1].EventID)
	second := must(f.DeadLetters(ctx, store.DeadFilter{Key: &letters[0].Keys[0]}, 0, first.NextCursor, false))(t, "second page")
	eq(t, "second page", letterIDs(second.Letters), []string{letters[2].ID, letters[0].ID})
	eq(t, "end", second.NextCursor, "")
}

func lettersFiltered(t *testing.T, h *Harness) {
	f := h.Fix(t)
	other := func(e rendezvous.Event, change func(e *rendezvous.Event)) rendezvous.Event { change(&e); return e }
	a := f.Kill(EventOf("paid", K("order", "1"), K("customer", "7")))
	h.Advance(time.Minute)
	b := f.Kill(other(EventOf("shipped", K("order", "1")), func(e *rendezvous.Event) { e.Source = "bank" }))
	h.Advance(time.Minute)
	c := f.Kill(other(EventOf("paid", K("order", "2")), func(e *rendezvous.Event) { e.ExpiresAt = h.Now(t) }))
	h.Advance(time.Minute)
	d := f.PutNew("paid")
	h.Advance(time.Hour)
	f.Erase(d.EventID)
	f.PutNew("paid", K("order", "1")) // alive
	received := func(e rendezvous.Event) time.Time { return f.Stored(e.EventID).ReceivedAt }
	dead := func(e rendezvous.Event) time.Time { return f.Stored(e.EventID).DeadAt }
	us := time.Microsecond
	for _, v := range []struct {
		filter store.DeadFilter
		want   []rendezvous.Event
	}{
		{store.DeadFilter{}, []rendezvous.Event{d, c, b, a}},
		{store.DeadFilter{Reason: rendezvous.DeadUnclaimed}, []rendezvous.Event{b, a}},
		{store.DeadFilter{Reason: rendezvous.DeadExpired}, []rendezvous.Event{c}},
		{store.DeadFilter{Reason: rendezvous.DeadErased}, []rendezvous.Event{d}},
		{store.DeadFilter{Reason: rendezvous.DeadWaitWithdrawn}, nil},
		{store.DeadFilter{Type: "paid"}, []rendezvous.Event{d, c, a}},
		{store.DeadFilter{Type: "Paid"}, nil},
		{store.DeadFilter{Source: "bank"}, []rendezvous.Event{b}},
		{store.DeadFilter{Key: &rendezvous.Key{Namespace: "order", Value: "1"}}, []rendezvous.Event{b, a}},
		{store.DeadFilter{Key: &rendezvous.Key{Namespace: "customer", Value: "7"}}, []rendezvous.Event{a}},
		{store.DeadFilter{Key: &rendezvous.Key{Namespace: "order", Value: "7"}}, nil},
		{store.DeadFilter{Key: &rendezvous.Key{Namespace: "order", Value: "1"}, Type: "paid"}, []rendezvous.Event{a}},
		{store.DeadFilter{Type: "paid", Reason: rendezvous.DeadErased}, []rendezvous.Event{d}},
		{store.DeadFilter{Source: "shop", Reason: rendezvous.DeadUnclaimed}, []rendezvous.Event{a}},
		{store.DeadFilter{ReceivedAfter: received(b)}, []rendezvous.Event{d, c, b}},
		{store.DeadFilter{ReceivedAfter: received(b).Add(us)}, []rendezvous.Event{d, c}},
		{store.DeadFilter{ReceivedBefore: received(b)}, []rendezvous.Event{b, a}},
		{store.DeadFilter{ReceivedBefore: received(b).Add(-us)}, []rendezvous.Event{a}},
		{store.DeadFilter{ReceivedAfter: received(b), ReceivedBefore: received(c)}, []rendezvous.Event{c, b}},
		{store.DeadFilter{DeadAfter: dead(d)}, []rendezvous.Event{d}},
		{store.DeadFilter{DeadAfter: dead(d).Add(us)}, nil},
		{store.DeadFilter{DeadBefore: dead(a)}, []rendezvous.Event{a}},
		{store.DeadFilter{DeadBefore: dead(a).Add(-us)}, nil},
		{store.DeadFilter{DeadAfter: dead(a), DeadBefore: dead(c), Type: "paid"}, []rendezvous.Event{c, a}},
	} {
		var want []string
		for _, e := range v.want {
			want = append(want, e.ID)
		}
		eq(t, fmt.Sprintf("letters of %+v", v.filter), letterIDs(f.Letters(v.filter)), want)
		eq(t, fmt.Sprintf("count of %+v", v.filter), f.Count(v.filter), len(want))
		var walked []string // one by one
		for cursor := ""; ; {
			page := must(f.DeadLetters(ctx, v.filter, 1, cursor, false))(t, "list")
			walked = append(walked, letterIDs(page.Letters)...)
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		eq(t, fmt.Sprintf("letters of %+v, one by one", v.filter), walked, want)
	}
}

func lettersErased(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		live := f.PutNew("paid", K("order", "1"))
		dead := f.Kill(EventOf("paid", K("order", "1"), K("customer", "1")))
		f.WantDead(live.EventID, rendezvous.DeadUnclaimed)
		early := EventOf("paid", K("order", "1"))
		f.Put(early)
		f.Erase(early.EventID)
		f.Erase(dead.EventID)
		key := K("order", "1")
		letters := f.Letters(store.DeadFilter{Key: &key})
		eq(t, "letters of the key", letterIDs(letters), []string{early.ID, dead.ID, live.ID})
		eq(t, "erased", []bool{letters[0].Erased, letters[1].Erased, letters[2].Erased}, []bool{true, true, false})
		eq(t, "reasons", []rendezvous.DeadReason{letters[0].Reason, letters[1].Reason}, []rendezvous.DeadReason{rendezvous.DeadErased, rendezvous.DeadUnclaimed})
		eq(t, "keys", letters[1].Keys, dead.Keys)
		page := must(f.DeadLetters(ctx, store.DeadFilter{}, 0, "", true))(t, "list")
		eq(t, "payload of an erased letter", page.Letters[1].HasPayload, false)
		SamePayload(t, page.Letters[1].Payload, nil)
		eq(t, "requeue of an erased letter", f.RequeueAll(dead.EventID).Items[0].Outcome, store.RequeueErased)
		eq(t, "purge of an erased letter", f.PurgeAll(dead.EventID).Items[0].Outcome, store.RequeuePurged)
		again := f.Put(dead)
		eq(t, "replay", []any{again.Outcome, again.State}, []any{store.BufferDuplicate, rendezvous.EventDead})
	}
}

func lettersLarge(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const n = 18
	want := map[string][]byte{}
	for i := range n {
		e := EventOf("paid", K("order", "1"))
		e.Payload = bytes.Repeat([]byte{byte(i)}, rendezvous.MaxPayload)
		want[e.ID] = e.Payload
		f.Put(e)
	}
	h.Advance(time.Second)
	f.Sweep(0)
	seen, pages := 0, 0
	for cursor := ""; ; pages++ {
		page := must(f.DeadLetters(ctx, store.DeadFilter{}, 0, cursor, true))(t, "list with payloads")
		size := 0
		for _, l := range page.Letters {
			SamePayload(t, l.Payload, want[l.ID])
			size += len(l.Payload)
			seen++
		}
		if size > rendezvous.MaxCollectBytes {
			t.Fatalf("a page of %d bytes", size)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	eq(t, "letters and further pages", []int{seen, pages}, []int{n, 1})
}

func lettersRefused(t *testing.T, h *Harness) {
	f := h.Fix(t)
	early := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for field, filter := range map[string]store.DeadFilter{
		"reason":          {Reason: "lost"},
		"type":            {Type: "a\x00"},
		"source":          {Source: "\xff"},
		"keys[0].value":   {Key: &rendezvous.Key{Namespace: "order"}},
		"received_before": {ReceivedAfter: early.Add(time.Microsecond), ReceivedBefore: early},
		"dead_before":     {DeadAfter: early.Add(time.Hour), DeadBefore: early},
		"received_after":  {ReceivedAfter: time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC)}, // in whole microseconds it is past the end
		"dead_after":      {DeadAfter: time.Date(10_001, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := f.DeadLetters(ctx, filter, 0, "", false)
		code(t, "list", err, rendezvous.CodeInvalid, "field", field)
		_, err = f.CountDeadLetters(ctx, filter, 0, false)
		code(t, "count", err, rendezvous.CodeInvalid, "field", field)
		_, err = f.PurgeDeadLetters(ctx, store.Selection{Filter: &filter, Bound: 1}, *kim, "op", now)
		code(t, "purge", err, rendezvous.CodeInvalid, "field", field)
	}
	_, err := f.CountDeadLetters(ctx, store.DeadFilter{}, -1, false)
	code(t, "count to less than nothing", err, rendezvous.CodeInvalid, "field", "cap")
	_, err = f.DeadLetters(ctx, store.DeadFilter{}, 1001, "", false)
	code(t, "a page over the limit", err, rendezvous.CodeTooLarge, "limit", 1000, "value", 1001)
	_, err = f.DeadLetters(ctx, store.DeadFilter{}, 0, "x", false)
	code(t, "no cursor", err, rendezvous.CodeInvalid, "field", "cursor")
}

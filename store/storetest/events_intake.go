package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// eventsIntake is events.md section 10, "Identity and intake". Conflicts are in events_conflicts.go, limits in events_limits.go.
var eventsIntake = []Case{
	{Name: "EV-1 one pair twice with equal content is one event", Run: onePairTwice},
	{Name: "EV-2 pairs that read alike when joined are never one identity", Run: pairsReadAlike},
	{Name: "EV-3 an equal pair with other content is a conflict, and the first stands", Run: otherContent},
	{Name: "EV-4 an equal pair with other order, time, trace or expiry is a duplicate", Run: sameContent},
	{Name: "EV-5 a conflict is found after delivery, death and erasure", Run: conflictLater},
	{Name: "EV-6 of 50 concurrent buffers of one pair exactly one is new", Run: concurrentBuffers},
	{Name: "EV-7 a batch holding one pair twice, outcomes in input order", Run: pairTwiceInBatch},
	{Name: "EV-8 of 500 items one over a limit fails alone and leaves no trace", Run: oneOverLimit},
	{Name: "EV-9 every limit: at it accepted, one beyond refused", Run: everyLimit},
	{Name: "EV-9 a batch of none, and one of more than 500, is refused", Run: batchLimits},
	{Name: "EV-9 an own expiry lies at most 30 days ahead, and may be past", Run: expiryLimit},
	{Name: "EV-9 an instant outside years 1..9999 is refused by every verb that takes one", Run: instantsOutside},
	{Name: "EV-10 payloads come back bit for bit through buffer, claim, record and dead letter", Run: payloadsWhole},
	{Name: "EV-11 what only the plane may send is refused from outside", Run: reservedNames},
	{Name: "EV-12 with the store away nothing is acknowledged; the retry is new", Run: storeAway},
	{Name: "EV-13 a lost commit answer, repeated: one row either way", Run: lostAnswer},
	{Name: "EV-14 who minted an event is kept through claim, shedding and erasure", Run: minted},
	{Name: "EV-14 half a pair of a minter is corrupt", Run: halfMinter},
	{Name: "EV-15 a crash between buffer and notice is repaired by the producer's retry", Run: crashBeforeNotice},
	{Name: "EV-16 the retry of a consumed or dead event says where it went", Run: retryOfFinished},
	{Name: "EV-17 a handle says which tenant it serves", Run: handleNames},
}

func onePairTwice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := EventOf("paid", K("order", "1"))
	first, second := f.Put(e), f.Put(e)
	eq(t, "first outcome", first.Outcome, store.BufferNew)
	if first.Number < 1 {
		t.Fatalf("number %d of a new event", first.Number)
	}
	eq(t, "second outcome", second.Outcome, store.BufferDuplicate)
	eq(t, "state of the duplicate", second.State, rendezvous.EventLive)
	for _, b := range []store.Buffered{first, second} { // the caller offers it after both
		eq(t, "events to offer", len(b.Notices.Events), 1)
		eq(t, "event to offer", b.Notices.Events[0].EventID, e.EventID)
	}
	stored := f.Stored(e.EventID)
	eq(t, "stored number", stored.Number, first.Number)
	eq(t, "stored event", stored.Event, e)
	eq(t, "live events", must(h.Store.Depths(ctx))(t, "depths").LiveEvents, 1)
}

func pairsReadAlike(t *testing.T, h *Harness) {
	f := h.Fix(t)
	pairs := []rendezvous.EventID{
		{Source: "a", ID: "1"},
		{Source: "b", ID: "1"},
		{Source: "a", ID: "b/c"},
		{Source: "a/b", ID: "c"},
		{Source: "a:b", ID: "c"},
		{Source: "a", ID: "b:c"},
		{Source: "a b", ID: "c"},
		{Source: "a", ID: "b c"},
		{Source: "a|b", ID: "c"},
		{Source: "a", ID: "b|c"},
		{Source: "ab", ID: "c"},
		{Source: "a", ID: "bc"},
		{Source: "A", ID: "1"},
		{Source: "a", ID: " 1"},
		{Source: "a", ID: "1 "}, // equality is bytes (R4)
		{Source: "é", ID: "1"},
		{Source: "e\u0301", ID: "1"},
	}
	numbers := map[int64]bool{}
	for _, id := range pairs {
		e := EventOf("paid")
		e.EventID = id
		b := f.Put(e)
		eq(t, fmt.Sprintf("outcome of %q", id), b.Outcome, store.BufferNew)
		numbers[b.Number] = true
	}
	eq(t, "numbers", len(numbers), len(pairs))
	for _, id := range pairs {
		eq(t, "stored identity", f.Stored(id).EventID, id)
	}
}

func concurrentBuffers(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		e := EventOf("paid", K("order", "1"))
		const callers = 50
		outcomes, errs := make([]store.Buffered, callers), make([]error, callers)
		fns := make([]func(), callers)
		for i := range fns {
			fns[i] = func() { outcomes[i], errs[i] = f.Buffer(ctx, e, now) }
		}
		Race(t, fns...)
		fresh := 0
		for i, o := range outcomes {
			done(t, "buffer", errs[i])
			if o.Outcome == store.BufferNew {
				fresh++
				eq(t, "number", o.Number, f.Stored(e.EventID).Number)
			}
		}
		eq(t, "new ones", fresh, 1)
	}
}

func pairTwiceInBatch(t *testing.T, h *Harness) {
	f, other := h.Fix(t), h.FixOf(t, "globex")
	known := f.PutNew("paid")
	a, b := EventOf("paid", K("order", "a")), EventOf("paid", K("order", "b"))
	changed := a
	changed.Payload = []byte("other")
	items := []store.BufferItem{
		{Tenant: f.Name(), Event: b},
		{Tenant: f.Name(), Event: a},
		{Tenant: f.Name(), Event: known},
		{Tenant: f.Name(), Event: a},
		{Tenant: f.Name(), Event: changed},
		{Tenant: other.Name(), Event: changed},
	}
	out := must(h.Store.BufferBatch(ctx, items, now))(t, "buffer a batch")
	var got []string
	for _, o := range out {
		got = append(got, string(o.Outcome)+string(rendezvous.CodeOf(o.Err)))
	}
	eq(t, "outcomes", got, []string{"new", "new", "duplicate", "duplicate", "conflict", "new"})
	code(t, "the conflict", out[4].Err, rendezvous.CodeConflict, "what", "content")
	if out[1].Number <= out[0].Number || out[5].Number <= out[1].Number {
		t.Fatalf("numbers %d, %d, %d do not rise in input order", out[0].Number, out[1].Number, out[5].Number)
	}
	eq(t, "stored event", f.Stored(a.EventID).Event, a)
	eq(t, "stored event of the other tenant", other.Stored(a.EventID).Event, changed)
	for i, o := range out[:4] {
		eq(t, fmt.Sprintf("event to offer of item %d", i), o.Notices.Events[0].EventID, items[i].Event.EventID)
	}
}

func oneOverLimit(t *testing.T, h *Harness) {
	f := h.Fix(t)
	items := make([]store.BufferItem, rendezvous.MaxBatchItems)
	for i := range items {
		items[i] = store.BufferItem{Tenant: f.Name(), Event: EventOf("paid", K("order", fmt.Sprint(i)))}
	}
	items[123].Event.Payload = make([]byte, rendezvous.MaxPayload+1)
	out := must(h.Store.BufferBatch(ctx, items, now))(t, "buffer a batch")
	last := int64(0)
	for i, o := range out {
		if i == 123 {
			code(t, "the item over the limit", o.Err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxPayload, "value", rendezvous.MaxPayload+1)
			continue
		}
		done(t, fmt.Sprintf("item %d", i), o.Err)
		eq(t, fmt.Sprintf("outcome of item %d", i), o.Outcome, store.BufferNew)
		if o.Number <= last {
			t.Fatalf("number %d of item %d is not above %d", o.Number, i, last)
		}
		last = o.Number
	}
	_, err := f.LookupEvent(ctx, items[123].Event.EventID, false)
	code(t, "look up the refused event", err, rendezvous.CodeNotFound)
	eq(t, "live events", must(h.Store.Depths(ctx))(t, "depths").LiveEvents, len(items)-1)
}

func payloadsWhole(t *testing.T, h *Harness) {
	f := h.Fix(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	payloads := map[string][]byte{
		"none": nil, "empty": {}, "null": []byte("null"), "array": []byte(`[1, 2 ,3]`), "object": []byte("{\"b\":1,\n \"a\":2}"), "NUL": []byte("\x00"),
		"every byte": every, "1 MiB": bytes.Repeat(every, rendezvous.MaxPayload/len(every)),
	}
	for name, payload := range payloads {
		e := EventOf("paid", K("payload", name))
		e.Payload, e.ContentType = payload, "application/octet-stream"
		f.Put(e)
		stored := f.Stored(e.EventID)
		SamePayload(t, stored.Payload, payload)
		eq(t, "content type", stored.ContentType, e.ContentType)
		eq(t, "has payload", stored.HasPayload, payload != nil)

		r := f.Start()
		must(f.Subscribe(ctx, store.Registration{Wait: r.Wait("paid", "paid", K("payload", name))}, now))(t, "subscribe")
		claim := must(f.ClaimFor(ctx, r.WaitID("paid"), now))(t, "claim")
		SamePayload(t, claim.Event.Payload, payload)
		must(h.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: f.Name(), WaitID: r.WaitID("paid")}}, now))(t, "deliver")
		r.WantAnswer("paid", e)

		r.Conclude(rendezvous.StatusCompleted)
		letter := e
		letter.ID = ID("event")
		must(f.DeliverTo(ctx, r.ID, letter, true, now))(t, "deliver to a concluded run")
		f.WantDead(letter.EventID, rendezvous.DeadAddresseeConcluded)
		SamePayload(t, f.Stored(letter.EventID).Payload, payload)
	}
}

func reservedNames(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	kind, source := EventOf("rendezvous.cancel"), EventOf("paid")
	source.Source = "rendezvous:operator"
	for field, e := range map[string]rendezvous.Event{"type": kind, "source": source} {
		_, err := f.Buffer(ctx, e, now)
		code(t, "buffer", err, rendezvous.CodeInvalid, "field", field)
		_, err = f.DeliverTo(ctx, r.ID, e, true, now)
		code(t, "deliver to", err, rendezvous.CodeInvalid, "field", field)
		_, err = f.LookupEvent(ctx, e.EventID, false)
		code(t, "look up", err, rendezvous.CodeNotFound)
		e.MintedBy = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAuthenticated}
		eq(t, "outcome when the plane minted it", f.Put(e).Outcome, store.BufferNew)
	}
}

func storeAway(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := EventOf("paid")
	away := h.Faults.Arm(fault.Failure{Point: fault.AtCall, Call: 1, Times: -1})
	_, err := f.Buffer(ctx, e, now)
	code(t, "buffer", err, rendezvous.CodeUnavailable)
	_, err = f.LookupEvent(ctx, e.EventID, false)
	code(t, "look up", err, rendezvous.CodeUnavailable)
	away.Disarm()
	_, err = f.LookupEvent(ctx, e.EventID, false)
	code(t, "look up", err, rendezvous.CodeNotFound)
	eq(t, "outcome of the retry", f.Put(e).Outcome, store.BufferNew)
}

func lostAnswer(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, c := range []struct {
		point fault.Point
		code  rendezvous.Code
		again store.BufferOutcome
	}{
		{fault.AfterCommit, rendezvous.CodeCommitUnknown, store.BufferDuplicate},
		{fault.BeforeCommit, rendezvous.CodeUnavailable, store.BufferNew},
	} {
		e := EventOf("paid")
		h.Faults.Arm(fault.Failure{Verb: "buffer_batch", Point: c.point})
		_, err := f.Buffer(ctx, e, now)
		code(t, "buffer", err, c.code)
		eq(t, "outcome of the repeat", f.Put(e).Outcome, c.again)
		f.WantState(e.EventID, rendezvous.EventLive)
	}
	eq(t, "live events", must(h.Store.Depths(ctx))(t, "depths").LiveEvents, 2)
}

func minted(t *testing.T, h *Harness) {
	f := h.Fix(t)
	kim := &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	mint := func(order string) rendezvous.Event {
		e := EventOf("paid", K("order", order))
		e.Source, e.MintedBy = "rendezvous:operator", kim
		f.Put(e)
		return e
	}
	wantMinter := func(what string, id rendezvous.EventID, want *rendezvous.Operator) {
		t.Helper()
		eq(t, "minter "+what, must(f.Minter(ctx, id))(t, "ask the minter"), want)
	}
	e := mint("1")
	wantMinter("of a live event", e.EventID, kim)
	r := f.Start()
	must(f.Subscribe(ctx, store.Registration{Wait: r.Wait("paid", "paid", K("order", "1"))}, now))(t, "subscribe")
	claim := must(f.ClaimFor(ctx, r.WaitID("paid"), now))(t, "claim")
	eq(t, "minter of the claimed event", claim.Event.MintedBy, kim)
	must(h.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: f.Name(), WaitID: r.WaitID("paid")}}, now))(t, "deliver")
	f.WantState(e.EventID, rendezvous.EventConsumed)
	wantMinter("after shedding", e.EventID, kim)

	erased := mint("2")
	must(f.ErasePayload(ctx, erased.EventID, nil, now))(t, "erase")
	wantMinter("after erasure", erased.EventID, kim)
	wantMinter("of a wire event", f.PutNew("paid").EventID, nil)
	_, err := f.Minter(ctx, rendezvous.EventID{Source: "shop", ID: "never"})
	code(t, "minter of an unknown event", err, rendezvous.CodeNotFound)
}

func halfMinter(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := EventOf("paid")
	e.MintedBy = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	f.Put(e)
	sound := f.PutNew("paid")
	done(t, "damage the minter", h.Damage.Minter(f.Name(), e.EventID))
	_, err := f.Minter(ctx, e.EventID)
	code(t, "minter of half a pair", err, rendezvous.CodeCorrupt)
	eq(t, "minter of another event", must(f.Minter(ctx, sound.EventID))(t, "ask the minter"), nil)
}

func crashBeforeNotice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("paid", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "1")) // and the door dies here
	retry := f.Put(e)
	eq(t, "outcome of the retry", retry.Outcome, store.BufferDuplicate)
	eq(t, "state", retry.State, rendezvous.EventLive)
	h.Offer(t, retry.Notices)
	r.WantAnswer("paid", e)

	leased := f.Start()
	d := leased.Drive()
	d.Waits("paid", "paid", K("order", "2"))
	e = EventOf("paid", K("order", "2"))
	f.Send(e)
	d.Release()
	leased.WantAnswer("paid", e)
}

func retryOfFinished(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("paid", "paid", K("order", "1"))
	e := EventOf("paid", K("order", "1"))
	f.Send(e)
	rec := r.WantAnswer("paid", e)
	again := f.Put(e)
	eq(t, "outcome", again.Outcome, store.BufferDuplicate)
	eq(t, "place", again.Place, store.Place{
		State: rendezvous.EventConsumed, WorkflowID: r.WorkflowID, RunID: r.ID, Effect: "paid", Seq: rec.Seq,
	})
	eq(t, "events to offer", len(again.Notices.Events), 0)
	h.Offer(t, again.Notices)
	r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)

	dead := f.PutNew("paid", K("order", "2"))
	must(f.ErasePayload(ctx, dead.EventID, nil, now))(t, "erase")
	r.Waits("again", "paid", K("order", "2"))
	again = f.Put(dead)
	eq(t, "outcome", again.Outcome, store.BufferDuplicate)
	eq(t, "events to offer", len(again.Notices.Events), 0)
	eq(t, "offer of a dead event", f.OfferEvent(dead.EventID).Outcome, store.OfferDead)
	f.WantDead(dead.EventID, rendezvous.DeadErased)
	if r.Answer("again") != nil {
		t.Fatal("a dead event answered a wait")
	}
}

func handleNames(t *testing.T, h *Harness) {
	for _, name := range []string{"acme", "globex", rendezvous.DefaultTenant} {
		eq(t, "name", h.FixOf(t, name).Name(), name)
	}
	for _, name := range []string{"", "a.b", "match"} {
		_, err := h.Store.Tenant(name)
		code(t, fmt.Sprintf("handle of %q", name), err, rendezvous.CodeInvalid)
	}
}

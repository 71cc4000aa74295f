package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// deadRequeueing are the cases of letters that an operator brings back or drops for good (SW-11..SW-14, SW-20, EV-82).
var deadRequeueing = []Case{
	{Name: "SW-11 a requeued letter is live with its old number and a fresh window", Run: requeueing},
	{Name: "SW-11 the same op again is answered as the first, and done once", Run: requeueingAgain},
	{Name: "SW-11 EV-82 a filter's requeue: lowest number first, bounded, repeatable", Run: requeueingFiltered},
	{Name: "SW-12 each item has its own outcome, the rest is done", Run: requeueingOutcomes},
	{Name: "SW-13 letters of a concluded run go where `to` says", Run: requeueingTargeted},
	{Name: "SW-13 a run's fill of kept events is its limit for requeues too", Run: requeueingKept},
	{Name: "SW-13 a requeue against the run's conclusion leaves nothing alive for it", Run: requeueingAgainstConclusion},
	{Name: "SW-11 two requeues at once under one op bring a letter back once", Run: requeueingAtOnce},
	{Name: "SW-14 a purged letter is gone from lists and counts, and known for ever", Run: purging},
	{Name: "SW-20 a requeue whose notice is lost is met by the unmet pass", Run: requeueingUnnoticed},
	{Name: "SW-11 SW-14 requeue and purge at any step are done or not done", Run: requeueingOrNot},
	{Name: "limits of selections are refused by name", Run: requeueingLimits},
}

func requeueing(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		e := EventOf("paid", K("order", "1"), K("customer", "2"))
		e.Payload = []byte("\x00\xffbytes")
		number := f.Put(e).Number
		younger := f.PutNew("paid", K("order", "1"))
		h.Advance(time.Hour)
		must(f.SweepUnclaimed(ctx, h.Now(t), now, "too old", 1))(t, "sweep")
		f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
		h.Advance(time.Hour)
		out := must(f.RequeueDeadLetters(ctx, store.Selection{Events: []rendezvous.EventID{e.EventID}}, store.Requeue{}, *kim, "op-1", now))(t, "requeue")
		eq(t, "outcome", out.Items, []store.Requeued{{EventID: e.EventID, Outcome: store.RequeueRequeued, Number: number}})
		eq(t, "events to offer", len(out.Notices.Events), 1)
		s := f.Stored(e.EventID)
		eq(t, "stored", []any{s.State, s.Number, s.LiveSince, s.Requeues, s.DeadAt, s.Op, s.OpBy}, []any{
			rendezvous.EventLive, number, h.Now(t), 1, time.Time{}, "op-1", kim,
		})
		eq(t, "its last death stays readable", []any{s.LastReason, s.Detail}, []any{rendezvous.DeadUnclaimed, "too old"})
		eq(t, "letters", len(f.Letters(store.DeadFilter{})), 0)
		eq(t, "count", f.Count(store.DeadFilter{Key: &e.Keys[1]}), 0)
		again := f.Put(e)
		eq(t, "the producer's retry", []any{again.Outcome, again.State}, []any{store.BufferDuplicate, rendezvous.EventLive})
		eq(t, "swept within the fresh window", sweptIDs(f.Sweep(time.Hour)), []string{younger.ID})
		f.RequeueAll(younger.EventID)
		r := f.Start() // the old number is first in line
		eq(t, "registering", r.Register(r.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterAnswered)
		r.WantAnswered("w", e)
		waiting := f.Start()
		h.Advance(time.Microsecond)
		f.Sweep(0)
		waiting.Waits("w", "paid", K("order", "1"))
		back := f.RequeueAll(younger.EventID)
		h.Offer(t, back.Notices)
		waiting.WantAnswered("w", younger)
		eq(t, "requeues", f.Stored(younger.EventID).Requeues, 2)
	}
}

func requeueingAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := f.Kill(EventOf("paid", K("order", "1")))
	again := func() store.Requeuing {
		t.Helper()
		return must(f.RequeueDeadLetters(ctx, store.Selection{Events: []rendezvous.EventID{e.EventID, e.EventID}}, store.Requeue{}, *kim, "op-1", now))(t, "requeue")
	}
	first := again()
	eq(t, "outcomes of one letter named twice", []store.RequeueOutcome{first.Items[0].Outcome, first.Items[1].Outcome},
		[]store.RequeueOutcome{store.RequeueRequeued, store.RequeueRequeued})
	stored := f.Stored(e.EventID)
	eq(t, "requeues", stored.Requeues, 1)
	h.Advance(time.Minute)
	eq(t, "answer of the repeat", again().Items, first.Items)
	eq(t, "stored after the repeat", f.Stored(e.EventID), stored)
	f.Sweep(0)
	dead := f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
	eq(t, "answer after its next death", again().Items, first.Items)
	eq(t, "stored after that", f.Stored(e.EventID), dead) // it is not brought back by a late repeat
	other := f.RequeueAll(e.EventID)
	eq(t, "outcome under another op", other.Items[0].Outcome, store.RequeueRequeued)
	eq(t, "requeues", f.Stored(e.EventID).Requeues, 2)
}

func requeueingFiltered(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	var letters []rendezvous.Event
	for i := range 7 {
		e := EventOf("paid", key)
		if i == 5 {
			e.Type = "shipped"
		}
		letters = append(letters, f.Kill(e))
	}
	f.Erase(letters[0].EventID) // stays, and hides nothing behind it
	sel := store.Selection{Filter: &store.DeadFilter{Key: &key, Type: "paid"}, Bound: 3}
	requeue := func(sel store.Selection, op string) store.Requeuing {
		t.Helper()
		return must(f.RequeueDeadLetters(ctx, sel, store.Requeue{}, *kim, op, now))(t, "requeue")
	}
	ids := func(r store.Requeuing) (all []string) {
		for _, x := range r.Items {
			all = append(all, x.ID+" "+string(x.Outcome))
		}
		return all
	}
	first := requeue(sel, "op-1")
	eq(t, "first page", ids(first), []string{letters[0].ID + " erased", letters[1].ID + " requeued", letters[2].ID + " requeued"})
	eq(t, "more", []bool{first.More, first.NextCursor != ""}, []bool{true, true})
	again := requeue(sel, "op-1")
	eq(t, "the same op again", ids(again), []string{letters[1].ID + " requeued", letters[2].ID + " requeued"})
	eq(t, "more of it", []bool{again.More, again.NextCursor != ""}, []bool{true, true})
	f.WantDead(letters[3].EventID, rendezvous.DeadUnclaimed)
	sel.Cursor = first.NextCursor
	second := requeue(sel, "op-2")
	eq(t, "second page", ids(second), []string{letters[3].ID + " requeued", letters[4].ID + " requeued", letters[6].ID + " requeued"})
	eq(t, "end", []any{second.More, second.NextCursor}, []any{false, ""})
	f.WantDead(letters[5].EventID, rendezvous.DeadUnclaimed)
	eq(t, "letters", letterIDs(f.Letters(store.DeadFilter{})), []string{letters[5].ID, letters[0].ID})

	purge := func(op string) store.Requeuing {
		t.Helper()
		return must(f.PurgeDeadLetters(ctx, store.Selection{Filter: &store.DeadFilter{Key: &key}, Bound: 1}, *kim, op, now))(t, "purge")
	}
	eq(t, "purge", ids(purge("p-1")), []string{letters[0].ID + " purged"})
	eq(t, "purge again", ids(purge("p-1")), []string{letters[0].ID + " purged"})
	eq(t, "next purge", ids(purge("p-2")), []string{letters[5].ID + " purged"})
	eq(t, "last purge", purge("p-3"), store.Requeuing{})
	for _, v := range []struct {
		what string
		sel  store.Selection
	}{
		{"a cursor of another filter", store.Selection{Filter: &store.DeadFilter{}, Bound: 3, Cursor: first.NextCursor}},
		{"no cursor", store.Selection{Filter: sel.Filter, Bound: 3, Cursor: "x"}},
	} {
		_, err := f.RequeueDeadLetters(ctx, v.sel, store.Requeue{}, *kim, "op", now)
		code(t, v.what, err, rendezvous.CodeInvalid, "field", "cursor")
	}
	_, err := f.PurgeDeadLetters(ctx, store.Selection{Filter: sel.Filter, Bound: 3, Cursor: first.NextCursor}, *kim, "op", now)
	code(t, "a cursor of another verb", err, rendezvous.CodeInvalid, "field", "cursor")
	_, err = h.FixOf(t, "globex").RequeueDeadLetters(ctx, sel, store.Requeue{}, *kim, "op", now)
	code(t, "a cursor of another tenant", err, rendezvous.CodeInvalid, "field", "cursor")
}

func requeueingOutcomes(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		live := EventOf("paid", K("order", "live"))
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
		consumed := EventOf("paid", K("order", "1"))
		f.Send(consumed)
		erased, purged, good := f.Kill(EventOf("paid")), f.Kill(EventOf("paid")), f.Kill(EventOf("paid"))
		f.Erase(erased.EventID)
		f.PurgeAll(purged.EventID)
		old := EventOf("paid")
		old.ExpiresAt = h.Now(t).Add(time.Second)
		f.Put(old)
		h.Advance(time.Second)
		f.Sweep(time.Hour)
		f.Put(live)
		held := f.Start().Drive().Parked("held")
		unknown := rendezvous.EventID{Source: "shop", ID: "unknown"}
		ids := []rendezvous.EventID{live.EventID, consumed.EventID, held.EventID, erased.EventID, purged.EventID, old.EventID, unknown, good.EventID}
		out := must(f.RequeueDeadLetters(ctx, store.Selection{Events: ids}, store.Requeue{}, *kim, "op-1", now))(t, "requeue")
		var outcomes []store.RequeueOutcome
		for i, x := range out.Items {
			eq(t, "identity", x.EventID, ids[i])
			eq(t, "error", x.Err, nil)
			outcomes = append(outcomes, x.Outcome)
		}
		eq(t, "outcomes", outcomes, []store.RequeueOutcome{
			store.RequeueNotDead, store.RequeueNotDead, store.RequeueNotDead, store.RequeueErased, store.RequeuePurged, store.RequeueExpired, store.RequeueNotFound,
			store.RequeueRequeued,
		})
		eq(t, "where the consumed one is", out.Items[1].Place, f.Stored(consumed.EventID).Place)
		eq(t, "where the held one is", out.Items[2].State, rendezvous.EventClaimed)
		f.WantLive(good, live)
		f.WantDead(old.EventID, rendezvous.DeadExpired)

		ahead := h.Now(t).Add(time.Hour)
		out = must(f.RequeueDeadLetters(ctx, store.Selection{Events: []rendezvous.EventID{old.EventID}}, store.Requeue{ExpiresAt: ahead}, *kim, "op-2", now))(t, "requeue")
		eq(t, "outcome with a new expiry", out.Items[0].Outcome, store.RequeueRequeued)
		eq(t, "its expiry", f.Stored(old.EventID).ExpiresAt, ahead)
		eq(t, "swept before it", f.Sweep(30*time.Minute).Retired, nil)
		h.Advance(time.Hour)
		eq(t, "swept at it", sweptIDs(f.Sweep(24*time.Hour)), []string{old.ID})

		outp := f.PurgeAll(live.EventID, unknown, good.EventID, old.EventID, erased.EventID)
		var purges []store.RequeueOutcome
		for _, x := range outp.Items {
			purges = append(purges, x.Outcome)
		}
		eq(t, "outcomes of a purge", purges, []store.RequeueOutcome{
			store.RequeueNotDead, store.RequeueNotFound, store.RequeueNotDead, store.RequeuePurged, store.RequeuePurged,
		})
	}
}

func requeueingTargeted(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		key := K("order", ID("order"))
		first := f.Start()
		e, second, third := EventOf("paid", key), EventOf("paid", key), EventOf("paid", key)
		for _, x := range []rendezvous.Event{e, second, third} {
			first.Kept(x)
		}
		next := first.Continue() // ends the first run
		for _, x := range []rendezvous.Event{e, second, third} {
			f.WantDead(x.EventID, rendezvous.DeadAddresseeConcluded)
		}
		out := f.RequeueAll(e.EventID)
		eq(t, "outcome for the concluded run", []any{out.Items[0].Outcome, out.Items[0].CurrentRun}, []any{store.RequeueAddresseeConcluded, next.ID})
		f.WantDead(e.EventID, rendezvous.DeadAddresseeConcluded)
		to := func(to string, e rendezvous.Event) store.Requeuing {
			t.Helper()
			sel := store.Selection{Events: []rendezvous.EventID{e.EventID}}
			return must(f.RequeueDeadLetters(ctx, sel, store.Requeue{To: to}, *kim, ID("op"), now))(t, "requeue to "+to)
		}
		eq(t, "outcome to the concluded run by name", to(first.ID, e).Items[0].Outcome, store.RequeueAddresseeConcluded)

		stranger := f.Start()
		stranger.Waits("w", "paid", key)
		next.Waits("w", "paid", key)
		h.Offer(t, to(next.ID, e).Notices)
		next.WantAnswered("w", e)
		stranger.WantOpen("w")
		h.Offer(t, to(store.RequeueBroadcast, second).Notices)
		stranger.WantAnswered("w", second)
		eq(t, "addressee", f.Stored(third.EventID).Target, first.ID)
		sel := store.Selection{Events: []rendezvous.EventID{third.EventID}}
		_, err := f.RequeueDeadLetters(ctx, sel, store.Requeue{To: "nowhere"}, *kim, "op", now)
		code(t, "requeue to an unknown run", err, rendezvous.CodeNotFound, "run", "nowhere")

		never := EventOf("paid", key) // kept for a run that was not started: as it was
		must(f.DeliverTo(ctx, "later"+f.Name(), never, true, now))(t, "keep")
		h.Advance(time.Second)
		f.Sweep(0)
		eq(t, "outcome for a run not started", f.RequeueAll(never.EventID).Items[0].Outcome, store.RequeueRequeued)
		late := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: "later" + f.Name(), Type: "order"})
		eq(t, "its registration", late.Register(late.Wait("w", "paid", key)).Outcome, store.RegisterAnswered)
		late.WantAnswered("w", never)
	}
}

func requeueingKept(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	var letters []rendezvous.EventID
	for _, n := range []int{2, rendezvous.MaxKeptPerRun - 1} {
		for from := 0; from < n; from += batchSize {
			var items []store.DeliverItem
			for range min(batchSize, n-from) {
				items = append(items, store.DeliverItem{Tenant: f.Name(), RunID: r.ID, Event: EventOf("paid"), Keep: true})
			}
			for i, d := range must(h.Store.DeliverToBatch(ctx, items, now))(t, "keep") {
				eq(t, "outcome", d.Outcome, store.DeliveryKept)
				if n == 2 {
					letters = append(letters, items[i].Event.EventID)
				}
			}
		}
		if n == 2 {
			h.Advance(time.Second)
			f.Sweep(0)
		}
	}
	out := f.RequeueAll(letters...)
	eq(t, "the last that fits", out.Items[0].Outcome, store.RequeueRequeued)
	code(t, "one too many", out.Items[1].Err, rendezvous.CodeRateLimited, "run", r.ID, "limit", rendezvous.MaxKeptPerRun)
	f.WantDead(letters[1], rendezvous.DeadUnclaimed)
}

func requeueingAgainstConclusion(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		e := EventOf("paid", K("order", r.ID))
		r.Kept(e)
		h.Advance(time.Microsecond)
		f.Sweep(0)
		end := r.Conclusion(rendezvous.StatusCompleted)
		var out store.Requeuing
		var requeueErr, endErr error
		Race(t,
			func() {
				out, requeueErr = f.RequeueDeadLetters(ctx, store.Selection{Events: []rendezvous.EventID{e.EventID}}, store.Requeue{}, *kim, ID("op"), now)
			},
			func() { _, endErr = f.Conclude(ctx, end, now) },
		)
		done(t, "requeue", requeueErr)
		done(t, "conclude", endErr)
		stored := f.WantState(e.EventID, rendezvous.EventDead)
		switch out.Items[0].Outcome {
		case store.RequeueRequeued: // and then it died with the run
			eq(t, "reason", stored.Reason, rendezvous.DeadAddresseeConcluded)
		case store.RequeueAddresseeConcluded:
			eq(t, "reason", stored.Reason, rendezvous.DeadUnclaimed)
		default:
			t.Fatalf("outcome %q", out.Items[0].Outcome)
		}
	}
}

func requeueingAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		e := f.Kill(EventOf("paid", K("order", ID("order"))))
		op := ID("op")
		outs, errs := make([]store.Requeuing, 3), make([]error, 3)
		work := func(i int, op string) func() {
			return func() {
				outs[i], errs[i] = f.RequeueDeadLetters(ctx, store.Selection{Events: []rendezvous.EventID{e.EventID}}, store.Requeue{}, *kim, op, now)
			}
		}
		Race(t, work(0, op), work(1, op), work(2, ID("op")))
		tally := map[store.RequeueOutcome]int{}
		for i := range outs {
			done(t, "requeue", errs[i])
			tally[outs[i].Items[0].Outcome]++
		}
		eq(t, "requeues", f.Stored(e.EventID).Requeues, 1)
		if n := tally[store.RequeueRequeued]; n == 0 || n+tally[store.RequeueNotDead] != 3 {
			t.Fatalf("outcomes %v", tally)
		}
		f.WantLive(e)
		h.Advance(time.Microsecond)
		f.Sweep(0)
	}
}

func purging(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		e := EventOf("paid", K("order", "1"), K("customer", "1"))
		e.MintedBy, e.Source = &rendezvous.Operator{Actor: "ada", Basis: rendezvous.BasisAsserted}, "rendezvous:operator"
		other := f.Kill(EventOf("paid", K("order", "1")))
		f.Kill(e)
		eq(t, "outcome", f.PurgeAll(e.EventID).Items[0].Outcome, store.RequeuePurged)
		for _, filter := range []store.DeadFilter{{}, {Type: "paid"}, {Key: &e.Keys[0]}, {Reason: rendezvous.DeadUnclaimed}} {
			eq(t, "letters", letterIDs(f.Letters(filter)), []string{other.ID})
			eq(t, "count", f.Count(filter), 1)
		}
		s := f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
		eq(t, "stored", []any{s.Purged, s.HasPayload, len(s.Keys), s.Type, s.OpBy}, []any{true, false, 0, "paid", kim})
		SamePayload(t, s.Payload, nil)
		again := f.Put(e)
		eq(t, "replay", []any{again.Outcome, again.State, again.Reason}, []any{store.BufferDuplicate, rendezvous.EventDead, rendezvous.DeadUnclaimed})
		for what, change := range map[string]func(x *rendezvous.Event){
			"type":    func(x *rendezvous.Event) { x.Type = "shipped" },
			"content": func(x *rendezvous.Event) { x.Payload = []byte("other") },
		} {
			x := e
			change(&x)
			_, err := f.Buffer(ctx, x, now)
			code(t, "replay with other "+what, err, rendezvous.CodeConflict, "what", what, "state", "dead")
			_, err = f.DeliverTo(ctx, f.Start().ID, x, false, now)
			code(t, "delivery with other "+what, err, rendezvous.CodeConflict, "what", what)
		}
		x := e
		x.Keys = e.Keys[:1] // which keys it had is not known any more
		_, err := f.Buffer(ctx, x, now)
		code(t, "replay with other keys", err, rendezvous.CodeConflict, "what", "content")
		eq(t, "minter", must(f.Minter(ctx, e.EventID))(t, "ask the minter"), e.MintedBy)
		eq(t, "purge again", f.PurgeAll(e.EventID).Items[0].Outcome, store.RequeuePurged)
		eq(t, "requeue", f.RequeueAll(e.EventID).Items[0].Outcome, store.RequeuePurged)
		eq(t, "swept", f.Sweep(0), store.Swept{})
		f.Erase(e.EventID) // of what was purged, the digest can still go
		again = f.Put(x)
		eq(t, "replay after erasure", again.Outcome, store.BufferDuplicate)
	}
}

func requeueingUnnoticed(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := f.Kill(EventOf("paid", K("order", "1")))
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	h.SweepUnmet(t)
	r.WantOpen("w")
	f.RequeueAll(e.EventID) // nobody offers it
	h.SweepUnmet(t)
	r.WantAnswered("w", e)
}

func requeueingOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "requeue_dead_letters", func() (func() error, func(error, bool)) {
		r := f.Start()
		e := EventOf("paid", K("order", r.ID))
		r.Kept(e)
		h.Advance(time.Microsecond)
		f.Sweep(0)
		sel, op := store.Selection{Events: []rendezvous.EventID{e.EventID}}, ID("op")
		requeue := func() error { _, err := f.RequeueDeadLetters(ctx, sel, store.Requeue{}, *kim, op, now); return err }
		return requeue, func(_ error, committed bool) {
			if committed {
				r.WantKept(e)
			} else {
				f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
			}
			done(t, "requeue again", requeue())
			r.WantKept(e)
			eq(t, "requeues", f.Stored(e.EventID).Requeues, 1)
		}
	})
	h.Break(t, "purge_dead_letters", func() (func() error, func(error, bool)) {
		key := K("order", ID("order"))
		e := f.Kill(EventOf("paid", key))
		sel, op := store.Selection{Filter: &store.DeadFilter{Key: &key}, Bound: 5}, ID("op")
		purge := func() error { _, err := f.PurgeDeadLetters(ctx, sel, *kim, op, now); return err }
		return purge, func(_ error, committed bool) {
			eq(t, "purged", f.Stored(e.EventID).Purged, committed)
			done(t, "purge again", purge())
			eq(t, "purged", f.Stored(e.EventID).Purged, true)
			eq(t, "letters", f.Letters(store.DeadFilter{Key: &key}), nil)
		}
	})
}

func requeueingLimits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	one := []rendezvous.EventID{{Source: "shop", ID: "1"}}
	many := make([]rendezvous.EventID, rendezvous.MaxBatchItems+1)
	for i := range many {
		many[i] = rendezvous.EventID{Source: "shop", ID: fmt.Sprint(i)}
	}
	filter := &store.DeadFilter{}
	for _, v := range []struct {
		what  string
		sel   store.Selection
		code  rendezvous.Code
		field string
	}{
		{"nothing", store.Selection{}, rendezvous.CodeInvalid, "events"},
		{"both", store.Selection{Events: one, Filter: filter, Bound: 1}, rendezvous.CodeInvalid, "events"},
		{"too many", store.Selection{Events: many}, rendezvous.CodeTooLarge, "events"},
		{"no bound", store.Selection{Filter: filter}, rendezvous.CodeInvalid, "bound"},
		{"a negative bound", store.Selection{Filter: filter, Bound: -1}, rendezvous.CodeInvalid, "bound"},
		{"a bound over the limit", store.Selection{Filter: filter, Bound: 501}, rendezvous.CodeTooLarge, "bound"},
		{"a bound beside identities", store.Selection{Events: one, Bound: 1}, rendezvous.CodeInvalid, "bound"},
		{"a cursor beside identities", store.Selection{Events: one, Cursor: "x"}, rendezvous.CodeInvalid, "cursor"},
		{"a malformed identity", store.Selection{Events: []rendezvous.EventID{{ID: "1"}}}, rendezvous.CodeInvalid, "source"},
	} {
		_, err := f.RequeueDeadLetters(ctx, v.sel, store.Requeue{}, *kim, "op", now)
		code(t, "requeue of "+v.what, err, v.code, "field", v.field)
		_, err = f.PurgeDeadLetters(ctx, v.sel, *kim, "op", now)
		code(t, "purge of "+v.what, err, v.code, "field", v.field)
	}
	sel := store.Selection{Events: one}
	for field, call := range map[string]func() error{
		"operator.actor": func() error {
			_, err := f.RequeueDeadLetters(ctx, sel, store.Requeue{}, rendezvous.Operator{}, "op", now)
			return err
		},
		"operator.basis": func() error {
			_, err := f.PurgeDeadLetters(ctx, sel, rendezvous.Operator{Actor: "kim", Basis: "x"}, "op", now)
			return err
		},
		"op": func() error { _, err := f.RequeueDeadLetters(ctx, sel, store.Requeue{}, *kim, "", now); return err },
		"to": func() error {
			_, err := f.RequeueDeadLetters(ctx, sel, store.Requeue{To: "a\x00"}, *kim, "op", now)
			return err
		},
		"expires_at": func() error {
			_, err := f.RequeueDeadLetters(ctx, sel, store.Requeue{ExpiresAt: h.Now(t)}, *kim, "op", now)
			return err
		},
	} {
		code(t, "without a good "+field, call(), rendezvous.CodeInvalid, "field", field)
	}
	far := h.Now(t).Add((rendezvous.MaxExpiryDays*24 + 1) * time.Hour)
	_, err := f.RequeueDeadLetters(ctx, sel, store.Requeue{ExpiresAt: far}, *kim, "op", now)
	code(t, "an expiry too far ahead", err, rendezvous.CodeInvalid, "field", "expires_at", "limit_days", rendezvous.MaxExpiryDays)
	_, err = f.PurgeDeadLetters(ctx, sel, *kim, strings.Repeat("x", rendezvous.MaxID+1), now)
	code(t, "an op over the limit", err, rendezvous.CodeTooLarge, "field", "op", "limit", rendezvous.MaxID)
}

package storetest

import (
	"fmt"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// eventsTargeted are the cases of events for one run (EV-45..EV-54, EV-85).
var eventsTargeted = []Case{
	{Name: "EV-45 the named run gets it though another's wait is older", Run: namedRunFirst},
	{Name: "EV-46 delivering again: matched again, then duplicate", Run: deliveringAgain},
	{Name: "EV-46 delivering again after a lost reply", Run: lostReplyOfDelivering},
	{Name: "EV-47 not waiting leaves no trace", Run: notWaiting},
	{Name: "EV-48 of several waits of the run the lowest takes it", Run: lowestOfTheRun},
	{Name: "EV-49 a buffered event is taken over, or left as it was", Run: takingOver},
	{Name: "EV-50 a targeted claim is its wait's, the older event the next one's", Run: targetedClaim},
	{Name: "EV-51 sealed and unknown runs are told, a retry is a duplicate", Run: deliveringToSealed},
	{Name: "EV-52 a kept event is its run's alone", Run: keptEvent},
	{Name: "EV-52 kept events are taken in number order, and a thousand at most", Run: keptInOrder},
	{Name: "EV-53 delivering against the conclusion is told or dead", Run: deliveringAgainstConclusion},
	{Name: "EV-54 what a concluded run never answered is dead", Run: targetedAtConcluded},
	{Name: "EV-85 kept for an unknown run, whose start answers", Run: keptForUnknown},
	{Name: "EV-52 EV-85 kept while its run starts and ends: dead", Run: keptForShortLived},
}

// Keep gives an event to the run, to be kept when nothing fits.
func (r *Flow) Keep(e rendezvous.Event) store.Delivery {
	r.F.T.Helper()
	return must(r.F.DeliverTo(ctx, r.ID, e, true, now))(r.F.T, "deliver "+e.ID+" to "+r.ID+" to keep")
}

// Kept gives an event to the run and fails the test unless it is kept, live and the run's.
func (r *Flow) Kept(e rendezvous.Event) store.Delivery {
	r.F.T.Helper()
	d := r.Keep(e)
	eq(r.F.T, "outcome of keeping "+e.ID, d.Outcome, store.DeliveryKept)
	r.WantKept(e)
	eq(r.F.T, "number answered", d.Number, r.F.Stored(e.EventID).Number)
	eq(r.F.T, "events to offer", len(d.Notices.Events), 1)
	eq(r.F.T, "event to offer", d.Notices.Events[0].EventID, e.EventID)
	return d
}

// WantKept fails the test unless the event is live, whole, and the run's.
func (r *Flow) WantKept(e rendezvous.Event) {
	r.F.T.Helper()
	stored := r.F.WantState(e.EventID, rendezvous.EventLive)
	eq(r.F.T, "addressee of "+e.ID, stored.Target, r.ID)
	SamePayload(r.F.T, stored.Payload, e.Payload)
}

func namedRunFirst(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		older, named := f.Start(), f.Start()
		older.Waits("w", "paid", K("order", "1"), K("customer", "2"))
		named.Waits("w", "paid", K("order", "1"))
		e := EventOf("paid", K("customer", "2"), K("order", "1"))
		d := named.Targeted("w", e)
		eq(t, "matched before", d.Again, false)
		eq(t, "number answered", d.Number, f.Stored(e.EventID).Number)
		eq(t, "addressee", f.Stored(e.EventID).Target, named.ID)
		named.WantParked("w", e)
		named.WantKinds(rendezvous.WaitRegistered)
		older.WantNothing("w")
		named.Redelivered("w")
		named.WantAnswered("w", e)
		older.WantOpen("w")
		older.Conclude(rendezvous.StatusCompleted)
	}
}

func deliveringAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, keep := range []bool{false, true} {
		r := f.Start()
		key := K("order", r.ID)
		r.Waits("w", "paid", key)
		e := EventOf("paid", key)
		r.Targeted("w", e)
		for range 2 {
			again := must(f.DeliverTo(ctx, r.ID, e, keep, now))(t, "deliver again")
			eq(t, "outcome while the claim stands", again.Outcome, store.DeliveryMatched)
			eq(t, "again", again.Again, true)
			eq(t, "wait", rendezvous.WaitID{RunID: again.RunID, Effect: again.Effect}, r.WaitID("w"))
		}
		other := e
		other.Payload = []byte("other")
		_, err := f.DeliverTo(ctx, r.ID, other, keep, now)
		code(t, "deliver other content", err, rendezvous.CodeConflict, "state", "claimed")
		stranger := f.Start()
		stranger.Waits("w", "paid", key)
		d := must(f.DeliverTo(ctx, stranger.ID, e, keep, now))(t, "deliver to another run")
		eq(t, "outcome for another run", d.Outcome, store.DeliveryDuplicate)
		eq(t, "place told to another run", d.Place, store.Place{State: rendezvous.EventClaimed, RunID: r.ID, Effect: "w"})
		stranger.WantOpen("w")
		r.Redelivered("w")
		rec := r.WantAnswered("w", e)
		r.Waits("w2", "paid", key) // also if it waits again on the key
		for range 2 {
			d := must(f.DeliverTo(ctx, r.ID, e, keep, now))(t, "deliver after the answer")
			eq(t, "outcome after the answer", d.Outcome, store.DeliveryDuplicate)
			eq(t, "place", d.Place, store.Place{State: rendezvous.EventConsumed, WorkflowID: r.WorkflowID, RunID: r.ID, Effect: "w", Seq: rec.Seq})
		}
		_, err = f.DeliverTo(ctx, r.ID, other, keep, now)
		code(t, "deliver other content after the answer", err, rendezvous.CodeConflict)
		r.WantOpen("w2")
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered, rendezvous.WaitRegistered)
	}
}

func lostReplyOfDelivering(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "deliver_to_batch", func() (func() error, func(error, bool)) {
		r := f.Start()
		r.Waits("w", "paid", K("order", r.ID))
		e := EventOf("paid", K("order", r.ID))
		deliver := func() error { _, err := f.DeliverTo(ctx, r.ID, e, false, now); return err }
		return deliver, func(_ error, committed bool) {
			if !committed {
				f.Absent(e.EventID)
				r.WantOpen("w")
			}
			d := must(f.DeliverTo(ctx, r.ID, e, false, now))(t, "deliver again")
			eq(t, "outcome of the repeat", []any{d.Outcome, d.Again}, []any{store.DeliveryMatched, committed})
			r.WantParked("w", e)
			r.Redelivered("w")
			r.WantAnswered("w", e)
		}
	})
	r := f.Start()
	e := EventOf("paid", K("order", r.ID))
	h.Faults.Arm(fault.Failure{Verb: "deliver_to_batch", Point: fault.AfterCommit})
	_, err := f.DeliverTo(ctx, r.ID, e, true, now)
	code(t, "keep with a lost reply", err, rendezvous.CodeCommitUnknown)
	number := f.Stored(e.EventID).Number
	eq(t, "number of the event kept again", r.Kept(e).Number, number)
}

func notWaiting(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	why := func(want string, e rendezvous.Event) {
		t.Helper()
		out := must(f.DeliverTo(ctx, r.ID, e, false, now))(t, "deliver")
		eq(t, "outcome", out.Outcome, store.DeliveryNotWaiting)
		eq(t, "reason", out.Why, want)
		f.Absent(e.EventID)
	}
	why("no_wait", EventOf("paid", K("order", "1")))
	w := r.Wait("w", "paid", K("order", "1"))
	w.From = "shop"
	d.Register(w)
	why("other_type", EventOf("refunded", K("order", "1")))
	why("no_shared_key", EventOf("paid", K("order", "2")))
	strange := EventOf("paid", K("order", "1"))
	strange.Source = "bank"
	why("other_source", strange)
	late := EventOf("paid", K("order", "1"))
	late.ExpiresAt = h.Now(t)
	why("event_expired", late)
	held := EventOf("paid", K("order", "1"))
	r.Targeted("w", held)
	refused := EventOf("paid", K("order", "1"))
	why("wait_parked", refused)

	over := f.Start()
	over.lapses("w", "paid", K("order", "1"))
	out := must(f.DeliverTo(ctx, over.ID, EventOf("paid", K("order", "1")), false, now))(t, "deliver behind the deadline")
	eq(t, "reason behind the deadline", []any{out.Outcome, out.Why}, []any{store.DeliveryNotWaiting, "arrived_late"})

	other := f.Start() // the same event can then be buffered as new, and is anybody's
	other.Waits("w", "paid", K("order", "1"))
	eq(t, "outcome of buffering it", f.Put(refused).Outcome, store.BufferNew)
	f.OfferEvent(refused.EventID)
	other.WantAnswered("w", refused)
	r.WantParked("w", held)
}

func lowestOfTheRun(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		effects := []string{"z", "m", "a", "y"}
		for i, effect := range effects {
			r.Waits(effect, "paid", K("order", "1"), K("n", fmt.Sprint(i)))
		}
		for i, effect := range effects {
			e := EventOf("paid", K("n", fmt.Sprint(len(effects)-1)), K("order", "1")) // shares more with the highest
			if i%2 == 1 {
				e.Keys = nil // a side without keys does not restrict
			}
			r.Targeted(effect, e)
			r.Redelivered(effect)
			r.WantAnswered(effect, e)
		}
		eq(t, "rows left", r.Rows(), nil)
	}
}

func takingOver(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, other := f.Start(), f.Start()
	e := f.PutNew("paid", K("order", "1"))
	out := must(f.DeliverTo(ctx, r.ID, e, false, now))(t, "deliver a buffered event")
	eq(t, "outcome without a wait", out.Outcome, store.DeliveryNotWaiting)
	f.WantLive(e)
	eq(t, "outcome of a later broadcast wait", other.Register(other.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterAnswered)
	other.WantAnswered("w", e)

	e = f.PutNew("paid", K("order", "2"))
	number := f.Stored(e.EventID).Number
	r.Subscribes("w", "paid", K("order", "2"))
	other.Subscribes("w2", "paid", K("order", "2"))
	d := r.Targeted("w", e)
	eq(t, "number of the event taken over", d.Number, number)
	eq(t, "addressee", f.Stored(e.EventID).Target, r.ID)
	other.WantNothing("w2")
	r.WantClaim("w", e, true)
	r.Redelivered("w")
	r.WantAnswered("w", e)

	other = f.Start() // kept: what was anybody's is the run's from then on
	e = f.PutNew("paid", K("order", "3"))
	number = f.Stored(e.EventID).Number
	eq(t, "number of the event kept", r.Kept(e).Number, number)
	other.Subscribes("w", "paid", K("order", "3"))
	other.WantNothing("w")
	eq(t, "offer of the wait of another run", f.OfferWait(other.WaitID("w")).Outcome, store.OfferNoEvent)
	eq(t, "outcome of the named run", r.Register(r.Wait("w3", "paid", K("order", "3"))).Outcome, store.RegisterAnswered)
	r.WantAnswered("w3", e)
}

func targetedClaim(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
		older := f.PutNew("paid", K("order", "1"))
		e := EventOf("paid", K("order", "1"))
		r.Targeted("w", e) // its sender named the run, so the older event stays for the next
		f.WantLive(older)
		r.WantClaim("w", e, true)
		r.WantClaim("w", e, true)
		r.Redelivered("w")
		r.WantAnswered("w", e)
		next := f.Start()
		eq(t, "outcome of the next wait", next.Register(next.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterAnswered)
		next.WantAnswered("w", older)
	}
}

func deliveringToSealed(t *testing.T, h *Harness) {
	f := h.Fix(t)
	ended := []struct {
		what string
		end  func(r *Flow) (details []any)
	}{
		{"completed", func(r *Flow) []any { r.Conclude(rendezvous.StatusCompleted); return []any{"outcome", "completed"} }},
		{"failed", func(r *Flow) []any { r.Conclude(rendezvous.StatusFailed); return []any{"outcome", "failed"} }},
		{"continued", func(r *Flow) []any { return []any{"outcome", "continued_as_new", "next_run", r.Continue().ID} }},
	}
	for _, end := range ended {
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
		before := EventOf("paid", K("order", "1"))
		r.Targeted("w", before)
		r.Redelivered("w")
		r.WantAnswered("w", before)
		details := end.end(r)
		e := EventOf("paid", K("order", "1"))
		r.refuses("deliver to a run that "+end.what, rendezvous.CodeSealed, func() error { _, err := f.DeliverTo(ctx, r.ID, e, false, now); return err }, details...)
		f.Absent(e.EventID)
		for _, keep := range []bool{false, true} {
			d := must(f.DeliverTo(ctx, r.ID, before, keep, now))(t, "retry of what was delivered before")
			eq(t, "outcome of the retry", d.Outcome, store.DeliveryDuplicate)
			eq(t, "place told", d.Place, f.Stored(before.EventID).Place)
		}
		buffered := f.PutNew("paid", K("order", "9"))
		_, err := f.DeliverTo(ctx, r.ID, buffered, false, now)
		code(t, "deliver a buffered event to a run that "+end.what, err, rendezvous.CodeSealed)
		f.WantLive(buffered)

		d := r.Keep(e) // nobody to tell: it is stored, dead
		eq(t, "outcome of keeping for a run that "+end.what, d.Outcome, store.DeliveryDead)
		eq(t, "addressee", f.WantDead(e.EventID, rendezvous.DeadAddresseeConcluded).Target, r.ID)
		d = r.Keep(e)
		eq(t, "outcome of keeping again", d.Outcome, store.DeliveryDuplicate)
		eq(t, "place", d.Place, store.Place{State: rendezvous.EventDead, Reason: rendezvous.DeadAddresseeConcluded})
	}
	e := EventOf("paid", K("order", "1"))
	_, err := f.DeliverTo(ctx, ID("run"), e, false, now)
	code(t, "deliver to an unknown run", err, rendezvous.CodeNotFound)
	_, err = f.DeliverTo(ctx, h.FixOf(t, "globex").Start().ID, e, false, now)
	code(t, "deliver to another tenant's run", err, rendezvous.CodeNotFound)
	f.Absent(e.EventID)
}

func keptEvent(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, other := f.Start(), f.Start()
	key := K("order", "1")
	other.Waits("w", "paid", key) // older than anything of the named run
	e := EventOf("paid", key)
	h.Offer(t, r.Kept(e).Notices)
	r.WantKept(e)
	other.WantNothing("w")
	eq(t, "match of the kept event", f.Match(e.EventID).Outcome, store.MatchNoWaiter)
	eq(t, "offer of another run's wait", f.OfferWait(other.WaitID("w")).Outcome, store.OfferNoEvent)
	third := f.Start()
	eq(t, "registration of another run", third.Register(third.Wait("w", "paid", key)).Outcome, store.RegisterWaiting)
	eq(t, "outcome of keeping again", r.Keep(e).Outcome, store.DeliveryKept)
	eq(t, "outcome of buffering it", f.Put(e).Outcome, store.BufferDuplicate)
	d := must(f.DeliverTo(ctx, other.ID, e, true, now))(t, "deliver to another run")
	eq(t, "outcome for another run", d.Outcome, store.DeliveryDuplicate)
	eq(t, "place told to another run", d.Place, store.Place{State: rendezvous.EventLive, RunID: r.ID})

	eq(t, "a wait on another key", r.Register(r.Wait("off", "paid", K("order", "2"))).Outcome, store.RegisterWaiting)
	eq(t, "a wait of another type", r.Register(r.Wait("odd", "refunded", key)).Outcome, store.RegisterWaiting)
	eq(t, "the fitting wait", r.Register(r.Wait("w", "paid", K("customer", "2"), key)).Outcome, store.RegisterAnswered)
	r.WantAnswered("w", e)
	eq(t, "outcome after the answer", r.Keep(e).Outcome, store.DeliveryDuplicate)

	fitting := EventOf("paid") // with a wait that fits, keep makes no difference
	d = r.Keep(fitting)
	eq(t, "outcome with a fitting wait", d.Outcome, store.DeliveryMatched)
	r.WantParked("off", fitting)

	for _, end := range []func(r *Flow) store.Retired{
		func(r *Flow) store.Retired { return r.Conclude(rendezvous.StatusFailed).Retired },
		func(r *Flow) store.Retired {
			c := store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), NextRun: ID("run")}
			return must(f.ContinueAsNew(ctx, c, now))(t, "continue").Retired
		},
		func(r *Flow) store.Retired {
			return must(f.CancelRun(ctx, r.ID, nil, "", true, now))(t, "cancel").Retired
		},
	} {
		r := f.Start()
		first, second := EventOf("paid", key), EventOf("paid")
		r.Kept(first)
		r.Kept(second)
		eq(t, "what the conclusion retired", end(r), store.Retired{Dead: []rendezvous.EventID{first.EventID, second.EventID}})
		f.WantDead(first.EventID, rendezvous.DeadAddresseeConcluded)
		f.WantDead(second.EventID, rendezvous.DeadAddresseeConcluded)
		eq(t, "offer of the dead event", f.OfferEvent(first.EventID).Outcome, store.OfferDead)
	}
	other.WantOpen("w")
	third.WantOpen("w")
}

func keptInOrder(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	key := K("order", "1")
	kept, open := EventOf("paid", key), EventOf("paid", key)
	r.Kept(kept)
	f.Put(open)
	last := EventOf("paid")
	r.Kept(last)
	for i, e := range []rendezvous.Event{kept, open, last} { // kept and broadcast ones by number alone
		effect := fmt.Sprint("w", i)
		eq(t, "outcome", r.Register(r.Wait(effect, "paid", key)).Outcome, store.RegisterAnswered)
		r.WantAnswered(effect, e)
	}

	r = f.Start()
	var items []store.DeliverItem
	for range rendezvous.MaxKeptPerRun {
		items = append(items, store.DeliverItem{Tenant: f.Name(), RunID: r.ID, Event: EventOf("paid", key), Keep: true})
	}
	for half := 0; half < len(items); half += 500 {
		for _, d := range must(h.Store.DeliverToBatch(ctx, items[half:half+500], now))(t, "keep a batch") {
			done(t, "keep", d.Err)
			eq(t, "outcome", d.Outcome, store.DeliveryKept)
		}
	}
	more := EventOf("paid", key)
	_, err := f.DeliverTo(ctx, r.ID, more, true, now)
	code(t, "keep one more", err, rendezvous.CodeRateLimited, "limit", rendezvous.MaxKeptPerRun)
	f.Absent(more.EventID)
	eq(t, "keeping again", r.Keep(items[0].Event).Outcome, store.DeliveryKept)
	other := f.Start()
	eq(t, "outcome for another run", other.Keep(more).Outcome, store.DeliveryKept)
	r.Register(r.Wait("w", "paid", key))
	r.WantAnswered("w", items[0].Event)
	eq(t, "outcome when there is room again", r.Keep(EventOf("paid", key)).Outcome, store.DeliveryKept)
}

func deliveringAgainstConclusion(t *testing.T, h *Harness) {
	fs := h.Two(t)
	seen := map[string]int{}
	for i := range h.Rounds(t) {
		f := fs[i%2]
		r := f.Start()
		r.Waits("w", "paid", K("order", r.ID))
		e := EventOf("paid", K("order", r.ID))
		conclusion := r.Conclusion(rendezvous.StatusCompleted)
		record, keep := i%4 < 2, i%3 == 0
		var d store.Delivery
		var deliverErr, concludeErr error
		Race(t, func() {
			if d, deliverErr = f.DeliverTo(ctx, r.ID, e, keep, now); deliverErr == nil && record {
				_, deliverErr = h.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: f.Name(), WaitID: r.WaitID("w")}}, now)
			}
		}, func() {
			_, concludeErr = f.Tenant.Conclude(ctx, conclusion, now)
			for rendezvous.CodeOf(concludeErr) == rendezvous.CodeConflict { // the answer moved the head
				conclusion.ExpectedSeq++
				conclusion.BatchID = ID("batch")
				_, concludeErr = f.Tenant.Conclude(ctx, conclusion, now)
			}
		})
		done(t, "conclude", concludeErr)
		rec := r.Answer("w")
		switch {
		case deliverErr != nil:
			code(t, "deliver against the conclusion", deliverErr, rendezvous.CodeSealed, "outcome", "completed")
			f.Absent(e.EventID)
			eq(t, "kept though told", keep, false)
			seen["sealed"]++
		case rec != nil:
			r.WantAnswered("w", e)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered, rendezvous.RunCompleted)
			seen["answered"]++
		default:
			want := store.DeliveryMatched
			if d.Outcome == store.DeliveryDead && keep {
				want = store.DeliveryDead
			}
			eq(t, "outcome", d.Outcome, want)
			f.WantDead(e.EventID, rendezvous.DeadAddresseeConcluded)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.RunCompleted)
			seen["dead"]++
		}
		eq(t, "rows of the concluded run", r.Rows(), nil)
	}
	t.Logf("rounds by end: %v", seen)
}

func targetedAtConcluded(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r, other := f.Start(), f.Start()
		d := r.Drive()
		d.Waits("w", "paid", K("order", "1"))
		d.Waits("idle", "paid", K("order", "2"))
		other.Waits("w", "paid", K("order", "1"))
		e := EventOf("paid", K("order", "1"))
		r.Targeted("w", e)
		eq(t, "outcome while leased", r.Redeliver("w").Outcome, store.OfferParked)
		concluded := d.Conclude(rendezvous.StatusCompleted)
		eq(t, "what the conclusion retired", concluded.Retired, store.Retired{Waits: 2, Dead: []rendezvous.EventID{e.EventID}})
		eq(t, "events to offer", len(concluded.Notices.Events), 0)
		f.WantDead(e.EventID, rendezvous.DeadAddresseeConcluded)
		other.WantNothing("w")
		o := f.OfferEvent(e.EventID)
		eq(t, "outcome of offering it", o.Outcome, store.OfferDead)
		eq(t, "reason told", o.Reason, rendezvous.DeadAddresseeConcluded)
		m := f.Match(e.EventID)
		eq(t, "outcome of matching it", m.Outcome, store.MatchDead)
		third := f.Start()
		eq(t, "outcome of a later wait", third.Register(third.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterWaiting)
		h.SweepUnmet(t)
		h.SweepParked(t)
		other.WantOpen("w")
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitRegistered, rendezvous.RunCompleted)
		dup := f.Put(e)
		eq(t, "outcome of the producer's retry", dup.Outcome, store.BufferDuplicate)
		eq(t, "place told", dup.Place, store.Place{State: rendezvous.EventDead, Reason: rendezvous.DeadAddresseeConcluded})
		other.Conclude(rendezvous.StatusCompleted)
		third.Conclude(rendezvous.StatusCompleted)
	}
}

func keptForUnknown(t *testing.T, h *Harness) {
	fs := h.Two(t)
	f := fs[0]
	never := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
	lost := EventOf("paid", K("order", "1"))
	never.Kept(lost)

	unknown := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
	e := EventOf("paid", K("order", "1"))
	h.Offer(t, unknown.Kept(e).Notices)
	eq(t, "outcome of keeping again", unknown.Keep(e).Outcome, store.DeliveryKept)
	stranger := fs[1].StartAs(store.Start{WorkflowID: unknown.WorkflowID, RunID: unknown.ID, Type: "order"}) // another tenant's run of that id
	eq(t, "outcome in another tenant", stranger.Register(stranger.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterWaiting)
	r := f.StartAs(store.Start{WorkflowID: unknown.WorkflowID, RunID: unknown.ID, Type: "order"})
	d := r.Drive()
	eq(t, "outcome of registering", d.Register(r.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterAnswered)
	r.WantAnswered("w", e)
	never.WantKept(lost)
	eq(t, "offer of what nobody asked for", f.OfferEvent(lost.EventID).Outcome, store.OfferNoWaiter)
	never.WantKept(lost)

	for i := range h.Rounds(t) { // the start is under way
		f := fs[i%2]
		r := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
		e := EventOf("paid", K("order", r.ID))
		var keepErr, driveErr error
		Race(t, func() {
			var d store.Delivery
			if d, keepErr = f.DeliverTo(ctx, r.ID, e, true, now); keepErr != nil {
				return
			}
			if d.Outcome == store.DeliveryMatched {
				_, keepErr = h.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: f.Name(), WaitID: r.WaitID("w")}}, now)
				return
			}
			_, keepErr = h.Store.OfferBatch(ctx, f.Items(e), now)
		}, func() {
			if _, driveErr = f.StartRun(ctx, store.Start{WorkflowID: r.WorkflowID, RunID: r.ID, Type: "order"}, now); driveErr == nil {
				driveErr = driveOnce(r, r.Wait("w", "paid", K("order", r.ID)), i)
			}
		})
		done(t, "keep", keepErr)
		done(t, "start and drive", driveErr)
		r.WantAnswered("w", e)
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
	}
}

func keptForShortLived(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		f := fs[i%2]
		r := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
		e := EventOf("paid", K("order", r.ID))
		var errs [2]error
		Race(t, func() {
			if _, errs[0] = f.DeliverTo(ctx, r.ID, e, true, now); errs[0] == nil {
				_, errs[0] = h.Store.OfferBatch(ctx, f.Items(e), now)
			}
		}, func() {
			if _, errs[1] = f.StartRun(ctx, store.Start{WorkflowID: r.WorkflowID, RunID: r.ID, Type: "order"}, now); errs[1] == nil {
				c := store.Conclusion{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Outcome: rendezvous.StatusCancelled}
				_, errs[1] = f.Tenant.Conclude(ctx, c, now)
			}
		})
		done(t, "keep and offer", errs[0])
		done(t, "start and conclude", errs[1])
		if o := f.OfferEvent(e.EventID); o.Outcome != store.OfferDead {
			t.Fatalf("round %d: the event of a run that ended is %s when offered", i, o.Outcome)
		}
		f.WantDead(e.EventID, rendezvous.DeadAddresseeConcluded)
	}
}

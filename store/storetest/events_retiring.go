package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// eventsRetiring are the cases of waits that end without an answer, and of events after theirs (EV-71..EV-77).
var eventsRetiring = []Case{
	{Name: "EV-71 a withdrawn wait is gone, and the next event does not see it", Run: withdrawingOpen},
	{Name: "EV-71 who may not withdraw, and what a repeat is told", Run: withdrawingRefused},
	{Name: "EV-71 withdrawing against an offer: one of both", Run: withdrawingAgainstOffer},
	{Name: "EV-72 withdrawing a parked wait releases its event, or nothing happened", Run: withdrawingParked},
	{Name: "EV-72 a withdrawal within an append releases too", Run: withdrawingInAppend},
	{Name: "EV-73 retiring one wait leaves another's event whole", Run: retiringOneOfTwo},
	{Name: "EV-74 retiring a run counts its waits and releases what it held", Run: retiringRun},
	{Name: "EV-75 the history says what is answered", Run: historyDecides},
	{Name: "EV-75 an answered wait that a backup brought back is shed", Run: leftOverRow},
	{Name: "EV-76 after a conclusion the event goes to the live run", Run: eventAfterConclusion},
	{Name: "EV-77 a consumed event is never handed out again", Run: consumedStaysConsumed},
}

// Withdraw withdraws a wait of the run without a lease.
func (r *Flow) Withdraw(effect string) store.Withdrawn {
	r.F.T.Helper()
	return must(r.F.Unsubscribe(ctx, r.WaitID(effect), 0, "changed its mind", now))(r.F.T, "withdraw "+effect)
}

// WithdrawnAt fails the test unless the history ends the wait with wait.withdrawn at that seq.
func (r *Flow) WithdrawnAt(effect string, seq int64) {
	r.F.T.Helper()
	rec := r.History()[seq-1]
	eq(r.F.T, "kind of the closing record", rec.Kind, rendezvous.WaitWithdrawn)
	eq(r.F.T, "effect of the closing record", rec.Effect, effect)
	eq(r.F.T, "answer of the withdrawn wait", r.Answer(effect), nil)
	eq(r.F.T, "row of the withdrawn wait", r.Row(effect), nil)
}

func withdrawingOpen(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"), K("customer", "2"))
		r.Waits("stays", "refunded", K("order", "1"))
		out := r.Withdraw("w")
		eq(t, "withdrawal", out, store.Withdrawn{Outcome: store.WithdrawWithdrawn, Seq: 4, Notices: out.Notices})
		r.WithdrawnAt("w", 4)
		var data rendezvous.ReasonData
		done(t, "decode the withdrawal", rendezvous.DecodeData(r.History()[3], &data))
		eq(t, "reason", data.Reason, "changed its mind")
		eq(t, "waits listed", len(f.Listed(store.WaitFilter{})), 1)
		eq(t, "open waits", r.Describe().OpenWaits, 1)
		e := EventOf("paid", K("customer", "2"))
		eq(t, "offers of the next event", len(f.Send(e).Made(store.OfferNoWaiter)), 1)
		f.WantLive(e)
		claim := r.Claim("w")
		eq(t, "claim for the withdrawn wait", claim, store.Claim{Closed: rendezvous.ClosedWithdrawn, Seq: 4})
		eq(t, "offer of the withdrawn wait", f.OfferWait(r.WaitID("w")).Closed, rendezvous.ClosedWithdrawn)
		again := r.Register(r.Wait("w", "paid", K("order", "1"), K("customer", "2")))
		eq(t, "outcome of registering it again", again.Outcome, store.RegisterWithdrawn)
		eq(t, "record that closed it", again.Seq, int64(4))
		eq(t, "row", r.Row("w"), nil)
		r.WantOpen("stays")
		eq(t, "outcome of another wait", r.Register(r.Wait("w2", "paid", K("customer", "2"))).Outcome, store.RegisterAnswered)
		r.WantAnswered("w2", e)
	}
}

func withdrawingRefused(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", r.ID))
	r.Waits("answered", "refunded", K("order", r.ID))
	e := EventOf("refunded", K("order", r.ID))
	f.Send(e)
	seq := r.WantAnswered("answered", e).Seq
	d := r.Drive()
	withdraw := func(id rendezvous.WaitID, epoch int64) func() error {
		return func() error { _, err := f.Unsubscribe(ctx, id, epoch, "", now); return err }
	}
	r.refuses("withdraw without the lease", rendezvous.CodeLeaseHeld, withdraw(r.WaitID("w"), 0))
	r.refuses("withdraw with an invented epoch", rendezvous.CodeFenced, withdraw(r.WaitID("w"), d.Epoch+1))
	r.refuses("withdraw for an unknown run", rendezvous.CodeNotFound, withdraw(rendezvous.WaitID{RunID: ID("run"), Effect: "w"}, 0))
	_, _, err := f.UnsubscribeRun(ctx, r.ID, 0, nil, now)
	code(t, "retire the run without the lease", err, rendezvous.CodeLeaseHeld)
	_, err = h.FixOf(t, "globex").Unsubscribe(ctx, r.WaitID("w"), 0, "", now)
	code(t, "withdraw in another tenant", err, rendezvous.CodeNotFound)

	for range 2 {
		out := must(f.Unsubscribe(ctx, r.WaitID("answered"), d.Epoch, "", now))(t, "withdraw what is answered")
		eq(t, "outcome for the answered", out, store.Withdrawn{Outcome: store.WithdrawAnswered, Seq: seq})
		out = must(f.Unsubscribe(ctx, r.WaitID("never"), d.Epoch, "", now))(t, "withdraw what never was")
		eq(t, "outcome for one never registered", out, store.Withdrawn{Outcome: store.WithdrawNothing})
	}
	first := must(f.Unsubscribe(ctx, r.WaitID("w"), d.Epoch, "", now))(t, "withdraw")
	eq(t, "outcome", first.Outcome, store.WithdrawWithdrawn)
	again := must(f.Unsubscribe(ctx, r.WaitID("w"), d.Epoch, "", now))(t, "withdraw again")
	eq(t, "outcome again", []any{again.Outcome, again.Seq}, []any{first.Outcome, first.Seq})
	r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitRegistered, rendezvous.WaitAnswered, rendezvous.WaitWithdrawn)
	d.Conclude(rendezvous.StatusCompleted)
	again = r.Withdraw("w") // from the history, also after the end
	eq(t, "outcome after the end", []any{again.Outcome, again.Seq}, []any{first.Outcome, first.Seq})
}

func withdrawingAgainstOffer(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		f := fs[i%2]
		r, next := f.Start(), f.Start()
		key := K("order", r.ID)
		r.Waits("w", "paid", key)
		next.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		var out store.Withdrawn
		var errs [2]error
		Race(t, func() {
			if i%3 == 0 {
				_, _, errs[0] = f.UnsubscribeRun(ctx, r.ID, 0, nil, now)
				return
			}
			out, errs[0] = f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now)
		}, func() { _, errs[1] = h.Store.OfferBatch(ctx, f.Items(e), now) })
		done(t, "withdraw", errs[0])
		done(t, "offer", errs[1])
		eq(t, "closing records", len(r.Kinds()), 3)
		if r.Answer("w") != nil {
			r.WantAnswered("w", e)
			next.WantOpen("w")
			continue
		}
		r.WithdrawnAt("w", 3)
		h.Offer(t, out.Notices)
		next.WantAnswered("w", e)
	}
}

func withdrawingParked(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "unsubscribe", func() (func() error, func(error, bool)) {
		r, e := parkedBy(t, f)
		row := r.WantParked("w", e)
		withdraw := func() error { _, err := f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now); return err }
		return withdraw, func(_ error, committed bool) {
			if !committed {
				eq(t, "row", r.WantParked("w", e), row)
				r.WantKinds(rendezvous.WaitRegistered)
				done(t, "withdraw again", withdraw())
			}
			r.WithdrawnAt("w", 3)
			f.WantLive(e)
			next := f.Start()
			eq(t, "outcome of the next wait", next.Register(next.Wait("w", "paid", e.Keys...)).Outcome, store.RegisterAnswered)
			next.WantAnswered("w", e)
		}
	})
	for _, f := range h.Two(t) {
		r, e := parkedBy(t, f)
		number := f.Stored(e.EventID).Number
		next := f.Start()
		next.Waits("w", "paid", e.Keys...)
		younger := f.PutNew("paid", e.Keys...)
		h.Advance(time.Minute)
		out := must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "", h.Now(t).Add(-time.Second)))(t, "withdraw")
		eq(t, "outcome", out.Outcome, store.WithdrawWithdrawn)
		eq(t, "event released", out.Released, &e.EventID)
		eq(t, "event dead", out.Dead, nil)
		f.WantLive(e, younger)
		eq(t, "number of the released event", f.Stored(e.EventID).Number, number)
		stored := f.Stored(e.EventID)
		if since := stored.LiveSince.Sub(stored.ReceivedAt); since < 50*time.Second { // its window begins anew at the instant of the call
			t.Fatalf("live since %s after its arrival, want the release", since)
		}
		h.Offer(t, out.Notices)
		next.WantAnswered("w", e) // first in line again
		f.WantLive(younger)

		targeted := f.Start()
		targeted.Waits("w", "paid")
		te := EventOf("paid", K("order", targeted.ID))
		targeted.Targeted("w", te)
		out = targeted.Withdraw("w")
		eq(t, "event released", out.Released, nil)
		eq(t, "event dead", out.Dead, &te.EventID)
		eq(t, "events to offer", len(out.Notices.Events), 0)
		f.WantDead(te.EventID, rendezvous.DeadWaitWithdrawn)
	}
}

func withdrawingInAppend(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("w", "paid", K("order", r.ID))
	d.Waits("t", "paid")
	e, targeted := EventOf("paid", K("order", r.ID)), EventOf("paid")
	eq(t, "offers parked", len(f.Send(e).Made(store.OfferParked)), 1)
	r.Targeted("t", targeted)
	next := f.Start()
	next.Waits("w", "paid", e.Keys...)
	out := d.Append(r.Withdrawn("w"), r.Withdrawn("t"))
	r.WithdrawnAt("w", 4)
	r.WithdrawnAt("t", 5)
	f.WantLive(e)
	f.WantDead(targeted.EventID, rendezvous.DeadWaitWithdrawn)
	h.Offer(t, out.Notices)
	next.WantAnswered("w", e)
	eq(t, "open waits", r.Describe().OpenWaits, 0)
}

func retiringOneOfTwo(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		d := r.Drive()
		var events [2]rendezvous.Event
		for i, effect := range []string{"a", "b"} {
			d.Waits(effect, "paid", K("order", r.ID), K("effect", effect))
			events[i] = EventOf("paid", K("order", r.ID))
			eq(t, "offers parked", len(f.Send(events[i]).Made(store.OfferParked)), 1)
		}
		row := r.WantParked("b", events[1])
		out := must(f.Unsubscribe(ctx, r.WaitID("a"), d.Epoch, "", now))(t, "withdraw")
		eq(t, "event released", out.Released, &events[0].EventID)
		eq(t, "row of the other", r.WantParked("b", events[1]), row)
		r.WantClaim("b", events[1], true)
		f.WantLive(events[0])
		d.Seen = r.Head()
		eq(t, "outcome of suspending", d.Suspend().Outcome, store.SuspendContinue)
		r.WantAnswered("b", events[1])
		f.WantLive(events[0])
	}
}

// retirers end all waits of a leased run, as its driver does.
var retirers = []struct {
	name string
	do   func(d *Driver, unanswered ...string) (store.Retired, store.Notices)
	ends bool
}{
	{"UnsubscribeRun", func(d *Driver, unanswered ...string) (store.Retired, store.Notices) {
		out, notices, err := d.F.UnsubscribeRun(ctx, d.ID, d.Epoch, unanswered, now)
		done(d.F.T, "retire the run's waits", err)
		return out, notices
	}, false},
	{"Conclude", func(d *Driver, _ ...string) (store.Retired, store.Notices) {
		out := d.Conclude(rendezvous.StatusCompleted)
		return out.Retired, out.Notices
	}, true},
	{"CancelRun", func(d *Driver, _ ...string) (store.Retired, store.Notices) {
		out := must(d.F.CancelRun(ctx, d.ID, nil, "", true, now))(d.F.T, "cancel")
		return out.Retired, out.Notices
	}, true},
}

func retiringRun(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, by := range retirers {
			r := f.Start()
			d := r.Drive()
			d.Waits("one", "paid", K("order", r.ID), K("customer", r.ID), K("invoice", r.ID)) // counted once, not per key
			d.Waits("two", "paid")
			got, notices := by.do(d)
			eq(t, by.name+": two idle waits", got, store.Retired{Waits: 2})
			eq(t, by.name+": events to offer", len(notices.Events), 0)
			eq(t, by.name+": rows", r.Rows(), nil)
			kinds := []rendezvous.Kind{rendezvous.WaitRegistered, rendezvous.WaitRegistered}
			if by.ends {
				eq(t, by.name+": kinds", r.Kinds()[1:3], kinds)
				eq(t, by.name+": records", len(r.Kinds()), 4)
			} else {
				r.WantKinds(append(kinds, rendezvous.WaitWithdrawn, rendezvous.WaitWithdrawn)...)
			}

			r = f.Start()
			d = r.Drive()
			d.Waits("idle", "paid", K("invoice", r.ID))
			d.Waits("held", "paid", K("order", r.ID))
			d.Waits("named", "refunded")
			e, named := EventOf("paid", K("order", r.ID)), EventOf("refunded")
			eq(t, "offers parked", len(f.Send(e).Made(store.OfferParked)), 1)
			r.Targeted("named", named)
			next := f.Start()
			next.Waits("w", "paid", K("order", r.ID))
			got, notices = by.do(d, "held", "named")
			eq(t, by.name+": one held and one named", got,
				store.Retired{Waits: 3, Released: []rendezvous.EventID{e.EventID}, Dead: []rendezvous.EventID{named.EventID}})
			f.WantLive(e)
			why := rendezvous.DeadWaitWithdrawn
			if by.ends {
				why = rendezvous.DeadAddresseeConcluded
			}
			f.WantDead(named.EventID, why)
			eq(t, by.name+": rows", r.Rows(), nil)
			next.WantClaim("w", e, false)
			next.Redelivered("w")
			next.WantAnswered("w", e)
			eq(t, by.name+": events to offer", len(notices.Events), 1)
			if by.ends {
				again, _, err := f.UnsubscribeRun(ctx, r.ID, 0, nil, now) // the summary its conclusion kept
				done(t, "retire the sealed run", err)
				eq(t, by.name+": what the conclusion kept", again, got)
			} else {
				again, _ := by.do(d)
				eq(t, by.name+": again", again, store.Retired{})
			}
		}
	}
}

func historyDecides(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		beliefs := map[string]struct {
			unanswered, corrected []string
		}{
			"left out":            {nil, []string{"held"}},
			"named though":        {[]string{"answered", "held"}, []string{"answered"}},
			"both":                {[]string{"answered"}, []string{"answered", "held"}},
			"right":               {[]string{"held", "idle"}, nil},
			"right, idle unnamed": {[]string{"held"}, nil},
		}
		for what, belief := range beliefs {
			r := f.Start()
			d := r.Drive()
			for _, effect := range []string{"answered", "held", "idle"} {
				d.Waits(effect, "paid", K(effect, r.ID))
			}
			answered, held := EventOf("paid", K("answered", r.ID)), EventOf("paid", K("held", r.ID))
			f.Send(answered)
			d.Collect()
			r.WantAnswered("answered", answered)
			f.Send(held)
			r.WantParked("held", held)
			got, notices := retirers[0].do(d, belief.unanswered...)
			eq(t, what, got, store.Retired{Waits: 2, Released: []rendezvous.EventID{held.EventID}, Corrected: belief.corrected})
			r.WantAnswered("answered", answered)
			f.WantLive(held)
			h.Offer(t, notices)
			next := f.Start()
			eq(t, what+": outcome of a wait on the answered event's key", next.Register(next.Wait("a", "paid", answered.Keys...)).Outcome, store.RegisterWaiting)
			eq(t, what+": outcome of a wait on the held event's key", next.Register(next.Wait("h", "paid", held.Keys...)).Outcome, store.RegisterAnswered)
			next.WantAnswered("h", held)
		}
	}
}

func leftOverRow(t *testing.T, h *Harness) {
	f := h.Fix(t)
	withdraw := struct {
		name string
		do   func(d *Driver, unanswered ...string) (store.Retired, store.Notices)
		ends bool
	}{"Unsubscribe", func(d *Driver, _ ...string) (store.Retired, store.Notices) {
		out := must(f.Unsubscribe(ctx, d.WaitID("w"), d.Epoch, "", now))(t, "withdraw the answered wait")
		eq(t, "outcome", out.Outcome, store.WithdrawAnswered)
		eq(t, "event released", out.Released, nil)
		return store.Retired{Waits: 1}, out.Notices
	}, false}
	for _, by := range append(retirers, withdraw) {
		r, e := parkedBy(t, f)
		restore := must(h.Damage.Keep(f.Name(), r.WaitID("w")))(t, "keep the wait's row")
		r.Redelivered("w")
		rec := r.WantAnswered("w", e)
		done(t, "restore the wait's row", restore())
		f.WantState(e.EventID, rendezvous.EventClaimed)
		got, notices := by.do(r.Drive(), "w")
		eq(t, by.name+": events released", len(got.Released)+len(got.Dead)+len(notices.Events), 0)
		eq(t, by.name+": waits", got.Waits, 1)
		eq(t, by.name+": rows", r.Rows(), nil)
		f.WantConsumed(e, r.WorkflowID, r.ID, "w", rec.Seq)
		eq(t, by.name+": records of the wait", r.Kinds()[1:3], []rendezvous.Kind{rendezvous.WaitRegistered, rendezvous.WaitAnswered})
		next := f.Start()
		eq(t, by.name+": outcome of a later wait", next.Register(next.Wait("w", "paid", e.Keys...)).Outcome, store.RegisterWaiting)
	}
}

func eventAfterConclusion(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for i, end := range []func(r *Flow){
			func(r *Flow) { r.Conclude(rendezvous.StatusCompleted) }, func(r *Flow) { r.Conclude(rendezvous.StatusFailed) },
			func(r *Flow) { r.Conclude(rendezvous.StatusCancelled) }, func(r *Flow) { r.Continue() },
		} {
			ended, live := f.Start(), f.Start()
			key := K("order", ended.ID)
			ended.Waits("w", "paid", key)
			end(ended)
			kinds := ended.Kinds()
			live.Waits("w", "paid", key)
			e := EventOf("paid", key)
			f.Send(e)
			live.WantAnswered("w", e)
			eq(t, fmt.Sprint("kinds of the ended run ", i), ended.Kinds(), kinds)
			eq(t, "rows of the ended run", ended.Rows(), nil)
		}
	}
}

func consumedStaysConsumed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		key := K("order", "1")
		r.Waits("w", "paid", key)
		e := EventOf("paid", key)
		f.Send(e)
		rec := r.WantAnswered("w", e)
		other := f.Start()
		for _, s := range []*Flow{r, other} {
			s.Waits("again", "paid", key)
			s.WantNothing("again")
			eq(t, "offer of the wait", f.OfferWait(s.WaitID("again")).Outcome, store.OfferNoEvent)
			d := must(f.DeliverTo(ctx, s.ID, e, true, now))(t, "deliver the consumed event")
			eq(t, "outcome of delivering it", d.Outcome, store.DeliveryDuplicate)
		}
		eq(t, "outcome of matching it", f.Match(e.EventID).Outcome, store.MatchConsumed)
		for _, d := range []Delivery{f.Send(e), h.Offer(t, store.Notices{Events: []store.EventRef{{Tenant: f.Name(), EventID: e.EventID}}})} {
			eq(t, "deliveries of it", len(d.Made(store.OfferDelivered)), 0)
		}
		h.SweepUnmet(t)
		h.SweepParked(t)
		r.WantOpen("again")
		other.WantOpen("again")
		f.WantConsumed(e, r.WorkflowID, r.ID, "w", rec.Seq)
		r.Conclude(rendezvous.StatusCompleted)
		other.WantOpen("again")
		f.WantConsumed(e, r.WorkflowID, r.ID, "w", rec.Seq) // the conclusion of its run lets nothing go
		other.Conclude(rendezvous.StatusCompleted)
	}
}

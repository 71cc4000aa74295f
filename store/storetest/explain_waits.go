package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// explainWaits are the cases of why a wait did not match, and of pairs (SW-30..SW-32).
var explainWaits = []Case{
	{Name: "SW-30 each verdict on a wait has its scenario", Run: waitVerdicts},
	{Name: "SW-30 near misses of a wait are live and dead events", Run: nearestEvents},
	{Name: "SW-30 near misses of a rare type are found behind many others", Run: rareMisses},
	{Name: "SW-30 an unregistered wait names its run and similar effects", Run: unregisteredWait},
	{Name: "SW-30 a wait without its row is explained from its registration", Run: rowlessWait},
	{Name: "SW-30 an overdue wait: what came in time is its own, what came late is a near miss", Run: overdueWait},
	{Name: "SW-30 each pair reason has its scenario", Run: pairReasons},
	{Name: "SW-30 a pair of which one side is not there", Run: halfPairs},
	{Name: "SW-32 explaining a wait and a pair changes nothing", Run: explainingWaitsReadsOnly},
}

// waitScenario makes a wait "w" whose verdict is its own.
type waitScenario struct {
	verdict rendezvous.Verdict
	make    func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) // the facts beside those of the wait itself and its instants
}

var waitScenarios = []waitScenario{
	{rendezvous.VerdictUnregistered, func(f *Fix, _ rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		return r, store.Facts{WorkflowID: r.WorkflowID, Run: &store.RunFacts{RunID: r.ID, WorkflowID: r.WorkflowID, State: rendezvous.RunStateOpen}}
	}},
	{rendezvous.VerdictAnswered, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		r.Waits("w", "paid", key)
		e := EventOf("paid", key)
		f.Send(e)
		return r, store.Facts{WorkflowID: r.WorkflowID, Seq: 3, Event: &e.EventID}
	}},
	{rendezvous.VerdictTimedOut, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		eq(f.T, "a deadline that is over", r.Register(r.dueIn(0, "w", "paid", key)).Outcome, store.RegisterTimedOut)
		f.PutNew("paid", key)
		return r, store.Facts{WorkflowID: r.WorkflowID, Seq: 3}
	}},
	{rendezvous.VerdictWithdrawn, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		r.Waits("w", "paid", key)
		r.Withdraw("w")
		return r, store.Facts{WorkflowID: r.WorkflowID, Seq: 3}
	}},
	{rendezvous.VerdictEnded, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		d := r.Drive()
		d.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		f.OfferEvent(e.EventID)
		kept := EventOf("refunded")
		r.Kept(kept)
		d.Conclude(rendezvous.StatusCancelled)
		return r, store.Facts{
			WorkflowID: r.WorkflowID, Released: []rendezvous.EventID{e.EventID}, Dead: []rendezvous.EventID{kept.EventID},
			Run: &store.RunFacts{RunID: r.ID, WorkflowID: r.WorkflowID, State: rendezvous.RunStateSealed, Outcome: rendezvous.RunCancelled},
		}
	}},
	{rendezvous.VerdictEnded, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) { // and reopened: the wait does not return
		r := f.Start()
		r.Waits("w", "paid", key)
		r.Conclude(rendezvous.StatusFailed)
		r.reopened()
		f.PutNew("paid", key)
		return r, store.Facts{
			WorkflowID: r.WorkflowID,
			Run:        &store.RunFacts{RunID: r.ID, WorkflowID: r.WorkflowID, State: rendezvous.RunStateOpen, Outcome: rendezvous.RunFailed},
		}
	}},
	{rendezvous.VerdictOverdue, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		r.lapses("w", "paid", key)
		f.PutNew("paid", key)
		return r, store.Facts{WorkflowID: r.WorkflowID, Hold: &store.Hold{State: rendezvous.HoldTimerLag}}
	}},
	{rendezvous.VerdictOverdue, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		r.lapses("w", "paid", key)
		return r, store.Facts{WorkflowID: r.WorkflowID, Hold: &store.Hold{State: rendezvous.HoldLeased, Owner: r.DriveFor(time.Hour).Owner}}
	}},
	{rendezvous.VerdictHeld, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		d := r.Drive()
		d.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		f.OfferEvent(e.EventID)
		return r, store.Facts{WorkflowID: r.WorkflowID, Event: &e.EventID, Hold: &store.Hold{State: rendezvous.HoldLeased, Owner: d.Owner}}
	}},
	{rendezvous.VerdictBehind, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		older, r := f.Start(), f.Start()
		older.Waits("first", "paid", key)
		r.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		return r, store.Facts{WorkflowID: r.WorkflowID, Event: &e.EventID, Wait: older.ref("first")}
	}},
	{rendezvous.VerdictOfferDue, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		r.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		return r, store.Facts{WorkflowID: r.WorkflowID, Event: &e.EventID}
	}},
	{rendezvous.VerdictNoEvent, func(f *Fix, key rendezvous.Key) (*Flow, store.Facts) {
		r := f.Start()
		r.Waits("w", "paid", key)
		f.PutNew("refunded", key)
		return r, store.Facts{WorkflowID: r.WorkflowID}
	}},
}

func waitVerdicts(t *testing.T, h *Harness) {
	seen := map[rendezvous.Verdict]bool{}
	for _, s := range waitScenarios {
		for _, f := range h.Two(t) {
			key := K("order", ID("key"))
			r, want := s.make(f, key)
			got := r.WhyWait("w")
			eq(t, "verdict", got.Verdict, s.verdict)
			seen[got.Verdict] = true
			if s.verdict != rendezvous.VerdictUnregistered {
				want.Type, want.Keys, want.RegisteredAt, want.Deadline = "paid", []rendezvous.Key{key}, r.History()[1].RecordedAt, r.deadline("w")
				eq(t, "since or at of "+string(s.verdict), got.Facts.Since.IsZero() && got.Facts.At.IsZero(), false)
			}
			if row := r.Row("w"); row != nil {
				want.Number = row.Number
			}
			want.Since, want.At = got.Facts.Since, got.Facts.At
			if hold := got.Facts.Hold; hold != nil {
				hold.Remaining, hold.NextAttemptAt = 0, time.Time{}
			}
			if run := want.Run; run != nil && got.Facts.Run != nil {
				run.SealedAt = got.Facts.Run.SealedAt
			}
			eq(t, "facts of "+string(s.verdict), got.Facts, want)
		}
	}
	covers(t, seen, rendezvous.VerdictUnregistered, rendezvous.VerdictAnswered, rendezvous.VerdictTimedOut, rendezvous.VerdictWithdrawn, rendezvous.VerdictEnded,
		rendezvous.VerdictHeld, rendezvous.VerdictBehind, rendezvous.VerdictOfferDue, rendezvous.VerdictNoEvent, rendezvous.VerdictOverdue)
}

func nearestEvents(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	r := f.Start()
	w := r.Wait("w", "paid", key)
	w.From = "bank"
	r.Register(w)
	both := f.PutNew("refunded", key) // type and source
	source := f.PutNew("paid", key)
	kind := EventOf("refunded", key)
	kind.Source = "bank"
	f.Put(kind)
	kept := EventOf("paid", K("order", "2"))
	kept.Source = "bank"
	r.Kept(kept)
	late := EventOf("paid", key)
	late.Source, late.ExpiresAt = "bank", time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Put(late)

	far := EventOf("paid", K("order", "9")) // the type alone
	far.Source, far.ExpiresAt = "bank", h.Now(t).Add(time.Hour)
	f.Put(far)
	other := f.Start()
	dead := EventOf("refunded", key) // a key, and only in dead letters
	dead.Source = "bank"
	other.Kept(dead)
	typed := EventOf("paid", K("order", "8"))
	typed.Source = "bank"
	other.Kept(typed)
	other.Conclude(rendezvous.StatusCompleted)
	f.PutNew("refunded", K("order", "7")) // nothing in common

	got := r.WhyWait("w")
	eq(t, "verdict", got.Verdict, rendezvous.VerdictNoEvent)
	var told []string
	for _, m := range got.NearMisses {
		told = append(told, m.Event.ID+": "+codes(m.Reasons))
	}
	eq(t, "near misses", told, []string{
		source.ID + ": other_source", kind.ID + ": other_type", kept.ID + ": no_shared_key", late.ID + ": event_expired", far.ID + ": no_shared_key",
		both.ID + ": other_type other_source", dead.ID + ": other_type other_addressee event_dead", typed.ID + ": no_shared_key other_addressee event_dead",
	})
	eq(t, "addressee of the kept one", got.NearMisses[2].Target, r.ID)
}

func rareMisses(t *testing.T, h *Harness) {
	const others = 400
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "2"))
	items, waits := make([]store.BufferItem, others), make([]store.RegisterItem, others)
	many := f.Start()
	for i := range others {
		items[i] = store.BufferItem{Tenant: f.Name(), Event: EventOf("refunded", K("order", "3"))}
		waits[i] = store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: many.Wait(fmt.Sprint("w", i), "shipped", K("order", "4"))}}
	}
	must(h.Store.BufferBatch(ctx, items, now))(t, "buffer")
	must(h.Store.RegisterBatch(ctx, waits, now))(t, "register")
	miss := r.WhyWait("w")
	eq(t, "near misses of the wait", []any{len(miss.NearMisses), miss.Partial}, []any{1, false})
	eq(t, "the event", miss.NearMisses[0].Event, &e.EventID)
	miss = f.WhyEvent(e.EventID)
	eq(t, "near misses of the event", []any{len(miss.NearMisses), miss.Partial}, []any{1, false})
	eq(t, "the wait", miss.NearMisses[0].Wait, r.ref("w"))
}

func unregisteredWait(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("await-payment", "paid", K("order", "1"))
	r.AppendFree(r.Begun("ship"))
	got := must(f.ExplainWait(ctx, r.WaitID("Await_Payment")))(t, "explain")
	eq(t, "verdict", got.Verdict, rendezvous.VerdictUnregistered)
	eq(t, "similar effects", got.Facts.Similar, []string{"await-payment"})
	eq(t, "similar effects of another name", r.WhyWait("x").Facts.Similar, nil)
	eq(t, "an effect that is no wait", r.WhyWait("ship").Facts.Similar, []string{"ship"})
	nobody := must(f.ExplainWait(ctx, rendezvous.WaitID{RunID: "nobody", Effect: "w"}))(t, "explain")
	eq(t, "verdict of an unknown run", nobody.Verdict, rendezvous.VerdictUnregistered)
	eq(t, "the unknown run", nobody.Facts.Run, &store.RunFacts{RunID: "nobody", State: rendezvous.RunStateUnknown})
	_, err := f.ExplainWait(ctx, rendezvous.WaitID{RunID: r.ID})
	code(t, "explain a wait without effect", err, rendezvous.CodeInvalid, "field", "effect")
}

func overdueWait(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	r := f.Start()
	w := r.Wait("w", "paid", key)
	w.DeadlineAfter = new(time.Minute)
	r.Register(w)
	eq(t, "verdict before the deadline", r.WhyWait("w").Verdict, rendezvous.VerdictNoEvent)
	inTime := f.PutNew("paid", key)
	h.Advance(2 * time.Minute)
	late := f.PutNew("paid", key)
	eq(t, "verdict while an event that came in time is there", r.WhyWait("w").Verdict, rendezvous.VerdictOfferDue)
	eq(t, "the late one", codes(r.WhyPair(late, "w").Reasons), "arrived_late")
	eq(t, "the deadline of the pair", r.WhyPair(late, "w").Facts.Other.Deadline, r.deadline("w"))
	eq(t, "verdict on the late one", f.WhyEvent(late.EventID).Verdict, rendezvous.VerdictNoWait)
	misses := f.WhyEvent(late.EventID).NearMisses
	eq(t, "its near misses", len(misses), 1)
	eq(t, "the overdue wait", []any{misses[0].Wait, codes(misses[0].Reasons), misses[0].Reasons[0].Since}, []any{r.ref("w"), "arrived_late", r.deadline("w")})
	f.Erase(inTime.EventID)
	got := r.WhyWait("w")
	eq(t, "verdict", got.Verdict, rendezvous.VerdictOverdue)
	eq(t, "since", got.Facts.Since, r.deadline("w"))
	eq(t, "near misses", []any{len(got.NearMisses), codes(got.NearMisses[0].Reasons), codes(got.NearMisses[1].Reasons)}, []any{2, "event_erased", "arrived_late"})
	d := r.Drive()
	leased := r.WhyWait("w").Facts.Hold
	eq(t, "what it waits for", []any{leased.State, leased.Owner, leased.Remaining > 0}, []any{rendezvous.HoldLeased, d.Owner, true})
	eq(t, "suspension", d.Suspend().Outcome, store.SuspendContinue)
	closed := r.WhyWait("w")
	eq(t, "verdict once it is recorded", []any{closed.Verdict, closed.Facts.Seq}, []any{rendezvous.VerdictTimedOut, r.Head()})
	eq(t, "the late one beside the closed wait", codes(r.WhyPair(late, "w").Reasons), "arrived_late wait_closed")
}

func rowlessWait(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	r := f.Start()
	r.Waits("w", "paid", key)
	done(t, "lose the wait's row", h.Damage.LoseWait(f.Name(), r.WaitID("w")))
	eq(t, "verdict without an event", r.WhyWait("w").Verdict, rendezvous.VerdictNoEvent)
	e := f.PutNew("paid", key)
	got := r.WhyWait("w")
	eq(t, "verdict", got.Verdict, rendezvous.VerdictOfferDue)
	eq(t, "number", got.Facts.Number, 0)
	eq(t, "event", got.Facts.Event, &e.EventID)
	other := f.Start()
	other.Subscribes("w", "paid", key)
	got = r.WhyWait("w")
	eq(t, "verdict beside another wait", got.Verdict, rendezvous.VerdictBehind)
	eq(t, "the other wait", got.Facts.Wait, other.ref("w"))
	eq(t, "the pair", codes(r.WhyPair(e, "w").Reasons), "older_wait_first")

	due := f.Start()
	due.lapses("w", "paid", K("order", "2"))
	done(t, "lose the row of a wait with a deadline", h.Damage.LoseWait(f.Name(), due.WaitID("w")))
	late := f.PutNew("paid", K("order", "2"))
	eq(t, "verdict behind the deadline", due.WhyWait("w").Verdict, rendezvous.VerdictOverdue)
	eq(t, "the late event", codes(due.WhyPair(late, "w").Reasons), "arrived_late")
}

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// eventsErasure are the cases of erased payloads (EV-78..EV-82).
var eventsErasure = []Case{
	{Name: "EV-78 erasing what is unknown, and what is live", Run: erasingLive},
	{Name: "EV-79 erasing a claimed event reopens exactly its wait", Run: erasingClaimed},
	{Name: "EV-79 erasing at any step is done or not done", Run: erasingOrNot},
	{Name: "EV-80 erasing against delivery: the payload, or nothing", Run: erasingAgainstDelivery},
	{Name: "EV-81 erasing a consumed event names the record", Run: erasingConsumed},
	{Name: "EV-82 erasing a dead event keeps its reason", Run: erasingDead},
}

// Erase erases an event's payload.
func (f *Fix) Erase(id rendezvous.EventID) store.Erasure {
	f.T.Helper()
	return must(f.ErasePayload(ctx, id, &rendezvous.Operator{Actor: "ada", Basis: rendezvous.BasisAsserted}, now))(f.T, "erase "+id.ID)
}

// WantErased fails the test unless the event is erased: identity, type and keys stay, the payload is gone.
func (f *Fix) WantErased(e rendezvous.Event, state rendezvous.EventState, reason rendezvous.DeadReason) store.StoredEvent {
	f.T.Helper()
	stored := f.WantState(e.EventID, state)
	eq(f.T, "reason", stored.Reason, reason)
	eq(f.T, "erased", stored.Erased, true)
	eq(f.T, "payload stored", stored.HasPayload, false)
	SamePayload(f.T, stored.Payload, nil)
	eq(f.T, "type", stored.Type, e.Type)
	eq(f.T, "keys", stored.Keys, e.Keys)
	return stored
}

func erasingLive(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		unknown := rendezvous.EventID{Source: "shop", ID: "unknown"}
		eq(t, "erasing what is unknown", f.Erase(unknown), store.Erasure{})
		f.Absent(unknown)
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
		e := f.PutNew("paid", K("order", "1"), K("customer", "2"))
		got := f.Erase(e.EventID)
		eq(t, "erasing a live event", got, store.Erasure{Existed: true, Was: rendezvous.EventLive})
		first := f.WantErased(e, rendezvous.EventDead, rendezvous.DeadErased)
		eq(t, "dead since", first.DeadAt, h.Now(t))
		again := f.Put(e)
		eq(t, "outcome of the replay", again.Outcome, store.BufferDuplicate)
		eq(t, "place told", again.Place, store.Place{State: rendezvous.EventDead, Reason: rendezvous.DeadErased})
		o := f.OfferEvent(e.EventID)
		eq(t, "outcome of offering it", []any{o.Outcome, o.Reason}, []any{store.OfferDead, rendezvous.DeadErased})
		m := f.Match(e.EventID)
		eq(t, "outcome of matching it", []any{m.Outcome, m.Reason}, []any{store.MatchDead, rendezvous.DeadErased})
		r.WantNothing("w")
		eq(t, "outcome of registering", r.Register(r.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterWaiting)
		d := must(f.DeliverTo(ctx, r.ID, e, true, now))(t, "deliver the erased event")
		eq(t, "outcome of delivering it", d.Outcome, store.DeliveryDuplicate)
		h.Advance(time.Second)
		eq(t, "erasing again", f.Erase(e.EventID), store.Erasure{Existed: true, Was: rendezvous.EventDead})
		eq(t, "event after erasing again", f.Stored(e.EventID), first)
		r.WantOpen("w")
		r.WantKinds(rendezvous.WaitRegistered)
		r.Conclude(rendezvous.StatusCompleted)

		kept := f.Start()
		ke := EventOf("paid", K("order", "2"))
		kept.Kept(ke)
		f.Erase(ke.EventID)
		eq(t, "outcome of the run's wait", kept.Register(kept.Wait("w", "paid", K("order", "2"))).Outcome, store.RegisterWaiting)
		eq(t, "addressee of the erased event", f.WantErased(ke, rendezvous.EventDead, rendezvous.DeadErased).Target, kept.ID)
	}
}

func erasingClaimed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, next := range []string{"before", "behind"} {
			r := f.Start()
			r.Waits("other", "paid", K("other", r.ID))
			r.Waits("w", "paid", K("order", r.ID), K("customer", r.ID))
			row := r.WantOpen("w")
			beside := f.PutNew("paid", K("other", r.ID))
			f.Matched(beside, r, "other")
			besideRow := r.WantParked("other", beside)
			e := f.PutNew("paid", K("order", r.ID))
			f.Matched(e, r, "w")
			r.Park(store.ParkItem{WaitID: r.WaitID("w"), Cause: store.ParkFailed, RetryIn: time.Minute, Error: "refused"})
			successor := EventOf("paid", K("customer", r.ID))
			if next == "before" {
				f.Put(successor)
			}
			got := f.Erase(e.EventID)
			eq(t, "existed", got.Existed, true)
			eq(t, "was", got.Was, rendezvous.EventClaimed)
			id := r.WaitID("w")
			eq(t, "wait reopened", got.Reopened, &id)
			eq(t, "waits to offer", len(got.Notices.Waits), 1)
			eq(t, "wait to offer", got.Notices.Waits[0].WaitID, id)
			f.WantErased(e, rendezvous.EventDead, rendezvous.DeadErased)
			eq(t, "row as it was before the claim", r.WantOpen("w"), row)
			eq(t, "row of the other wait", r.WantParked("other", beside), besideRow)
			if next == "behind" {
				r.WantNothing("w")
				f.Put(successor)
			}
			h.Offer(t, got.Notices)
			if next == "behind" {
				f.OfferEvent(successor.EventID)
			}
			r.WantAnswered("w", successor)
			again := f.Erase(e.EventID)
			eq(t, "erasing again", again, store.Erasure{Existed: true, Was: rendezvous.EventDead})
			r.Redelivered("other")
			r.WantAnswered("other", beside)
		}
		r := f.Start() // leased: the driver is told nothing and loses nothing
		d := r.Drive()
		d.Waits("w", "paid", K("order", r.ID))
		e := EventOf("paid", K("order", r.ID))
		f.Send(e)
		r.WantParked("w", e)
		f.Erase(e.EventID)
		r.WantOpen("w")
		eq(t, "outcome of suspending", d.Suspend().Outcome, store.SuspendSuspended)
		r.WantKinds(rendezvous.WaitRegistered)
	}
}

func erasingOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "erase_payload", func() (func() error, func(error, bool)) {
		r, e := parkedBy(t, f)
		row := r.WantParked("w", e)
		erase := func() error { _, err := f.ErasePayload(ctx, e.EventID, nil, now); return err }
		return erase, func(_ error, committed bool) {
			if !committed {
				eq(t, "row", r.WantParked("w", e), row)
				r.WantClaim("w", e, true)
				done(t, "erase again", erase())
			}
			f.WantErased(e, rendezvous.EventDead, rendezvous.DeadErased)
			r.WantOpen("w")
		}
	})
}

func erasingAgainstDelivery(t *testing.T, h *Harness) {
	fs := h.Two(t)
	seen := map[string]int{}
	ways := []struct {
		name string
		wait bool // registered before
		held bool // and parked
		do   func(r *Flow, e rendezvous.Event) (*rendezvous.Event, error)
	}{
		{"OfferBatch", true, false, func(r *Flow, e rendezvous.Event) (*rendezvous.Event, error) {
			_, err := r.F.H.Store.OfferBatch(ctx, r.F.Items(e), now)
			return nil, err
		}},
		{"DeliverParked", true, true, func(r *Flow, e rendezvous.Event) (*rendezvous.Event, error) {
			_, err := r.F.H.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: r.F.Name(), WaitID: r.WaitID("w")}}, now)
			return nil, err
		}},
		{"RegisterWait", false, false, func(r *Flow, e rendezvous.Event) (*rendezvous.Event, error) {
			out, err := r.F.RegisterWait(ctx, store.Registration{Wait: r.Wait("w", "paid", e.Keys...)}, now)
			if out.Answer == nil {
				return nil, err
			}
			return &rendezvous.Event{Payload: out.Answer.Payload}, err
		}},
		{"ClaimFor, then Collect", true, false, func(r *Flow, e rendezvous.Event) (*rendezvous.Event, error) {
			claim, err := r.F.ClaimFor(ctx, r.WaitID("w"), now)
			if err != nil {
				return nil, err
			}
			lease, err := r.F.AcquireLease(ctx, r.ID, ID("pod"), rendezvous.DefaultLease, ID("acquire"))
			if err != nil {
				return nil, err
			}
			_, err = r.F.Tenant.Collect(ctx, r.ID, lease.Epoch)
			return claim.Event, err
		}},
		{"ClaimFor of a parked wait, then Suspend", true, true, func(r *Flow, e rendezvous.Event) (*rendezvous.Event, error) {
			claim, err := r.F.ClaimFor(ctx, r.WaitID("w"), now)
			if err != nil {
				return nil, err
			}
			lease, err := r.F.AcquireLease(ctx, r.ID, ID("pod"), rendezvous.DefaultLease, ID("acquire"))
			if err != nil {
				return nil, err
			}
			_, err = r.F.Tenant.Suspend(ctx, r.ID, lease.Epoch, lease.Head, false)
			return claim.Event, err
		}},
		{"DeliverTo", true, false, func(r *Flow, e rendezvous.Event) (*rendezvous.Event, error) {
			d, err := r.F.DeliverTo(ctx, r.ID, e, false, now)
			if err == nil && d.Outcome == store.DeliveryMatched {
				_, err = r.F.H.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: r.F.Name(), WaitID: r.WaitID("w")}}, now)
			}
			return nil, err
		}},
	}
	for i := range h.Rounds(t) {
		for _, way := range ways {
			f := fs[i%2]
			r := f.Start()
			key := K("order", r.ID)
			if way.wait {
				r.Waits("w", "paid", key)
			}
			e := f.PutNew("paid", key)
			if way.held {
				f.Matched(e, r, "w")
			}
			var got *rendezvous.Event
			var erasure store.Erasure
			var errs [2]error
			Race(t, func() { got, errs[0] = way.do(r, e) }, func() { erasure, errs[1] = f.ErasePayload(ctx, e.EventID, nil, now) })
			done(t, way.name, errs[0])
			done(t, "erase", errs[1])
			eq(t, "existed", erasure.Existed, true)
			if got != nil {
				SamePayload(t, got.Payload, e.Payload)
			}
			if rec := r.Answer("w"); rec != nil {
				r.WantAnswer("w", e) // payload bit for bit
				f.WantErased(e, rendezvous.EventConsumed, "")
				eq(t, "row", r.Row("w"), nil)
				seen["delivered"]++
				if erasure.Was == rendezvous.EventConsumed {
					eq(t, "journaled", erasure.Journaled.Seq, rec.Seq)
				}
				continue
			}
			f.WantErased(e, rendezvous.EventDead, rendezvous.DeadErased)
			r.WantOpen("w")
			seen["erased"]++
			next := EventOf("paid", key)
			eq(t, "outcome of the next event, after "+way.name, f.Put(next).Outcome, store.BufferNew)
			if o := f.OfferEvent(next.EventID); o.Outcome == store.OfferParked {
				eq(t, "collected", len(must(f.Collect(ctx, r.ID, r.Describe().LeaseEpoch))(t, "collect").Records), 1)
			}
			r.WantAnswered("w", next)
		}
	}
	t.Log(fmt.Sprint("scenes by end: ", seen))
}

func erasingConsumed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
		e := EventOf("paid", K("order", "1"))
		f.Send(e)
		seq := r.WantAnswered("w", e).Seq
		place := f.Stored(e.EventID).Place
		for range 2 {
			got := f.Erase(e.EventID)
			eq(t, "erasing a consumed event", got, store.Erasure{Existed: true, Was: rendezvous.EventConsumed, Journaled: &place})
			eq(t, "record named", store.Place{State: rendezvous.EventConsumed, WorkflowID: r.WorkflowID, RunID: r.ID, Effect: "w", Seq: seq}, *got.Journaled)
			f.WantErased(e, rendezvous.EventConsumed, "")
			r.WantAnswer("w", e) // that copy belongs to the history
			eq(t, "outcome of the replay", f.Put(e).Outcome, store.BufferDuplicate)
			eq(t, "outcome of offering it", f.OfferEvent(e.EventID).Outcome, store.OfferAlreadyDelivered)
		}
		r.Conclude(rendezvous.StatusCompleted)
	}
}

func erasingDead(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Waits("w", "paid")
		e := EventOf("paid", K("order", "1"))
		r.Targeted("w", e)
		r.Withdraw("w")
		before := f.WantDead(e.EventID, rendezvous.DeadWaitWithdrawn)
		eq(t, "payload of a dead event", before.HasPayload, true)
		h.Advance(time.Minute)
		for range 2 {
			eq(t, "erasing a dead event", f.Erase(e.EventID), store.Erasure{Existed: true, Was: rendezvous.EventDead})
			after := f.WantErased(e, rendezvous.EventDead, rendezvous.DeadWaitWithdrawn)
			eq(t, "dead since", after.DeadAt, before.DeadAt)
			eq(t, "place told to a replay", f.Put(e).Place, store.Place{State: rendezvous.EventDead, Reason: rendezvous.DeadWaitWithdrawn})
		}
	}
}

package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// What the cases of events, waits and claims say most.

// diffOf is how got differs from want, "" for not at all: for findings of a race, which may not fail the test.
func diffOf[T any](got, want T) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }

// Subscribes registers a wait without a lease, and without claiming.
func (r *Flow) Subscribes(effect, kind string, keys ...rendezvous.Key) store.Subscribed {
	r.F.T.Helper()
	out := must(r.F.Subscribe(ctx, store.Registration{Wait: r.Wait(effect, kind, keys...)}, now))(r.F.T, "subscribe "+effect)
	eq(r.F.T, "closing of the new wait "+effect, out.Closed, "")
	return out
}

// Claim claims for a wait of the run.
func (r *Flow) Claim(effect string) store.Claim {
	r.F.T.Helper()
	return must(r.F.ClaimFor(ctx, r.WaitID(effect), now))(r.F.T, "claim for "+effect)
}

// WantClaim fails the test unless claiming for the wait hands out exactly that event, whole.
func (r *Flow) WantClaim(effect string, e rendezvous.Event, again bool) {
	r.F.T.Helper()
	got := r.Claim(effect)
	if got.Event == nil {
		r.F.T.Fatalf("claiming for %s found nothing (closed: %q), want %s", effect, got.Closed, e.ID)
	}
	eq(r.F.T, "event claimed for "+effect, got.Event.EventID, e.EventID)
	eq(r.F.T, "type of the claimed event", got.Event.Type, e.Type)
	eq(r.F.T, "content type of the claimed event", got.Event.ContentType, e.ContentType)
	eq(r.F.T, "keys of the claimed event", rendezvous.SortedKeys(got.Event.Keys), rendezvous.SortedKeys(e.Keys))
	SamePayload(r.F.T, got.Event.Payload, e.Payload)
	eq(r.F.T, "claimed again", got.Again, again)
	eq(r.F.T, "received_at of the claimed event", got.ReceivedAt, r.F.Stored(e.EventID).ReceivedAt)
}

// WantNothing fails the test unless claiming for the open wait finds nothing.
func (r *Flow) WantNothing(effect string) {
	r.F.T.Helper()
	eq(r.F.T, "claim for "+effect, r.Claim(effect), store.Claim{})
}

// WantOpen fails the test unless the wait has an open row.
func (r *Flow) WantOpen(effect string) store.WaitRow {
	r.F.T.Helper()
	row := r.Row(effect)
	if row == nil {
		r.F.T.Fatalf("the wait %s of %s has no row, want an open one", effect, r.ID)
	}
	eq(r.F.T, "state of "+effect, row.State, rendezvous.WaitOpen)
	eq(r.F.T, "event held by "+effect, row.Held, nil)
	return *row
}

// WantParked fails the test unless the wait holds exactly that event.
func (r *Flow) WantParked(effect string, e rendezvous.Event) store.WaitRow {
	r.F.T.Helper()
	row := r.Row(effect)
	if row == nil {
		r.F.T.Fatalf("the wait %s of %s has no row, want a parked one", effect, r.ID)
	}
	eq(r.F.T, "state of "+effect, row.State, rendezvous.WaitParked)
	eq(r.F.T, "event held by "+effect, row.Held, &e.EventID)
	stored := r.F.WantState(e.EventID, rendezvous.EventClaimed)
	eq(r.F.T, "claim of "+e.ID, rendezvous.WaitID{RunID: stored.RunID, Effect: stored.Effect}, r.WaitID(effect))
	return *row
}

// WantAnswered fails the test unless that event answered the wait, whose row is gone, and is consumed by exactly that record, its payload shed.
func (r *Flow) WantAnswered(effect string, e rendezvous.Event) *rendezvous.Record {
	r.F.T.Helper()
	rec := r.WantAnswer(effect, e)
	eq(r.F.T, "row of the answered wait "+effect, r.Row(effect), nil)
	r.F.WantConsumed(e, r.WorkflowID, r.ID, effect, rec.Seq)
	return rec
}

// WantConsumed fails the test unless the event is consumed there, its payload shed.
func (f *Fix) WantConsumed(e rendezvous.Event, workflow, run, effect string, seq int64) {
	f.T.Helper()
	stored := f.WantState(e.EventID, rendezvous.EventConsumed)
	eq(f.T, "place of "+e.ID, stored.Place, store.Place{State: rendezvous.EventConsumed, WorkflowID: workflow, RunID: run, Effect: effect, Seq: seq})
	eq(f.T, "payload kept of the consumed "+e.ID, stored.HasPayload, false)
}

// WantLive fails the test unless the events are live, untargeted and whole.
func (f *Fix) WantLive(events ...rendezvous.Event) {
	f.T.Helper()
	for _, e := range events {
		stored := f.WantState(e.EventID, rendezvous.EventLive)
		eq(f.T, "addressee of "+e.ID, stored.Target, "")
		SamePayload(f.T, stored.Payload, e.Payload)
	}
}

// Absent fails the test unless nothing is known of the event.
func (f *Fix) Absent(id rendezvous.EventID) {
	f.T.Helper()
	_, err := f.LookupEvent(ctx, id, false)
	code(f.T, "look up "+id.ID+", which was never taken in", err, rendezvous.CodeNotFound)
}

// Match looks for a wait for the event, and does not journal.
func (f *Fix) Match(id rendezvous.EventID) store.Match {
	f.T.Helper()
	return must(f.MatchWaiter(ctx, id, now))(f.T, "match "+id.ID)
}

// Matched matches the event and fails the test unless it was given to that wait.
func (f *Fix) Matched(e rendezvous.Event, r *Flow, effect string) store.WaitRow {
	f.T.Helper()
	m := f.Match(e.EventID)
	eq(f.T, "outcome of matching "+e.ID, m.Outcome, store.MatchMatched)
	eq(f.T, "wait matched by "+e.ID, m.Wait.WaitID, r.WaitID(effect))
	return *m.Wait
}

// Targeted gives an event to the run, without keeping it, and fails the test unless a wait took it.
func (r *Flow) Targeted(effect string, e rendezvous.Event) store.Delivery {
	r.F.T.Helper()
	d := must(r.F.DeliverTo(ctx, r.ID, e, false, now))(r.F.T, "deliver "+e.ID+" to "+r.ID)
	eq(r.F.T, "outcome of delivering "+e.ID, d.Outcome, store.DeliveryMatched)
	eq(r.F.T, "wait that took "+e.ID, rendezvous.WaitID{RunID: d.RunID, Effect: d.Effect}, r.WaitID(effect))
	return d
}

// Redeliver records what the wait holds, if its run is free.
func (r *Flow) Redeliver(effect string) store.Offer {
	r.F.T.Helper()
	refs := []store.WaitRef{{Tenant: r.F.Name(), WaitID: r.WaitID(effect)}}
	out := must(r.F.H.Store.DeliverParked(ctx, refs, now))(r.F.T, "deliver the parked "+effect)
	eq(r.F.T, "outcomes of one parked wait", len(out.Items), 1)
	return out.Items[0]
}

// Redelivered records what the wait holds and fails the test unless that went through.
func (r *Flow) Redelivered(effect string) store.Offer {
	r.F.T.Helper()
	o := r.Redeliver(effect)
	if o.Outcome != store.OfferDelivered {
		r.F.T.Fatalf("delivering the parked %s: %s (%v), want delivered", effect, o.Outcome, o.Err)
	}
	return o
}

// Park puts the wait's delivery off.
func (r *Flow) Park(item store.ParkItem) store.ParkResult {
	r.F.T.Helper()
	item.Tenant = r.F.Name()
	out := must(r.F.H.Store.ParkWait(ctx, []store.ParkItem{item}, now))(r.F.T, "park "+item.Effect)
	eq(r.F.T, "outcomes of one parking", len(out), 1)
	return out[0]
}

// Parkeds are the tenant's parked waits as listed.
func (f *Fix) Parkeds() []store.WaitRow {
	f.T.Helper()
	page := must(f.ParkedWaits(ctx, store.WaitFilter{}, 0, ""))(f.T, "list parked waits")
	eq(f.T, "next page of parked waits", page.NextCursor, "")
	return page.Waits
}

// OfferAll offers events of the tenant in one batch, and nothing that follows.
func (f *Fix) OfferAll(events ...rendezvous.Event) store.Offered {
	f.T.Helper()
	return must(f.H.Store.OfferBatch(ctx, f.Items(events...), now))(f.T, "offer a batch")
}

// Items are the events as items of an offer.
func (f *Fix) Items(events ...rendezvous.Event) []store.OfferItem {
	items := make([]store.OfferItem, len(events))
	for i, e := range events {
		items[i] = store.OfferItem{Tenant: f.Name(), Event: &e.EventID}
	}
	return items
}

// Two are the tenants that most cases play their scene in, one after the other or at once: equal scenes in two tenants are strangers (I14).
func (h *Harness) Two(t testing.TB) [2]*Fix {
	t.Helper()
	return [2]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")}
}

// refuses fails the test unless the call failed as the code says and the flow's history and rows are as they were.
func (r *Flow) refuses(what string, want rendezvous.Code, call func() error, details ...any) {
	r.F.T.Helper()
	head, rows := r.Head(), r.Rows()
	code(r.F.T, what, call(), want, details...)
	eq(r.F.T, "head after "+what, r.Head(), head)
	eq(r.F.T, "waits after "+what, r.Rows(), rows)
}

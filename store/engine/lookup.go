package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// LookupEvent implements [store.Events].
func (t *tenant) LookupEvent(ctx context.Context, id rendezvous.EventID, payload bool) (store.StoredEvent, error) {
	e, err := t.storedEvent(ctx, "lookup_event", id, payload)
	if err != nil {
		return store.StoredEvent{}, err
	}
	return storedEvent(e), nil
}

// storedEvent is everything the store knows of an event; its payload when the row was read with it. Why it died last stays readable when it lives again.
func storedEvent(e *backend.Event) store.StoredEvent {
	return store.StoredEvent{
		Number: e.Number, Event: eventOf(e), HasPayload: e.HasPayload,
		ReceivedAt: e.ReceivedAt, LiveSince: e.LiveSince, Target: e.Target,
		Place: placeOf(e), ClaimedAt: e.ClaimedAt, LastReason: e.DeadReason, Detail: e.DeadDetail, DeadAt: e.DeadAt,
		Erased: e.Erased, OfferFailures: e.OfferFailures, Requeues: e.Requeues, Purged: e.Purged, Op: e.Op, OpBy: e.OpBy,
	}
}

// Minter implements [store.Events].
func (t *tenant) Minter(ctx context.Context, id rendezvous.EventID) (*rendezvous.Operator, error) {
	e, err := t.storedEvent(ctx, "minter", id, false)
	if err != nil {
		return nil, err
	}
	return e.Minted, nil
}

// storedEvent reads one event. A row that does not decode, half a minter among it, is corrupt (EV-14).
func (t *tenant) storedEvent(ctx context.Context, verb string, id rendezvous.EventID, payload bool) (*backend.Event, error) {
	if err := checkEventID(id); err != nil {
		return nil, err
	}
	key := backend.EventKey{Tenant: t.name, Source: id.Source, ID: id.ID}
	var found *backend.Event
	err := t.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, err := r.EventsByKey(ctx, []backend.EventKey{key}, payload)
		found = rows[key]
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, eventNotFound(id)
	case found.Corrupt != nil:
		return nil, found.Corrupt
	}
	return found, nil
}

func checkEventID(id rendezvous.EventID) error {
	if err := rendezvous.CheckID("source", id.Source); err != nil {
		return err
	}
	return rendezvous.CheckID("id", id.ID)
}

func eventNotFound(id rendezvous.EventID) error {
	return rendezvous.Errorf(rendezvous.CodeNotFound, "no event %q of source %q was ever taken in for this tenant", id.ID, id.Source)
}

// eventOf is the producer's view of a stored event; its payload is there when the row was read with it.
func eventOf(e *backend.Event) rendezvous.Event {
	return rendezvous.Event{
		EventID: rendezvous.EventID{Source: e.Source, ID: e.ID}, Type: e.Type, Keys: e.Keys, ContentType: e.ContentType, Payload: e.Payload,
		ExpiresAt: e.ExpiresAt, Trace: e.Trace, MintedBy: e.Minted,
	}
}

// placeOf says where an event is or went.
func placeOf(e *backend.Event) store.Place {
	switch e.State {
	case rendezvous.EventLive:
		return store.Place{State: e.State, RunID: e.Target}
	case rendezvous.EventClaimed:
		return store.Place{State: e.State, RunID: e.ClaimRun, Effect: e.ClaimEffect}
	case rendezvous.EventConsumed:
		return store.Place{State: e.State, WorkflowID: e.Workflow, RunID: e.Run, Effect: e.Effect, Seq: e.Seq}
	}
	return store.Place{State: e.State, Reason: e.DeadReason}
}

package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// ErasePayload implements [store.Events].
func (t *tenant) ErasePayload(ctx context.Context, id rendezvous.EventID, operator *rendezvous.Operator, at time.Time) (store.Erasure, error) {
	if err := checkEventID(id); err != nil {
		return store.Erasure{}, err
	}
	if err := operator.Check("operator"); err != nil {
		return store.Erasure{}, err
	}
	key := backend.EventKey{Tenant: t.name, Source: id.Source, ID: id.ID}
	var done store.Erasure
	notices, err := t.update(ctx, "erase_payload", at, func(ctx context.Context, u *unit) error {
		erased, err := u.erase(ctx, key, operator)
		done = erased
		return err
	})
	if err != nil {
		return store.Erasure{}, err
	}
	done.Notices = notices
	return done, nil
}

// erase takes an event's payload and digest away for ever (I10). A delivery at the same moment has recorded the payload before, or its write finds the
// row moved on and it finds nothing to deliver (EV-80).
func (u *unit) erase(ctx context.Context, key backend.EventKey, operator *rendezvous.Operator) (store.Erasure, error) {
	e, f, w, err := u.erasing(ctx, key)
	if err != nil || e == nil {
		return store.Erasure{}, err
	}
	done := store.Erasure{Existed: true, Was: e.State}
	if e.State == rendezvous.EventConsumed { // EV-81
		place := placeOf(e)
		done.Journaled = &place
	}
	if e.Erased { // EV-82: nothing more changes
		return done, nil
	}
	if e.State == rendezvous.EventLive || e.State == rendezvous.EventClaimed {
		u.kill(e, rendezvous.DeadErased, actorOf(operator))
	}
	e.Erased, e.Shed, e.Digest = true, true, nil
	u.saveEvent(e)
	switch {
	case w == nil:
	case f.RunID == w.RunID && !f.Status.Terminal(): // EV-79: exactly the wait that held it is open again
		u.reopen(w)
		done.Reopened = &rendezvous.WaitID{RunID: w.RunID, Effect: w.Effect}
	default:
		u.dropWait(w)
	}
	return done, nil
}

// erasing reads the event and, when it is claimed, the wait that holds it, under the lock of that wait's workflow. Each is nil when there is none.
func (u *unit) erasing(ctx context.Context, key backend.EventKey) (*backend.Event, *flow, *backend.Wait, error) {
	rows, err := u.tx.EventsByKey(ctx, []backend.EventKey{key}, false)
	if err != nil {
		return nil, nil, nil, err
	}
	e := rows[key]
	switch {
	case e == nil:
		return nil, nil, nil, nil
	case e.Corrupt != nil:
		return nil, nil, nil, e.Corrupt
	case e.State != rendezvous.EventClaimed:
		return e, nil, nil, nil
	}
	claim := backend.WaitKey{Tenant: key.Tenant, RunID: e.ClaimRun, Effect: e.ClaimEffect}
	f, _, err := u.lockRun(ctx, key.Tenant, e.ClaimRun)
	if f == nil { // a claim of a run that is gone: the event alone is erased
		if rendezvous.CodeOf(err) == rendezvous.CodeNotFound {
			return e, nil, nil, nil
		}
		return nil, nil, nil, err
	}
	// Whether the claim still stands is guarded by the event's version.
	waits, err := u.tx.Waits(ctx, []backend.WaitKey{claim})
	if err != nil {
		return nil, nil, nil, err
	}
	w := waits[claim]
	if w == nil || w.Corrupt != nil || !holds(w, e) { // a row that does not decode stays as it is: it does not keep the payload from going
		return e, f, nil, nil
	}
	return e, f, w, nil
}

// actorOf is who asked, for the detail of a death.
func actorOf(o *rendezvous.Operator) string {
	if o == nil {
		return ""
	}
	return o.Actor
}

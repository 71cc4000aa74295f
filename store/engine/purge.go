package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

const purgeVerb = "purge_dead_letters"

// PurgeDeadLetters implements [store.DeadLetters].
func (t *tenant) PurgeDeadLetters(
	ctx context.Context, s store.Selection, operator rendezvous.Operator, op string, at time.Time,
) (store.Requeuing, error) {
	return t.treat(ctx, purgeVerb, s, operator, op, at, func(_ context.Context, u *unit, c choice) ([]store.Requeued, error) {
		return c.each(func(e *backend.Event) store.Requeued { return u.purge(&c, e) }), nil
	})
}

// purge takes a letter's payload and keys away for ever. Identity, digest, reason and minter stay: a replay is a duplicate and other content a conflict (SW-14).
func (u *unit) purge(c *choice, e *backend.Event) store.Requeued {
	switch {
	case e.Purged:
		return store.Requeued{Outcome: store.RequeuePurged}
	case !e.Dead():
		return store.Requeued{Outcome: store.RequeueNotDead, Place: placeOf(e)}
	}
	e.Purged, e.Shed = true, true // and the keys go with the payload
	c.sign(e)
	u.saveEvent(e)
	return store.Requeued{Outcome: store.RequeuePurged}
}

package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// RequeueDeadLetters implements [store.DeadLetters].
func (t *tenant) RequeueDeadLetters(
	ctx context.Context, s store.Selection, r store.Requeue, operator rendezvous.Operator, op string, at time.Time,
) (store.Requeuing, error) {
	if r.To != "" && r.To != store.RequeueBroadcast {
		if err := rendezvous.CheckID("to", r.To); err != nil {
			return store.Requeuing{}, err
		}
	}
	if r.ExpiresAt = rendezvous.DueInstant(r.ExpiresAt); !r.ExpiresAt.IsZero() {
		if err := rendezvous.CheckInstant("expires_at", r.ExpiresAt); err != nil {
			return store.Requeuing{}, err
		}
	}
	return t.treat(ctx, "requeue_dead_letters", s, operator, op, at, func(ctx context.Context, u *unit, c choice) ([]store.Requeued, error) {
		if err := checkNewExpiry(r.ExpiresAt, u.at); err != nil {
			return nil, err
		}
		q := requeuing{unit: u, Requeue: r, choice: c}
		if err := q.read(ctx); err != nil {
			return nil, err
		}
		return c.each(q.one), nil
	})
}

// checkNewExpiry judges the expiry that a requeue gives: ahead, as far as a producer's may be.
func checkNewExpiry(expires, at time.Time) error {
	switch {
	case expires.IsZero():
		return nil
	case !at.Before(expires):
		return rendezvous.InvalidField("expires_at", "%s is past, so the events would meet nobody; give a later one or none", rendezvous.FormatInstant(expires)).
			With("limit", rendezvous.FormatInstant(at)).With("value", rendezvous.FormatInstant(expires))
	}
	a := arrival{event: rendezvous.Event{ExpiresAt: expires}}
	return a.checkExpiry(at)
}

// requeuing is one try of a requeue. Rows change as items are judged, so a later item sees what an earlier one did.
type requeuing struct {
	*unit
	store.Requeue
	choice
	runs map[backend.RunKey]*backend.Run
	kept map[backend.RunKey]int
}

// target is whom a letter would be for.
func (q *requeuing) target(e *backend.Event) string {
	switch q.To {
	case "":
		return e.Target
	case store.RequeueBroadcast:
		return ""
	}
	return q.To
}

// read locks the workflows of the runs that letters would be for, so that none of them concludes meanwhile (EV-53).
func (q *requeuing) read(ctx context.Context) error {
	var keys []backend.RunKey
	for _, e := range q.events {
		if target := q.target(e); e.Corrupt == nil && e.Dead() && target != "" {
			keys = append(keys, backend.RunKey{Tenant: e.Tenant, ID: target})
		}
	}
	if q.To != "" && q.To != store.RequeueBroadcast {
		keys = append(keys, backend.RunKey{Tenant: q.tenant, ID: q.To})
	}
	if keys = distinct(keys); len(keys) == 0 {
		return nil
	}
	var err error
	if q.runs, err = q.lockRuns(ctx, keys); err != nil {
		return err
	}
	if q.To != "" && q.To != store.RequeueBroadcast && q.runs[backend.RunKey{Tenant: q.tenant, ID: q.To}] == nil {
		return runNotFound(q.To)
	}
	kept, err := q.tx.KeptCounts(ctx, keys)
	q.kept = map[backend.RunKey]int{}
	for k, n := range kept {
		q.kept[k] = n
	}
	return err
}

// one requeues a letter, or says why not.
func (q *requeuing) one(e *backend.Event) store.Requeued {
	expires := q.ExpiresAt
	if expires.IsZero() {
		expires = e.ExpiresAt
	}
	switch {
	case e.Purged:
		return store.Requeued{Outcome: store.RequeuePurged}
	case e.Op == q.op && e.Requeues > 0: // SW-11: once; what is live still is offered again
		if e.Live() {
			q.notices.Events = append(q.notices.Events, eventRef(e))
		}
		return store.Requeued{Outcome: store.RequeueRequeued, Number: e.Number}
	case !e.Dead():
		return store.Requeued{Outcome: store.RequeueNotDead, Place: placeOf(e)}
	case e.Erased: // EV-82
		return store.Requeued{Outcome: store.RequeueErased}
	case !expires.IsZero() && !q.at.Before(expires):
		return store.Requeued{Outcome: store.RequeueExpired}
	}
	target := q.target(e)
	if no := q.refused(e, target); no != nil {
		return *no
	}
	e.Target, e.ExpiresAt = target, expires
	settleOffer(e)
	e.DeadAt = time.Time{} // why it died stays readable
	e.Requeues++
	q.sign(e)
	q.revive(e)
	return store.Requeued{Outcome: store.RequeueRequeued, Number: e.Number}
}

// refused says why the run a letter would be for cannot have it (SW-13), and counts it otherwise. One that never was started may still come.
func (q *requeuing) refused(e *backend.Event, target string) *store.Requeued {
	if target == "" {
		return nil
	}
	key := backend.RunKey{Tenant: e.Tenant, ID: target}
	if run := q.runs[key]; run != nil {
		switch f := q.flowOf(run); {
		case f == nil || f.Corrupt != nil:
			return &store.Requeued{Err: backend.Corrupt("workflow row", "missing or damaged", "tenant", run.Tenant, "workflow", run.WorkflowID)}
		case !current(f, run):
			return &store.Requeued{Outcome: store.RequeueAddresseeConcluded, CurrentRun: f.RunID}
		}
	}
	if q.kept[key] >= rendezvous.MaxKeptPerRun {
		return &store.Requeued{Err: keptFull(target)}
	}
	q.kept[key]++
	return nil
}

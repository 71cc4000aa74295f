package engine

import (
	"context"
	"errors"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// How long a take holds a parked wait, or an unmet event the first time.
const (
	minHold     = time.Second
	maxHold     = 300 * time.Second
	defaultHold = 30 * time.Second
)

// checkHold resolves a hold.
func checkHold(hold time.Duration) (time.Duration, error) {
	if hold == 0 {
		return defaultHold, nil
	}
	if hold < minHold || hold > maxHold {
		return 0, rendezvous.InvalidField("hold", "%s is outside %s..%s", hold, minHold, maxHold).
			With("limit", maxHold.String()).With("value", hold.String())
	}
	return hold, nil
}

var errTakeLost = errors.New("a worker took it and neither delivered it nor put it off")

// TakeParked implements [store.Redeliverer].
func (v scoped) TakeParked(ctx context.Context, limit int, hold time.Duration) (store.Taken[store.TakenWait], error) {
	return v.all().takeParked(ctx, limit, hold)
}

// takeParked is TakeParked in the shards that are owned. A page is at most one batch of DeliverParked.
func (w enumeration) takeParked(ctx context.Context, limit int, hold time.Duration) (store.Taken[store.TakenWait], error) {
	limit, err := rendezvous.PageLimit(limit, rendezvous.MaxBatchItems, rendezvous.MaxBatchItems)
	if err != nil {
		return store.Taken[store.TakenWait]{}, err
	}
	if hold, err = checkHold(hold); err != nil {
		return store.Taken[store.TakenWait]{}, err
	}
	var taken store.Taken[store.TakenWait]
	_, err = w.update(ctx, "take_parked", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		taken, err = u.takeParked(ctx, w.owned, limit, hold)
		return err
	})
	if err != nil {
		return store.Taken[store.TakenWait]{}, err
	}
	return taken, nil
}

// takeParked sets takes on due waits. A take is written without the workflow's lock: its taker waits for nobody (R7).
func (u *unit) takeParked(ctx context.Context, shards []int, limit int, hold time.Duration) (store.Taken[store.TakenWait], error) {
	rows, more, err := u.tx.DueParked(ctx, shards, limit)
	taken := store.Taken[store.TakenWait]{Saturated: more}
	if err != nil || len(rows) == 0 {
		return taken, err
	}
	tokens, err := u.tx.NewTakes(ctx, len(rows))
	if err != nil {
		return taken, err
	}
	for i, w := range rows {
		if w.Take != 0 && !w.TakeSettled { // it ran out: its worker was lost
			u.countFailure(w, errTakeLost.Error(), 0)
		}
		w.Take, w.TakeUntil, w.TakeSettled = tokens[i], rendezvous.DueInstant(u.now.Add(hold)), false
		if !w.QuarantinedAt.IsZero() {
			w.TakeUntil, w.TakeSettled = time.Time{}, true
			continue
		}
		u.saveWait(w)
		taken.Rows = append(taken.Rows, store.TakenWait{Tenant: w.Tenant, WorkflowID: w.WorkflowID, WaitRow: waitRow(w), Take: w.Take})
	}
	return taken, nil
}

// RetryWait implements [store.Parked].
func (t *tenant) RetryWait(ctx context.Context, id rendezvous.WaitID, operator *rendezvous.Operator) (bool, error) {
	if err := checkWaitID(id); err != nil {
		return false, err
	}
	if err := operator.Check("operator"); err != nil {
		return false, err
	}
	key := backend.WaitKey{Tenant: t.name, RunID: id.RunID, Effect: id.Effect}
	var retried bool
	_, err := t.update(ctx, "retry_wait", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		retried, err = u.retryWait(ctx, key)
		return err
	})
	return retried && err == nil, err
}

// retryWait makes a quarantined wait due now, as if it had never been tried (EV-62). Its event stays claimed all the while.
func (u *unit) retryWait(ctx context.Context, key backend.WaitKey) (bool, error) {
	if _, err := u.lockRuns(ctx, []backend.RunKey{{Tenant: key.Tenant, ID: key.RunID}}); err != nil {
		return false, err
	}
	rows, err := u.tx.Waits(ctx, []backend.WaitKey{key})
	if err != nil {
		return false, err
	}
	w := rows[key]
	if w == nil || w.QuarantinedAt.IsZero() {
		return false, nil
	}
	w.Attempts, w.NextAttemptAt, w.QuarantinedAt = 0, u.now, time.Time{}
	w.TakeUntil, w.TakeSettled = time.Time{}, true
	u.saveWait(w)
	return true, nil
}

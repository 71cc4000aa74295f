package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// timerNotice is how near an instant is that its shard is told of: two probe periods of the timer-worker, which finds all others itself (timers.md section 2).
const timerNotice = 10 * time.Second

// arming is what a unit does to timer rows. Rows go before others are written, so a row in both is a new one.
type arming struct {
	rows map[backend.TimerKey]*backend.Timer // to be written
	gone map[backend.TimerKey]struct{}
}

// arm makes a live arming of f's current run and counts it. over says that a live one stood under its key, which is over (TM-17).
func (u *unit) arm(f *flow, t backend.Timer, over bool) {
	if !over {
		f.LiveTimers++
	}
	u.writeTimer(f, t)
}

// writeTimer writes the row of an arming that the count knows.
func (u *unit) writeTimer(f *flow, t backend.Timer) {
	t.Tenant, t.WorkflowID, t.RunID, t.Shard = f.Tenant, f.ID, f.RunID, f.Shard
	t.DueAt, t.ReadyAt = t.FireAt, t.FireAt
	u.changeTimer(&t)
	if t.FireAt.Before(u.now.Add(timerNotice)) {
		u.notices.Timers = append(u.notices.Timers, store.TimerRef{Shard: f.Shard, FireAt: t.FireAt})
	}
}

// changeTimer puts a row among the changes, in the place of what this unit had for its key.
func (u *unit) changeTimer(t *backend.Timer) {
	if u.timers.rows == nil {
		u.timers.rows = map[backend.TimerKey]*backend.Timer{}
	}
	if before := u.timers.rows[t.Key()]; before != nil {
		*before = *t
		return
	}
	u.timers.rows[t.Key()] = t
	u.ch.Timers = append(u.ch.Timers, t)
}

// disarm ends a live arming of f's current run. A run that has just ended counts none.
func (u *unit) disarm(f *flow, key backend.TimerKey) {
	if f != nil && !f.Status.Terminal() && f.LiveTimers > 0 {
		f.LiveTimers--
	}
	u.dropTimer(key)
}

// dropTimer makes a row go, whether it is stored or new in this unit.
func (u *unit) dropTimer(key backend.TimerKey) {
	if t := u.timers.rows[key]; t != nil {
		delete(u.timers.rows, key)
		u.ch.Timers = slices.DeleteFunc(u.ch.Timers, func(o *backend.Timer) bool { return o == t })
	}
	if u.timers.gone == nil {
		u.timers.gone = map[backend.TimerKey]struct{}{}
	}
	if _, twice := u.timers.gone[key]; !twice {
		u.timers.gone[key] = struct{}{}
		u.ch.GoneTimers = append(u.ch.GoneTimers, key)
	}
}

// dropDeadline makes the timer of a wait's deadline go with the wait.
func (u *unit) dropDeadline(w *backend.Wait) {
	if w.Deadline.IsZero() {
		return
	}
	key := waitTimer(w)
	if _, gone := u.timers.gone[key]; gone && u.timers.rows[key] == nil {
		return // with its run
	}
	if w.Version == 0 && u.timers.rows[key] == nil {
		return // it was answered before it was armed
	}
	f := u.flows[flowKey(w)]
	if f != nil && f.RunID != w.RunID { // left over by a restore: the run it was counted for is over
		f = nil
	}
	u.disarm(f, key)
}

func waitTimer(w *backend.Wait) backend.TimerKey {
	return backend.TimerKey{Tenant: w.Tenant, WorkflowID: w.WorkflowID, TimerID: rendezvous.WaitTimerID(w.RunID, w.Effect)}
}

func (f *flow) timerKey(id string) backend.TimerKey {
	return backend.TimerKey{Tenant: f.Tenant, WorkflowID: f.ID, TimerID: id}
}

// timersOf is the timers of those workflows that are due at until (zero: all), as this unit is about to leave them.
func (u *unit) timersOf(ctx context.Context, keys []backend.WorkflowKey, until time.Time) ([]*backend.Timer, error) {
	rows, err := u.tx.TimersOf(ctx, keys, until)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(t *backend.Timer) bool {
		_, gone := u.timers.gone[t.Key()]
		return gone || u.timers.rows[t.Key()] != nil
	})
	for _, t := range u.ch.Timers {
		if slices.Contains(keys, backend.WorkflowKey{Tenant: t.Tenant, ID: t.WorkflowID}) && (until.IsZero() || !t.FireAt.After(until)) {
			rows = append(rows, t)
		}
	}
	return rows, nil
}

// retireTimers makes every timer of f's run go, of every class, held or not, and answers how many: part of its seal (TM-20). No record is written.
func (u *unit) retireTimers(ctx context.Context, f *flow) (int, error) {
	if f.LiveTimers == 0 && len(u.timers.rows) == 0 {
		return 0, nil
	}
	rows, err := u.timersOf(ctx, []backend.WorkflowKey{f.Key()}, time.Time{})
	for _, t := range rows {
		u.dropTimer(t.Key())
	}
	f.LiveTimers = 0
	return len(rows), err
}

// earliest is one notice per shard.
func earliest(refs []store.TimerRef) []store.TimerRef {
	if len(refs) < 2 {
		return refs
	}
	slices.SortFunc(refs, func(a, b store.TimerRef) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), a.FireAt.Compare(b.FireAt))
	})
	return slices.CompactFunc(refs, func(a, b store.TimerRef) bool { return a.Shard == b.Shard })
}

// stamp is the recorded_at of the next record of f.
func (u *unit) stamp(f *flow) time.Time {
	if f.UpdatedAt.After(u.now) {
		return f.UpdatedAt
	}
	return u.now
}

// withInstant is a record's data with the instant that was due under field, and without the duration it may have been given as. Unknown members stay.
func withInstant(data json.RawMessage, field, after string, at time.Time) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &members); err != nil {
			return nil, err
		}
	}
	delete(members, after)
	text, err := json.Marshal(rendezvous.FormatInstant(at))
	if err != nil {
		return nil, err
	}
	members[field] = text
	raw, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	return rendezvous.CanonicalJSON(raw)
}

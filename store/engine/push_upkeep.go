package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// DuePushRuns implements [store.PushQueue].
func (e *Engine) DuePushRuns(ctx context.Context, before time.Time, limit int) ([]store.DuePushRun, bool, error) {
	limit, err := rendezvous.PageLimit(limit, rendezvous.MaxBatchItems, rendezvous.MaxBatchItems)
	if err != nil {
		return nil, false, err
	}
	if err := rendezvous.CheckInstant("before", before); err != nil {
		return nil, false, err
	}
	var out []store.DuePushRun
	more := false
	err = e.view(ctx, "due_push_runs", func(ctx context.Context, r backend.Reader) error {
		runs, err := r.DuePushRuns(ctx, rendezvous.Instant(before), limit+1)
		if err != nil {
			return err
		}
		if more = len(runs) > limit; more {
			runs = runs[:limit]
		}
		keys := make([]backend.WorkflowKey, len(runs))
		for i, d := range runs {
			keys[i] = backend.WorkflowKey{Tenant: d.Run.Tenant, ID: d.WorkflowID}
		}
		flows, err := r.Workflows(ctx, backend.SortedKeys(keys))
		for i, d := range runs {
			row := store.DuePushRun{PushRun: store.PushRun{Tenant: d.Run.Tenant, RunID: d.Run.ID}, WorkflowID: d.WorkflowID, Since: d.Since, Rows: d.Rows}
			if w := flows[keys[i]]; w != nil {
				row.Head = w.Head
			}
			out = append(out, row)
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return out, more, nil
}

// ParkAgedPushes implements [store.PushQueue].
func (e *Engine) ParkAgedPushes(ctx context.Context, maxAge time.Duration, limit int) ([]store.PushItem, bool, error) {
	limit, err := rendezvous.PageLimit(limit, rendezvous.MaxBatchItems, rendezvous.MaxBatchItems)
	if err != nil {
		return nil, false, err
	}
	if maxAge < 0 {
		return nil, false, rendezvous.InvalidField("max_age", "%s is negative", maxAge).With("value", maxAge.String())
	}
	if maxAge == 0 {
		maxAge = store.DefaultPushMaxAge
	}
	var parked []store.PushItem
	more := false
	_, err = e.update(ctx, "park_aged_pushes", time.Time{}, func(ctx context.Context, u *unit) error {
		parked = nil
		rows, left, err := u.tx.TakeAgedPushes(ctx, saturated(u.now, maxAge), limit)
		more = left
		for _, p := range rows {
			if p.Corrupt != nil {
				continue
			}
			u.revoke(p)
			u.park(p, rendezvous.ParkExpired, p.Error)
			u.savePush(p)
			parked = append(parked, store.PushItem{Tenant: p.Tenant, PushKey: store.PushKey{RunID: p.RunID, ID: p.ID}})
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return parked, more, nil
}

// saturated is now less a window, not before the first instant there is (S9).
func saturated(now time.Time, window time.Duration) time.Time {
	first := time.Date(1, 1, 1, 0, 0, 0, int(time.Microsecond), time.UTC)
	if at := now.Add(-window); at.After(first) {
		return rendezvous.Instant(at)
	}
	return first
}

// maxTrimmed is how many entries of logs one page removes.
const maxTrimmed = 5000

// maxLongLogs is how many registrations a page trims by count.
const maxLongLogs = 100

// TrimPushLogs implements [store.PushQueue].
func (e *Engine) TrimPushLogs(ctx context.Context, keep int, age time.Duration, limit int) (int, bool, error) {
	limit, err := rendezvous.PageLimit(limit, maxTrimmed, maxTrimmed)
	if err != nil {
		return 0, false, err
	}
	if keep < 0 {
		return 0, false, rendezvous.InvalidField("keep", "%d is negative", keep).With("value", keep)
	}
	if age < 0 {
		return 0, false, rendezvous.InvalidField("age", "%s is negative", age).With("value", age.String())
	}
	if keep == 0 {
		keep = store.DefaultPushLogCount
	}
	if age == 0 {
		age = store.DefaultPushLogAge
	}
	trim := trimming{}
	_, err = e.update(ctx, "trim_push_logs", time.Time{}, func(ctx context.Context, u *unit) error {
		trim = trimming{unit: u, room: limit, rows: map[backend.PushKey]*backend.Push{}, taken: map[backend.PushLogKey]struct{}{}}
		if err := trim.long(ctx, keep); err != nil {
			return err
		}
		if err := trim.old(ctx, saturated(u.now, age)); err != nil {
			return err
		}
		return trim.gone(ctx)
	})
	if err != nil {
		return 0, false, err
	}
	return limit - trim.room, trim.more, nil
}

// trimming is one page of TrimPushLogs.
type trimming struct {
	*unit
	room  int
	more  bool
	rows  map[backend.PushKey]*backend.Push // locked
	taken map[backend.PushLogKey]struct{}
}

func (t *trimming) take(k backend.PushLogKey) {
	if _, twice := t.taken[k]; twice {
		return
	}
	t.taken[k] = struct{}{}
	t.ch.GonePushLog = append(t.ch.GonePushLog, k)
	t.room--
	if p := t.rows[k.PushKey]; p != nil && p.Corrupt == nil && p.State != backend.PushGone && p.Incarnation == k.Incarnation {
		p.Logged = max(0, p.Logged-1)
		t.savePush(p)
	}
}

// long trims logs beyond their count.
func (t *trimming) long(ctx context.Context, keep int) error {
	rows, err := t.tx.LongPushLogs(ctx, keep, maxLongLogs)
	t.more = len(rows) == maxLongLogs
	for _, p := range rows {
		t.rows[p.Key()] = p
		if p.Corrupt != nil {
			continue
		}
		if t.room == 0 {
			t.more = true
			break
		}
		over := min(p.Logged-keep, t.room)
		keys, err := t.tx.OldestPushLog(ctx, p.Key(), p.Incarnation, over)
		if err != nil {
			return err
		}
		for _, k := range keys {
			t.take(k)
		}
		if len(keys) < over { // its count was off, as after a restore
			p.Logged = keep
			t.savePush(p)
		}
	}
	return err
}

// old trims entries past their age.
func (t *trimming) old(ctx context.Context, before time.Time) error {
	if t.room == 0 {
		t.more = true
		return nil
	}
	keys, err := t.tx.OldPushLog(ctx, before, t.room)
	if err != nil || len(keys) == 0 {
		return err
	}
	t.more = t.more || len(keys) == t.room
	var own []backend.PushKey
	for _, k := range keys {
		if t.rows[k.PushKey] == nil {
			own = append(own, k.PushKey)
		}
	}
	rows, err := t.tx.LockPushes(ctx, backend.SortedKeys(own))
	for k, p := range rows {
		t.rows[k] = p
	}
	for _, k := range keys {
		t.take(k)
	}
	return err
}

// gone drops what is left of deleted registrations whose lease is over.
func (t *trimming) gone(ctx context.Context) error {
	rows, err := t.tx.GonePushes(ctx, rendezvous.MaxBatchItems)
	for _, p := range rows {
		t.ch.GonePushes = append(t.ch.GonePushes, p.Key())
	}
	return err
}

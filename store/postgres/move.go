package postgres

import (
	"context"
	"fmt"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var (
	_ backend.Source = (*reader)(nil)
	_ backend.Target = (*transaction)(nil)
)

// found is the place of a row and what its key does not tell of it.
type found struct {
	backend.Position
	bytes  int64
	closes bool
}

// walk answers the next places of a kind behind a position.
func (r *reader) walk(ctx context.Context, kind backend.Kind, after backend.Position, limit int) ([]found, error) {
	var sql string
	var key []any
	switch kind {
	case backend.Workflows:
		sql, key = scanWorkflowsSQL, []any{after.Tenant, after.ID}
	case backend.Runs:
		sql, key = scanRunsSQL, []any{after.Tenant, after.ID}
	case backend.History:
		sql, key = scanHistorySQL, []any{after.Tenant, after.ID, after.Number}
	case backend.Batches:
		sql, key = scanBatchesSQL, []any{after.Tenant, after.ID, after.Part}
	case backend.Left:
		sql, key = scanRemnantsSQL, []any{after.Tenant, after.ID}
	case backend.Events:
		sql, key = scanEventsSQL, []any{after.Number}
	case backend.Waits:
		sql, key = scanWaitsSQL, []any{after.Tenant, after.ID, after.Part}
	case backend.Marks:
		sql, key = scanWokenSQL, []any{after.Tenant, after.ID}
	case backend.Timers:
		sql, key = scanTimersSQL, []any{after.Tenant, after.ID, after.Part}
	case backend.ShardLeases:
		sql, key = scanShardLeasesSQL, []any{after.ID, after.Number}
	case backend.Pushes:
		sql, key = scanPushesSQL, []any{after.Tenant, after.ID, after.Part}
	default:
		return nil, fmt.Errorf("store/postgres: no kind of rows is called %q", kind)
	}
	var rows []found
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, found{
			Position: backend.Position{Tenant: c.Text(), ID: c.Text(), Part: c.Text(), Number: c.Bigint()}, bytes: c.Bigint(), closes: c.Boolean(),
		})
		return c.Corrupt(string(kind)+" row", "place", len(rows))
	}, append(key, int64(max(limit, 0)))...)
	return rows, err
}

// Scan implements [backend.Source]: it walks keys, and reads those rows as verbs do.
func (r *reader) Scan(ctx context.Context, kind backend.Kind, after backend.Position, limit, maxBytes int) (*backend.Page, error) {
	if kind == backend.PushLogs {
		return r.scanPushLog(ctx, after, limit, maxBytes)
	}
	rows, err := r.walk(ctx, kind, after, limit)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for i, row := range rows {
		if total += row.bytes; i > 0 && total > int64(maxBytes) {
			rows = rows[:i]
			break
		}
	}
	p := &backend.Page{}
	if len(rows) == 0 {
		return p, nil
	}
	return p, r.fetch(ctx, kind, rows, p)
}

// fetch reads the rows of those places.
func (r *reader) fetch(ctx context.Context, kind backend.Kind, rows []found, p *backend.Page) error {
	switch kind {
	case backend.Workflows:
		return fetch(ctx, rows, r.Workflows, flowAt, func(_ found, w *backend.Workflow) error { return p.AddWorkflow(w) })
	case backend.Runs:
		at := func(f found) backend.RunKey { return backend.RunKey{Tenant: f.Tenant, ID: f.ID} }
		return fetch(ctx, rows, r.Runs, at, func(_ found, x *backend.Run) error { p.AddRun(x); return nil })
	case backend.History:
		at := func(f found) backend.RecordKey {
			return backend.RecordKey{Tenant: f.Tenant, WorkflowID: f.ID, Seq: f.Number}
		}
		return fetch(ctx, rows, r.RecordsAt, at, func(f found, rec rendezvous.Record) error { return p.AddRecord(f.Tenant, f.ID, rec, f.closes) })
	case backend.Batches:
		at := func(f found) backend.BatchKey { return backend.BatchKey{Tenant: f.Tenant, RunID: f.ID, ID: f.Part} }
		return fetch(ctx, rows, r.Batches, at, func(_ found, b *backend.Batch) error { p.AddBatch(b); return nil })
	case backend.Left:
		at := func(f found) backend.RunKey { return backend.RunKey{Tenant: f.Tenant, ID: f.ID} }
		return fetch(ctx, rows, r.remnantsAt, at, func(_ found, x *backend.Remnant) error { p.AddRemnant(x); return nil })
	case backend.Events:
		whole := func(ctx context.Context, numbers []int64) (map[int64]*backend.Event, error) {
			return r.EventsByNumber(ctx, numbers, true)
		}
		at := func(f found) int64 { return f.Number }
		return fetch(ctx, rows, whole, at, func(_ found, e *backend.Event) error { return p.AddEvent(e) })
	case backend.Waits:
		at := func(f found) backend.WaitKey { return backend.WaitKey{Tenant: f.Tenant, RunID: f.ID, Effect: f.Part} }
		return fetch(ctx, rows, r.Waits, at, func(_ found, w *backend.Wait) error { return p.AddWait(w) })
	case backend.Timers:
		at := func(f found) backend.TimerKey {
			return backend.TimerKey{Tenant: f.Tenant, WorkflowID: f.ID, TimerID: f.Part}
		}
		return fetch(ctx, rows, r.Timers, at, func(_ found, t *backend.Timer) error { return p.AddTimer(t) })
	case backend.ShardLeases:
		at := func(f found) backend.ShardKey { return backend.ShardKey{Pool: f.ID, Shard: int(f.Number)} }
		return fetch(ctx, rows, r.leasesByKey, at, func(_ found, l *backend.ShardLease) error { p.AddShardLease(l); return nil })
	case backend.Pushes:
		at := func(f found) backend.PushKey { return backend.PushKey{Tenant: f.Tenant, RunID: f.ID, ID: f.Part} }
		return fetch(ctx, rows, r.Pushes, at, func(_ found, x *backend.Push) error { return p.AddPush(x) })
	}
	return fetch(ctx, rows, r.Woken, flowAt, func(_ found, m *backend.Woken) error { p.AddMark(m); return nil })
}

func flowAt(f found) backend.WorkflowKey { return backend.WorkflowKey{Tenant: f.Tenant, ID: f.ID} }

func fetch[K comparable, V any](
	ctx context.Context, rows []found, read func(ctx context.Context, keys []K) (map[K]V, error), at func(f found) K, add func(f found, row V) error,
) error {
	keys := make([]K, len(rows))
	for i, f := range rows {
		keys[i] = at(f)
	}
	values, err := read(ctx, keys)
	if err != nil {
		return err
	}
	for i, f := range rows {
		row, ok := values[keys[i]]
		if !ok { // it went between the two statements, so this is no snapshot
			return backend.ErrRetry
		}
		if err := add(f, row); err != nil {
			return err
		}
	}
	return nil
}

// About implements [backend.Source]. Names of kinds are names of tables.
func (r *reader) About(ctx context.Context, kind backend.Kind) (n int64, err error) {
	err = r.query(ctx, aboutSQL, func(c *columns) error { n = max(c.Bigint(), 0); return nil }, string(kind))
	return n, err
}

// Given implements [backend.Source].
func (r *reader) Given(ctx context.Context) (n backend.Numbers, err error) {
	err = r.query(ctx, givenSQL, func(c *columns) error {
		n = backend.Numbers{Event: c.Bigint(), Wait: c.Bigint(), Take: c.Bigint()}
		return nil
	})
	return n, err
}

// Unfinished implements [backend.Source].
func (r *reader) Unfinished(ctx context.Context) (mark string, err error) {
	err = r.query(ctx, copyMarkSQL, func(c *columns) error { mark = c.Text(); return nil })
	return mark, err
}

// Mark implements [backend.Target].
func (t *transaction) Mark(ctx context.Context, was, mark string) error {
	var sql string
	var args []any
	switch {
	case was == "":
		sql, args = copyMarkFirstSQL, []any{mark}
	case mark == "":
		sql, args = copyMarkLastSQL, []any{was}
	default:
		sql, args = copyMarkNextSQL, []any{was, mark}
	}
	tag, err := t.conn.Exec(ctx, sql, args...)
	switch {
	case err != nil:
		return translate(err)
	case tag.RowsAffected() != 1:
		return backend.ErrStale
	}
	return nil
}

// Raise implements [backend.Target]. A sequence stays raised when the transaction is undone.
func (t *transaction) Raise(ctx context.Context, n backend.Numbers) error {
	return t.query(ctx, raiseSQL, func(*columns) error { return nil }, n.Event, n.Wait, n.Take)
}

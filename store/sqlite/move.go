package sqlite

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

var (
	_ backend.Source = (*reader)(nil)
	_ backend.Target = (*transaction)(nil)
)

// The walks over all rows of each kind, by their primary keys; waits by their identity.
const (
	scanWorkflowsSQL = `
SELECT` + workflowColumns + ` FROM workflows w WHERE (w.tenant, w.workflow_id) > (?, ?) ORDER BY w.tenant, w.workflow_id LIMIT ? + 0`
	scanRunsSQL = `
SELECT` + runColumns + ` FROM runs r WHERE (r.tenant, r.run_id) > (?, ?) ORDER BY r.tenant, r.run_id LIMIT ? + 0`
	scanHistorySQL = `
SELECT ` + recordColumns + `, h.closes FROM history h WHERE (h.tenant, h.workflow_id, h.seq) > (?, ?, ?) ORDER BY h.tenant, h.workflow_id, h.seq LIMIT ? + 0`
	scanBatchesSQL = `
SELECT` + batchColumns + ` FROM batches b WHERE (b.tenant, b.run_id, b.batch_id) > (?, ?, ?) ORDER BY b.tenant, b.run_id, b.batch_id LIMIT ? + 0`
	scanRemnantsSQL = `
SELECT` + remnantColumns + ` FROM remnants x WHERE (x.tenant, x.run_id) > (?, ?) ORDER BY x.tenant, x.run_id LIMIT ? + 0`
	scanEventsSQL = `
SELECT` + eventColumns + wholePayload + ` FROM events e WHERE e.number > ? ORDER BY e.number LIMIT ? + 0`
	scanWaitsSQL = `
SELECT` + waitColumns + ` FROM waits w WHERE (w.tenant, w.run_id, w.effect) > (?, ?, ?) ORDER BY w.tenant, w.run_id, w.effect LIMIT ? + 0`
	scanTimersSQL = `
SELECT` + timerColumns + ` FROM timers t WHERE (t.tenant, t.workflow_id, t.timer_id) > (?, ?, ?) ORDER BY t.tenant, t.workflow_id, t.timer_id LIMIT ? + 0`
	scanShardLeasesSQL = `
SELECT` + shardLeaseColumns + ` FROM shard_leases l WHERE (l.pool, l.shard) > (?, ?) ORDER BY l.pool, l.shard LIMIT ? + 0`
	scanPushesSQL = `
SELECT` + pushColumns + ` FROM push_registrations p WHERE (p.tenant, p.run_id, p.id) > (?, ?, ?) ORDER BY p.tenant, p.run_id, p.id LIMIT ? + 0`
	scanPushLogSQL = `
SELECT` + pushLogColumns + ` FROM push_log l WHERE (l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no) > (?, ?, ?, ?, ?)
ORDER BY l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no LIMIT ? + 0`
	scanMarksSQL = `
SELECT ` + wokenColumns + ` FROM woken m WHERE (m.tenant, m.workflow_id) > (?, ?) ORDER BY m.tenant, m.workflow_id LIMIT ? + 0`
)

// Scan implements [backend.Source].
func (r *reader) Scan(ctx context.Context, kind backend.Kind, after backend.Position, limit, maxBytes int) (*backend.Page, error) {
	p := &backend.Page{}
	walk := func(sql string, add func(c *columns) error, key ...any) (*backend.Page, error) {
		err := r.query(ctx, sql, func(c *columns) error {
			if err := add(c); err != nil {
				return err
			}
			if p.Bytes >= maxBytes {
				return errEnough
			}
			return nil
		}, append(key, max(limit, 0))...)
		return p, err
	}
	switch kind {
	case backend.Workflows:
		return walk(scanWorkflowsSQL, func(c *columns) error { return p.AddWorkflow(row.Workflow(c)) }, after.Tenant, after.ID)
	case backend.Runs:
		return walk(scanRunsSQL, func(c *columns) error {
			run, err := row.Run(c)
			p.AddRun(run)
			return err
		}, after.Tenant, after.ID)
	case backend.History:
		return walk(scanHistorySQL, func(c *columns) error {
			tenant, workflow := c.Text(), c.Text()
			rec, err := row.Record(c, tenant, workflow)
			wrong := p.AddRecord(tenant, workflow, rec, c.Boolean())
			return cmp.Or(err, wrong)
		}, after.Tenant, after.ID, after.Number)
	case backend.Batches:
		return walk(scanBatchesSQL, func(c *columns) error {
			b, err := row.Batch(c)
			p.AddBatch(b)
			return err
		}, after.Tenant, after.ID, after.Part)
	case backend.Left:
		return walk(scanRemnantsSQL, func(c *columns) error {
			x, err := row.Remnant(c)
			p.AddRemnant(x)
			return err
		}, after.Tenant, after.ID)
	case backend.Events:
		return walk(scanEventsSQL, func(c *columns) error { return p.AddEvent(r.decodeEvent(c)) }, after.Number)
	case backend.Waits:
		return walk(scanWaitsSQL, func(c *columns) error { return p.AddWait(row.Wait(c)) }, after.Tenant, after.ID, after.Part)
	case backend.Marks:
		return walk(scanMarksSQL, func(c *columns) error {
			m, err := row.Woken(c)
			p.AddMark(m)
			return err
		}, after.Tenant, after.ID)
	case backend.Timers:
		return walk(scanTimersSQL, func(c *columns) error { return p.AddTimer(row.Timer(c)) }, after.Tenant, after.ID, after.Part)
	case backend.ShardLeases:
		return walk(scanShardLeasesSQL, func(c *columns) error {
			l, err := row.ShardLease(c)
			p.AddShardLease(l)
			return err
		}, after.ID, after.Number)
	case backend.Pushes:
		return walk(scanPushesSQL, func(c *columns) error { return p.AddPush(row.Push(c)) }, after.Tenant, after.ID, after.Part)
	case backend.PushLogs:
		return walk(scanPushLogSQL, func(c *columns) error {
			e, err := row.PushLogEntry(c)
			p.AddPushLog(e)
			return err
		}, after.Tenant, after.ID, after.Part, after.Incarnation, after.Number)
	}
	return nil, fmt.Errorf("store/sqlite: no kind of rows is called %q", kind)
}

// About implements [backend.Source]. Names of kinds are names of tables.
func (r *reader) About(ctx context.Context, kind backend.Kind) (n int64, err error) {
	err = r.query(ctx, "SELECT count(*) FROM "+string(kind), func(c *columns) error { n = c.Count(); return nil })
	return n, err
}

// Given implements [backend.Source].
func (r *reader) Given(ctx context.Context) (backend.Numbers, error) {
	counts, err := readCounters(ctx, r.conn)
	return backend.Numbers{Event: counts[eventNumber].last, Wait: counts[waitNumber].last, Take: counts[takeToken].last}, err
}

// Unfinished implements [backend.Source].
func (r *reader) Unfinished(ctx context.Context) (mark string, err error) {
	err = r.query(ctx, "SELECT value FROM meta WHERE name = 'copy'", func(c *columns) error { mark = c.Text(); return nil })
	return mark, err
}

// Mark implements [backend.Target].
func (t *transaction) Mark(ctx context.Context, was, mark string) error {
	now, err := t.Unfinished(ctx)
	switch {
	case err != nil:
		return err
	case now != was:
		return backend.ErrStale
	case mark == "":
		_, err = t.exec("DELETE FROM meta WHERE name = 'copy'")
	default:
		_, err = t.exec("INSERT INTO meta (name, value) VALUES ('copy', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", mark)
	}
	return err
}

// Raise implements [backend.Target].
func (t *transaction) Raise(_ context.Context, n backend.Numbers) error {
	for kind, value := range [kinds]int64{eventNumber: n.Event, waitNumber: n.Wait, takeToken: n.Take} {
		t.counts[kind].last = max(t.counts[kind].last, value)
	}
	return nil
}

// checkWhole refuses a store that a copy is under way to.
func (b *Backend) checkWhole(ctx context.Context) error {
	mark, err := (&reader{conn: b.conn}).Unfinished(ctx)
	if err != nil {
		return err
	}
	return backend.HalfCopied(mark)
}

package sqlite

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// Dead letters by age. Parameters 1 to 5 are the end of the range, the tenant, the position behind which the page begins, and its limit; of the tenants that
// have any, found like those in due.go, the end, the position and the limit.
const (
	oldLettersSQL = `
SELECT` + eventColumns + barePayload + ` FROM events e INDEXED BY events_died
WHERE e.tenant = ?2` + isLetter + ` AND e.dead_at <= ?1 AND (e.dead_at, e.number) > (?3, ?4)
ORDER BY e.dead_at, e.number LIMIT ?5 + 0`
	oldLetterTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (SELECT e.tenant FROM events e INDEXED BY events_died WHERE e.tenant > tenants.tenant` + isLetter + ` ORDER BY e.tenant LIMIT 1)
	FROM tenants WHERE tenants.tenant IS NOT NULL
), queues AS MATERIALIZED (
	SELECT tenants.tenant, (
		SELECT e.number FROM events e INDEXED BY events_died
		WHERE e.tenant = tenants.tenant` + isLetter + ` AND e.dead_at <= ?1 AND (e.dead_at, e.number) > (?2, ?3)
		ORDER BY e.dead_at, e.number LIMIT 1) AS first
	FROM tenants
)
SELECT queues.tenant FROM queues CROSS JOIN events e ON e.number = queues.first ORDER BY e.dead_at, e.number LIMIT ?4 + 0`
)

// OldLetters implements [backend.Tx]. No row is ever locked by another transaction: there is none.
func (t *transaction) OldLetters(ctx context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	begin, number := start, start
	if after.Set {
		begin, number = after.At.UnixMicro(), after.Number
	}
	tenants, err := t.dueTenants(ctx, oldLetterTenantsSQL, before, begin, number, limit+1)
	if err != nil {
		return nil, false, err
	}
	tenantOf := func(e *backend.Event) string { return e.Tenant }
	compare := func(a, b *backend.Event) int {
		return cmp.Or(a.DeadAt.Compare(b.DeadAt), cmp.Compare(a.Number, b.Number))
	}
	return fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Event]) ([]*backend.Event, error) {
		var rows []*backend.Event
		for _, p := range places {
			at, n := begin, number
			if p.After != nil {
				at, n = p.After.DeadAt.UnixMicro(), p.After.Number
			}
			own, err := t.eventRows(ctx, oldLettersSQL, before, p.Tenant, at, n, p.Most)
			if err != nil {
				return nil, err
			}
			rows = append(rows, own...)
		}
		return rows, nil
	})
}

const closedSQL = `
SELECT` + workflowColumns + ` FROM workflows w INDEXED BY workflows_closed
WHERE w.closed_at IS NOT NULL AND w.closed_at <= ? AND (w.closed_at, w.tenant, w.workflow_id) > (?, ?, ?)
ORDER BY w.closed_at, w.tenant, w.workflow_id LIMIT ? + 0`

// Closed implements [backend.Reader].
func (r *reader) Closed(ctx context.Context, before time.Time, after backend.ClosedPosition, limit int) ([]*backend.Workflow, error) {
	from := int64(math.MinInt64)
	if after.Set {
		from = after.Closed.UnixMicro()
	}
	return r.workflowRows(ctx, closedSQL, before, from, after.Key.Tenant, after.Key.ID, max(limit, 0))
}

const (
	remnantColumns = ` x.tenant, x.run_id, x.workflow_id, x.first_seq, x.last_seq`

	remnantOfFlowSQL = `SELECT` + remnantColumns + ` FROM remnants x INDEXED BY remnants_workflow WHERE x.tenant = ? AND x.workflow_id = ? LIMIT 1`
	remnantOfRunSQL  = `SELECT` + remnantColumns + ` FROM remnants x WHERE x.tenant = ? AND x.run_id = ?`
	remnantsSQL      = `SELECT` + remnantColumns + ` FROM remnants x ORDER BY x.tenant, x.run_id LIMIT ? + 0`
	leftRecordsSQL   = `
SELECT h.seq FROM history h WHERE h.tenant = ? AND h.workflow_id = ? AND h.seq >= ? AND h.seq <= ? ORDER BY h.seq LIMIT ? + 0`
	leftBatchesSQL = `SELECT b.batch_id FROM batches b WHERE b.tenant = ? AND b.run_id = ? ORDER BY b.batch_id LIMIT ? + 0`
)

func (r *reader) remnantRows(ctx context.Context, sql string, args ...any) ([]*backend.Remnant, error) {
	var rows []*backend.Remnant
	err := r.query(ctx, sql, func(c *columns) error {
		x, err := row.Remnant(c)
		rows = append(rows, x)
		return err
	}, args...)
	return rows, err
}

// RemnantOf implements [backend.Reader].
func (r *reader) RemnantOf(ctx context.Context, flow backend.WorkflowKey, run backend.RunKey) (*backend.Remnant, error) {
	rows, err := r.remnantRows(ctx, remnantOfRunSQL, run.Tenant, run.ID)
	if err == nil && len(rows) == 0 {
		rows, err = r.remnantRows(ctx, remnantOfFlowSQL, flow.Tenant, flow.ID)
	}
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// Remnants implements [backend.Tx].
func (t *transaction) Remnants(ctx context.Context, limit int) (backend.Remnants, error) {
	var found backend.Remnants
	var err error
	if found.Runs, err = t.remnantRows(ctx, remnantsSQL, backend.MostRemnants); err != nil {
		return found, err
	}
	for _, x := range found.Runs { // one more than fits tells that there is more
		err := t.query(ctx, leftRecordsSQL, func(c *columns) error {
			found.Records = append(found.Records, backend.RecordKey{Tenant: x.Tenant, WorkflowID: x.WorkflowID, Seq: c.Count()})
			return nil
		}, x.Tenant, x.WorkflowID, x.FirstSeq, x.LastSeq, limit+1-len(found.Records))
		if err != nil {
			return found, err
		}
	}
	for _, x := range found.Runs {
		err := t.query(ctx, leftBatchesSQL, func(c *columns) error {
			found.Batches = append(found.Batches, backend.BatchKey{Tenant: x.Tenant, RunID: x.RunID, ID: c.Text()})
			return nil
		}, x.Tenant, x.RunID, max(limit+1-len(found.Records)-len(found.Batches), 0))
		if err != nil {
			return found, err
		}
	}
	found.Cut(limit)
	return found, nil
}

const (
	deleteRunSQL      = `DELETE FROM runs WHERE tenant = ? AND run_id = ?`
	deleteWorkflowSQL = `DELETE FROM workflows WHERE tenant = ? AND workflow_id = ?`
	deleteRecordSQL   = `DELETE FROM history WHERE tenant = ? AND workflow_id = ? AND seq = ?`
	deleteBatchSQL    = `DELETE FROM batches WHERE tenant = ? AND run_id = ? AND batch_id = ?`
	deleteRemnantSQL  = `DELETE FROM remnants WHERE tenant = ? AND run_id = ?`
	insertRemnantSQL  = `INSERT INTO remnants (tenant, run_id, workflow_id, first_seq, last_seq) VALUES (?, ?, ?, ?, ?)`
)

// prune makes what retention ends go.
func (w *writer) prune(c *backend.Changes) {
	for _, k := range c.GoneRuns {
		w.any(deleteRunPushesSQL, k.Tenant, k.ID)
		w.any(deleteRunPushLogSQL, k.Tenant, k.ID)
		w.one(deleteRunSQL, k.Tenant, k.ID)
	}
	for _, k := range c.GoneWorkflows {
		w.one(deleteWorkflowSQL, k.Tenant, k.ID)
	}
	for _, x := range c.Remnants {
		w.one(insertRemnantSQL, x.Tenant, x.RunID, x.WorkflowID, x.FirstSeq, x.LastSeq)
	}
	for _, k := range c.GoneRecords {
		w.any(deleteRecordSQL, k.Tenant, k.WorkflowID, k.Seq)
	}
	for _, k := range c.GoneBatches {
		w.any(deleteBatchSQL, k.Tenant, k.RunID, k.ID)
	}
	for _, k := range c.GoneRemnants {
		w.any(deleteRemnantSQL, k.Tenant, k.ID)
	}
}

// unpruned refuses ids that a remnant has.
func (w *writer) unpruned(sql, tenant, id string) {
	if w.err != nil {
		return
	}
	if w.err = w.t.query(context.Background(), sql, func(*columns) error { return backend.ErrStale }, tenant, id); w.err != nil {
		return
	}
}

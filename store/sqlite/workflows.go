package sqlite

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

const workflowColumns = `
	w.tenant, w.workflow_id, w.shard, w.run_id, w.type, w.queue, w.status, w.head_seq, w.created_at, w.started_at, w.closed_at, w.updated_at, w.parent,
	w.failure_code, w.failure_reason, w.failed_effect, w.open_effects, w.open_waits, w.live_timers, w.registrations, w.reopened, w.lease_owner, w.lease_epoch, w.lease_expires, w.lease_ended,
	w.acquire_id, w.reclaims, w.pause_request, w.cancel_request, w.paused_actor, w.paused_basis, w.paused_at`

const workflowSQL = `SELECT` + workflowColumns + ` FROM workflows w WHERE w.tenant = ? AND w.workflow_id = ?`

// Workflows implements [backend.Reader].
func (r *reader) Workflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	found := make(map[backend.WorkflowKey]*backend.Workflow, len(keys))
	for _, k := range keys {
		err := r.query(ctx, workflowSQL, func(c *columns) error { found[k] = row.Workflow(c); return nil }, k.Tenant, k.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

const runColumns = `
	r.tenant, r.run_id, r.workflow_id, r.previous_run, r.next_run, r.status, r.first_seq, r.last_seq, r.started_at, r.closed_at, r.sealed_at, r.outcome,
	r.start_digest, r.retired`

const runSQL = `SELECT` + runColumns + ` FROM runs r WHERE r.tenant = ? AND r.run_id = ?`

// Runs implements [backend.Reader].
func (r *reader) Runs(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	found := make(map[backend.RunKey]*backend.Run, len(keys))
	for _, k := range keys {
		err := r.query(ctx, runSQL, func(c *columns) error {
			run, err := row.Run(c)
			found[k] = run
			return err
		}, k.Tenant, k.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

const runsOfSQL = `
SELECT` + runColumns + ` FROM runs r INDEXED BY runs_chain
WHERE r.tenant = ? AND r.workflow_id = ? AND r.first_seq > ?
ORDER BY r.first_seq LIMIT ? + 0`

// RunsOf implements [backend.Reader].
func (r *reader) RunsOf(ctx context.Context, key backend.WorkflowKey, after int64, limit int) ([]*backend.Run, error) {
	var rows []*backend.Run
	err := r.query(ctx, runsOfSQL, func(c *columns) error {
		run, err := row.Run(c)
		rows = append(rows, run)
		return err
	}, key.Tenant, key.ID, after, max(limit, 0))
	return rows, err
}

const batchColumns = ` b.tenant, b.run_id, b.batch_id, b.digest, b.first_seq, b.last_seq, b.outcome`

const batchSQL = `
SELECT` + batchColumns + ` FROM batches b
WHERE b.tenant = ? AND b.run_id = ? AND b.batch_id = ?`

// Batches implements [backend.Reader].
func (r *reader) Batches(ctx context.Context, keys []backend.BatchKey) (map[backend.BatchKey]*backend.Batch, error) {
	found := make(map[backend.BatchKey]*backend.Batch, len(keys))
	for _, k := range keys {
		err := r.query(ctx, batchSQL, func(c *columns) error {
			b, err := row.Batch(c)
			found[k] = b
			return err
		}, k.Tenant, k.RunID, k.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

const wokenColumns = `m.tenant, m.workflow_id, m.run_id, m.queue, m.since, m.cause, m.seq, m.notices, m.next_notice_at, m.links`

const wokenSQL = `SELECT ` + wokenColumns + ` FROM woken m WHERE m.tenant = ? AND m.workflow_id = ?`

// Woken implements [backend.Reader].
func (r *reader) Woken(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Woken, error) {
	found := make(map[backend.WorkflowKey]*backend.Woken, len(keys))
	for _, k := range keys {
		err := r.query(ctx, wokenSQL, func(c *columns) error {
			m, err := row.Woken(c)
			found[k] = m
			return err
		}, k.Tenant, k.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// filtered is a workflow filter over parameters 5 to 8.
const filtered = `
	(?5 = '[]' OR w.type IN (SELECT value FROM json_each(?5)))
	AND (?6 = '[]' OR w.status IN (SELECT value FROM json_each(?6)))
	AND (?7 = '[]' OR w.queue IN (SELECT value FROM json_each(?7)))
	AND substr(w.workflow_id, 1, length(?8)) = ?8`

// Whether each row passes, then the row. Two adjacent ranges of one index: the rest of those that started when the last row of the page before did, then those that started before.
const (
	listTogetherSQL = `
SELECT` + filtered + `,` + workflowColumns + ` FROM workflows w INDEXED BY workflows_started
WHERE w.tenant = ?1 AND w.started_at = ?2 AND w.workflow_id > ?3
ORDER BY w.workflow_id LIMIT ?4 + 0`
	listBeforeSQL = `
SELECT` + filtered + `,` + workflowColumns + ` FROM workflows w INDEXED BY workflows_started
WHERE w.tenant = ?1 AND w.started_at < ?2 AND ?3 = ?3
ORDER BY w.started_at DESC, w.workflow_id LIMIT ?4 + 0`
	countSQL = `
SELECT count(*) FROM (
	SELECT 1 FROM workflows w WHERE w.tenant = ?1 AND ?2 = ?2 AND ?3 = ?3 AND` + filtered + ` LIMIT ?4 + 0)`
)

func filterArgs(tenant string, at int64, id string, most int, f backend.WorkflowFilter) []any {
	return []any{tenant, at, id, most, listText(f.Types), listText(f.Statuses), listText(f.Queues), f.Prefix}
}

// ListWorkflows implements [backend.Reader].
func (r *reader) ListWorkflows(
	ctx context.Context, tenant string, f backend.WorkflowFilter, after backend.WorkflowPosition, p backend.Span,
) ([]*backend.Workflow, backend.WorkflowPosition, error) {
	page := backend.Listing[backend.Workflow, backend.WorkflowPosition]{Limit: p.Limit, At: backend.StartedAt}
	at := int64(math.MaxInt64)
	if after.Set {
		at = after.StartedAt.UnixMicro()
		done, err := fill(ctx, r, &page, row.Workflow, p.Look, listTogetherSQL, filterArgs(tenant, at, after.ID, p.Look, f)...)
		if done || err != nil {
			return page.Rows, page.Next, err
		}
	}
	_, err := fill(ctx, r, &page, row.Workflow, p.Look, listBeforeSQL, filterArgs(tenant, at, "", p.Look, f)...)
	return page.Rows, page.Next, err
}

// CountWorkflows implements [backend.Reader].
func (r *reader) CountWorkflows(ctx context.Context, tenant string, f backend.WorkflowFilter, most int) (int, error) {
	if most == 0 {
		most = -1 // no limit
	}
	n := 0
	err := r.query(ctx, countSQL, func(c *columns) error { n = c.Tally(); return nil }, filterArgs(tenant, 0, "", most, f)...)
	return n, err
}

// Leases that ran out. Parameters 1 to 6 are now, the shards (NULL is all), the tenant, the position behind which the page begins, and its limit; of the tenants
// that have any, now, the shards, the limit and a place in the order of all.
const (
	leasesDueSQL = `
SELECT` + workflowColumns + ` FROM workflows w INDEXED BY workflows_leased
WHERE w.tenant = ?3 AND w.lease_owner <> '' AND w.lease_expires <= ?1 AND (w.lease_expires, w.workflow_id) > (?4, ?5)
	AND (?2 IS NULL OR w.shard IN (SELECT value FROM json_each(?2)))
ORDER BY w.lease_expires, w.workflow_id LIMIT ?6 + 0`
	leasedTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (
		SELECT w.tenant FROM workflows w INDEXED BY workflows_leased
		WHERE w.lease_owner <> '' AND w.tenant > tenants.tenant
		ORDER BY w.tenant LIMIT 1)
	FROM tenants WHERE tenants.tenant IS NOT NULL
), queues AS MATERIALIZED (
	SELECT tenants.tenant, (
		SELECT w.lease_expires FROM workflows w INDEXED BY workflows_leased
		WHERE w.tenant = tenants.tenant AND w.lease_owner <> '' AND w.lease_expires <= ?1
			AND (w.lease_expires, w.workflow_id) > (?4 + (tenants.tenant < ?5), CASE WHEN tenants.tenant = ?5 THEN ?6 ELSE '' END)
			AND (?2 IS NULL OR w.shard IN (SELECT value FROM json_each(?2)))
		ORDER BY w.lease_expires, w.workflow_id LIMIT 1) AS first
	FROM tenants
)
SELECT tenant FROM queues WHERE first IS NOT NULL ORDER BY first, tenant LIMIT ?3 + 0`
)

// leasedTenants are tenants with leases that ran out, behind a place, the longest over first.
func (r *reader) leasedTenants(ctx context.Context, shards []int, after backend.AbandonedPosition, most int) ([]string, error) {
	at := start
	if after.Set {
		at = after.Expires.UnixMicro()
	}
	return r.dueTenants(ctx, leasedTenantsSQL, r.now, shardsText(shards), most, at, after.Key.Tenant, after.Key.ID)
}

// leasesDue are the leases that ran out of those places; a tenant's queue begins behind a place in the order of all.
func (r *reader) leasesDue(
	ctx context.Context, shards []int, after backend.AbandonedPosition, places []fair.Place[backend.Workflow],
) ([]*backend.Workflow, error) {
	var rows []*backend.Workflow
	for _, p := range places {
		at, id := after.Within(p.Tenant, time.Time{})
		if p.After != nil {
			at, id = p.After.LeaseExpires, p.After.ID
		}
		own, err := r.workflowRows(ctx, leasesDueSQL, r.now, shardsText(shards), p.Tenant, at.UnixMicro(), id, p.Most)
		if err != nil {
			return nil, err
		}
		rows = append(rows, own...)
	}
	return rows, nil
}

// Abandoned implements [backend.Reader].
func (r *reader) Abandoned(ctx context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, error) {
	tenants, err := r.leasedTenants(ctx, shards, after, limit)
	if err != nil {
		return nil, err
	}
	places := make([]fair.Place[backend.Workflow], len(tenants))
	for i, t := range tenants {
		places[i] = fair.Place[backend.Workflow]{Tenant: t, Most: limit}
	}
	rows, err := r.leasesDue(ctx, shards, after, places)
	slices.SortFunc(rows, backend.CompareAbandoned)
	return rows[:min(limit, len(rows))], err
}

// DueLeases implements [backend.Reader].
func (r *reader) DueLeases(ctx context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, backend.AbandonedPosition, error) {
	tenants, err := r.leasedTenants(ctx, shards, after, limit+1)
	if err != nil {
		return nil, backend.AbandonedPosition{}, err
	}
	tenantOf := func(w *backend.Workflow) string { return w.Tenant }
	rows, last, err := fair.Walk(tenants, limit, tenantOf, backend.CompareAbandoned, func(places []fair.Place[backend.Workflow]) ([]*backend.Workflow, error) {
		return r.leasesDue(ctx, shards, after, places)
	})
	if last == nil || err != nil {
		return rows, backend.AbandonedPosition{}, err
	}
	return rows, backend.AbandonedAt(last), nil
}

func (r *reader) workflowRows(ctx context.Context, sql string, args ...any) ([]*backend.Workflow, error) {
	var rows []*backend.Workflow
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Workflow(c))
		return nil
	}, args...)
	return rows, err
}

package postgres

import (
	"context"
	"math"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

func workflowTenant(k backend.WorkflowKey) string { return k.Tenant }
func workflowID(k backend.WorkflowKey) string     { return k.ID }

func (r *reader) workflowsByKey(ctx context.Context, sql string, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	found := make(map[backend.WorkflowKey]*backend.Workflow, len(keys))
	err := r.query(ctx, sql, func(c *columns) error {
		w := row.Workflow(c)
		found[w.Key()] = w
		return nil
	}, texts(keys, workflowTenant), texts(keys, workflowID))
	return found, err
}

// Workflows implements [backend.Reader].
func (r *reader) Workflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return r.workflowsByKey(ctx, workflowsSQL, keys)
}

// LockWorkflows implements [backend.Tx].
func (t *transaction) LockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return t.lock(ctx, lockWorkflowsSQL, keys)
}

// TryLockWorkflows implements [backend.TimerTx].
func (t *transaction) TryLockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return t.lock(ctx, tryLockWorkflowsSQL, keys)
}

func (t *transaction) lock(ctx context.Context, sql string, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	rows, err := t.workflowsByKey(ctx, sql, backend.SortedKeys(keys))
	t.locked = make(map[backend.WorkflowKey]backend.Workflow, len(rows))
	for k, w := range rows {
		t.locked[k] = *w
	}
	return rows, err
}

// Woken implements [backend.Reader].
func (r *reader) Woken(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Woken, error) {
	found := make(map[backend.WorkflowKey]*backend.Woken, len(keys))
	err := r.query(ctx, wokenSQL, func(c *columns) error {
		m, err := row.Woken(c)
		if err != nil {
			return err
		}
		found[m.Key()] = m
		return nil
	}, texts(keys, workflowTenant), texts(keys, workflowID))
	return found, err
}

// ListWorkflows implements [backend.Reader].
func (r *reader) ListWorkflows(
	ctx context.Context, tenant string, f backend.WorkflowFilter, after backend.WorkflowPosition, p backend.Span,
) ([]*backend.Workflow, backend.WorkflowPosition, error) {
	page := backend.Listing[backend.Workflow, backend.WorkflowPosition]{Limit: p.Limit, At: backend.StartedAt}
	args := func() []any { // one row more tells whether the page is the last
		return []any{
			tenant, after.StartedAt, int64(p.Look), int64(p.Limit-len(page.Rows)) + 1, texts(f.Types, same), texts(f.Statuses, statusText), texts(f.Queues, same), f.Prefix,
		}
	}
	if !after.Set {
		after.StartedAt = endOfTime
	} else if done, err := fill(ctx, r, &page, row.Workflow, listTogetherSQL, append(args(), after.ID)...); done || err != nil {
		return page.Rows, page.Next, err
	}
	_, err := fill(ctx, r, &page, row.Workflow, listWorkflowsSQL, args()...)
	return page.Rows, page.Next, err
}

// CountWorkflows implements [backend.Reader].
func (r *reader) CountWorkflows(ctx context.Context, tenant string, f backend.WorkflowFilter, most int) (int, error) {
	var n int
	err := r.query(ctx, countWorkflowsSQL, func(c *columns) error {
		n = int(c.Bigint())
		return nil
	}, tenant, int64(most), texts(f.Types, same), texts(f.Statuses, statusText), texts(f.Queues, same), f.Prefix)
	return n, err
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

// leasedTenants are tenants with leases that ran out, behind a place, the longest over first.
func (r *reader) leasedTenants(ctx context.Context, shards []int, after backend.AbandonedPosition, most int) ([]string, error) {
	expires := after.Expires
	if !after.Set {
		expires = startOfTime
	}
	var tenants []string
	err := r.query(ctx, leasedTenantsSQL, func(c *columns) error {
		tenants = append(tenants, c.Text())
		return nil
	}, r.now, int64(most), expires, after.Key.Tenant, after.Key.ID, integersOrNull(shards))
	return tenants, err
}

// leasesDue are the leases that ran out of those places; a tenant's queue begins behind a place in the order of all.
func (r *reader) leasesDue(
	ctx context.Context, shards []int, after backend.AbandonedPosition, places []fair.Place[backend.Workflow],
) ([]*backend.Workflow, error) {
	begins := func(p fair.Place[backend.Workflow]) (time.Time, string) {
		if p.After != nil {
			return p.After.LeaseExpires, p.After.ID
		}
		return after.Within(p.Tenant, startOfTime)
	}
	return r.workflowRows(ctx, leasesDueSQL, r.now,
		texts(places, func(p fair.Place[backend.Workflow]) string { return p.Tenant }),
		instants(places, func(p fair.Place[backend.Workflow]) time.Time { at, _ := begins(p); return at }),
		texts(places, func(p fair.Place[backend.Workflow]) string { _, id := begins(p); return id }),
		bigints(places, func(p fair.Place[backend.Workflow]) int64 { return int64(p.Most) }), integersOrNull(shards))
}

func (r *reader) workflowRows(ctx context.Context, sql string, args ...any) ([]*backend.Workflow, error) {
	var rows []*backend.Workflow
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Workflow(c))
		return nil
	}, args...)
	return rows, err
}

// Every instant lies between these.
var (
	startOfTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour)
	endOfTime   = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// firstNumber and lastSeq enclose every number and seq.
const (
	firstNumber = int64(math.MinInt64)
	lastSeq     = int64(math.MaxInt64)
)

func same(s string) string { return s }

func statusText(s rendezvous.Status) string { return string(s) }

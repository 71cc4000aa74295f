package sqlite

import (
	"cmp"
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// What is due. Parameters 1 to 6 are now, the shards it is in (NULL is all), the tenant, the position behind which the page begins, and its limit; of the tenants
// with something due, the first of each being due the longest, now, the shards and the limit. Those are found in a walk from tenant to tenant over an index: its cost is the number of tenants.
const (
	// Its run is the current one, unsealed and under no live lease, and nobody has the wait in hand.
	parkedDue = ` FROM waits w INDEXED BY waits_due CROSS JOIN workflows f ON f.tenant = w.tenant AND f.workflow_id = w.workflow_id
WHERE w.held_number IS NOT NULL AND w.quarantined_at IS NULL AND w.next_attempt_at <= ?1
	AND (?2 IS NULL OR w.shard IN (SELECT value FROM json_each(?2)))
	AND (w.take_settled OR w.take_until IS NULL OR w.take_until <= ?1)
	AND f.run_id = w.run_id AND f.closed_at IS NULL AND (f.lease_owner = '' OR f.lease_expires <= ?1)`
	parkedDueSQL = `SELECT` + waitColumns + parkedDue + `
	AND w.tenant = ?3 AND (w.next_attempt_at, w.number) > (?4, ?5)
ORDER BY w.next_attempt_at, w.number LIMIT ?6 + 0`
	parkedTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (
		SELECT w.tenant FROM waits w INDEXED BY waits_due
		WHERE w.held_number IS NOT NULL AND w.quarantined_at IS NULL AND w.tenant > tenants.tenant
		ORDER BY w.tenant LIMIT 1)
	FROM tenants WHERE tenants.tenant IS NOT NULL
)
SELECT w.tenant
FROM tenants CROSS JOIN waits w ON w.number = (
	SELECT w.number` + parkedDue + ` AND w.tenant = tenants.tenant ORDER BY w.next_attempt_at, w.number LIMIT 1)
ORDER BY w.next_attempt_at, w.number LIMIT ?3 + 0`

	// Its run is the current one, running, and under no live lease.
	wokenDue = ` FROM woken m INDEXED BY woken_due CROSS JOIN workflows f ON f.tenant = m.tenant AND f.workflow_id = m.workflow_id
WHERE m.next_notice_at <= ?1 AND (?2 IS NULL OR f.shard IN (SELECT value FROM json_each(?2))) AND f.run_id = m.run_id AND f.status = 'running' AND (f.lease_owner = '' OR f.lease_expires <= ?1)`
	wokenDueSQL = `SELECT ` + wokenColumns + wokenDue + `
	AND m.tenant = ?3 AND (m.next_notice_at, m.workflow_id) > (?4, ?5)
ORDER BY m.next_notice_at, m.workflow_id LIMIT ?6 + 0`
	wokenTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (SELECT m.tenant FROM woken m INDEXED BY woken_due WHERE m.tenant > tenants.tenant ORDER BY m.tenant LIMIT 1)
	FROM tenants WHERE tenants.tenant IS NOT NULL
), queues AS MATERIALIZED (
	SELECT tenants.tenant, (
		SELECT m.next_notice_at` + wokenDue + ` AND m.tenant = tenants.tenant ORDER BY m.next_notice_at, m.workflow_id LIMIT 1) AS first
	FROM tenants
)
SELECT tenant FROM queues WHERE first IS NOT NULL ORDER BY first, tenant LIMIT ?3 + 0`
)

// dueTenants are tenants with something due, the longest due first.
func (r *reader) dueTenants(ctx context.Context, sql string, args ...any) ([]string, error) {
	var tenants []string
	err := r.query(ctx, sql, func(c *columns) error {
		tenants = append(tenants, c.Text())
		return nil
	}, args...)
	return tenants, err
}

// DueParked implements [backend.Tx]. No row is ever locked by another transaction: there is none.
func (t *transaction) DueParked(ctx context.Context, shards []int, limit int) ([]*backend.Wait, bool, error) {
	tenants, err := t.dueTenants(ctx, parkedTenantsSQL, t.now, shardsText(shards), limit+1)
	if err != nil {
		return nil, false, err
	}
	tenantOf := func(w *backend.Wait) string { return w.Tenant }
	compare := func(a, b *backend.Wait) int {
		return cmp.Or(a.NextAttemptAt.Compare(b.NextAttemptAt), cmp.Compare(a.Number, b.Number))
	}
	return fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Wait]) ([]*backend.Wait, error) {
		var rows []*backend.Wait
		for _, p := range places {
			at, number := start, start
			if p.After != nil {
				at, number = p.After.NextAttemptAt.UnixMicro(), p.After.Number
			}
			own, err := t.waitRows(ctx, parkedDueSQL, t.now, shardsText(shards), p.Tenant, at, number, p.Most)
			if err != nil {
				return nil, err
			}
			rows = append(rows, own...)
		}
		return rows, nil
	})
}

// DueWoken implements [backend.Tx].
func (t *transaction) DueWoken(ctx context.Context, shards []int, limit int) ([]*backend.Woken, bool, error) {
	tenants, err := t.dueTenants(ctx, wokenTenantsSQL, t.now, shardsText(shards), limit+1)
	if err != nil {
		return nil, false, err
	}
	tenantOf := func(m *backend.Woken) string { return m.Tenant }
	compare := func(a, b *backend.Woken) int {
		return cmp.Or(a.NextNoticeAt.Compare(b.NextNoticeAt), a.Key().Compare(b.Key()))
	}
	return fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Woken]) ([]*backend.Woken, error) {
		var rows []*backend.Woken
		for _, p := range places {
			at, id := start, ""
			if p.After != nil {
				at, id = p.After.NextNoticeAt.UnixMicro(), p.After.WorkflowID
			}
			err := t.query(ctx, wokenDueSQL, func(c *columns) error {
				m, err := row.Woken(c)
				rows = append(rows, m)
				return err
			}, t.now, shardsText(shards), p.Tenant, at, id, p.Most)
			if err != nil {
				return nil, err
			}
		}
		return rows, nil
	})
}

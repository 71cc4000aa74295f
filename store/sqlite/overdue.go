package sqlite

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// What falls due, in two ranges of a tenant: by age, and by the events' own expiry. Parameters 1 to 6 are the tenant, the end of the range, the position behind
// which the page begins, its limit, and now.
const (
	// An event is near where an open wait stands under its key and type, a targeted one where its run has an open wait of its type: 1, and 2 where somebody has it
	// in hand.
	ageingSQL = `
SELECT i.live_since, i.number, CASE
	WHEN i.namespace <> '' AND EXISTS (
		SELECT 1 FROM wait_keys k WHERE k.tenant = i.tenant AND k.namespace = i.namespace AND k.value = i.value AND k.type = i.type)
	OR i.namespace = '' AND i.value <> '' AND EXISTS (
		SELECT 1 FROM waits w WHERE w.tenant = i.tenant AND w.run_id = i.value AND w.type = i.type AND w.held_number IS NULL)
	THEN 1 + EXISTS (SELECT 1 FROM events e WHERE e.number = i.number AND e.take_until > ?6) ELSE 0 END
FROM event_keys i INDEXED BY event_keys_since
WHERE i.tenant = ?1 AND i.expires_at IS NULL AND i.live_since <= ?2 AND (i.live_since, i.number) > (?3, ?4)
ORDER BY i.live_since, i.number LIMIT ?5 + 0`
	expiringSQL = `
SELECT i.expires_at, i.number, 0 FROM event_keys i INDEXED BY event_keys_expiring
WHERE i.tenant = ?1 AND i.expires_at IS NOT NULL AND i.expires_at <= ?2 AND (i.expires_at, i.number) > (?3, ?4) AND ?6 = ?6
ORDER BY i.expires_at, i.number LIMIT ?5 + 0`
	// Tenants with something due, the longest due first, found like those in due.go. Parameters are the ends of both ranges and the limit.
	overdueTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (SELECT i.tenant FROM event_keys i WHERE i.tenant > tenants.tenant ORDER BY i.tenant LIMIT 1)
	FROM tenants WHERE tenants.tenant IS NOT NULL
), queues AS MATERIALIZED (
	SELECT tenants.tenant, max(
		coalesce((
			SELECT ?1 - i.live_since FROM event_keys i INDEXED BY event_keys_since
			WHERE i.tenant = tenants.tenant AND i.expires_at IS NULL AND i.live_since <= ?1
			ORDER BY i.live_since LIMIT 1), -1),
		coalesce((
			SELECT ?2 - i.expires_at FROM event_keys i INDEXED BY event_keys_expiring
			WHERE i.tenant = tenants.tenant AND i.expires_at IS NOT NULL AND i.expires_at <= ?2
			ORDER BY i.expires_at LIMIT 1), -1)) AS late
	FROM tenants
)
SELECT tenant FROM queues WHERE late >= 0 ORDER BY late DESC, tenant LIMIT ?3 + 0`
)

// OverdueEvents implements [backend.Tx]. No row is ever locked by another transaction: there is none.
func (t *transaction) OverdueEvents(ctx context.Context, o backend.Overdue, limit int) (backend.OverdueEvents, error) {
	none := backend.OverdueEvents{}
	tenants := []string{o.Tenant}
	if o.Tenant == "" {
		since := start
		if !o.Since.IsZero() {
			since = o.Since.UnixMicro()
		}
		var err error
		if tenants, err = t.dueTenants(ctx, overdueTenantsSQL, since, o.At, limit+1); err != nil {
			return none, err
		}
	}
	q := fair.Queues{Tenants: tenants, Limit: limit, Near: backend.MostNear, Look: backend.MostLooked, Fetch: func(ranges []fair.Range) (rows [][]fair.KeyRow, err error) {
		rows = make([][]fair.KeyRow, len(ranges))
		for i, r := range ranges {
			if rows[i], err = t.overdueIn(ctx, r, o); err != nil {
				return nil, err
			}
		}
		return rows, nil
	}}
	due, near, more, err := q.Take()
	if err != nil {
		return none, err
	}
	page := backend.OverdueEvents{More: more}
	if page.Due, err = t.inOrder(ctx, due); err != nil {
		return none, err
	}
	page.Near, err = t.inOrder(ctx, near)
	return page, err
}

// inOrder is the events of those numbers, in their order.
func (r *reader) inOrder(ctx context.Context, numbers []int64) ([]*backend.Event, error) {
	rows, err := r.EventsByNumber(ctx, numbers, false)
	if err != nil {
		return nil, err
	}
	events := make([]*backend.Event, 0, len(numbers))
	for _, n := range numbers {
		if e := rows[n]; e != nil { // a key row without an event is damage, and the check's to tell
			events = append(events, e)
		}
	}
	return events, nil
}

// overdueIn is the next key rows of one range.
func (t *transaction) overdueIn(ctx context.Context, r fair.Range, o backend.Overdue) ([]fair.KeyRow, error) {
	sql, bound := ageingSQL, o.Since
	if r.Own {
		sql, bound = expiringSQL, o.At
	}
	if bound.IsZero() {
		return nil, nil
	}
	end, at, number := bound.UnixMicro(), start, start
	if r.After != nil {
		at, number = end-r.After.Late, r.After.Number
	}
	var rows []fair.KeyRow
	err := t.query(ctx, sql, func(c *columns) error {
		row := fair.KeyRow{Late: end - c.Bigint(), Number: c.Count()}
		near := c.Tally()
		row.Near, row.Held = near > 0, near > 1
		rows = append(rows, row)
		return nil
	}, r.Tenant, end, at, number, r.Most, t.now)
	return rows, err
}

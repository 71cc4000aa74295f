package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// unmetRows is how many rows one look of UnmetEvents goes over: what bounds how long a pass over a large stock of events nobody waits for keeps the writer.
const unmetRows = 5_000

const (
	// Whether a key row of an event i stands beside a wait that it could have met, by ?1, and the event is in nobody's hands at ?2: a targeted one looks at the
	// waits of its run, whatever their keys.
	leftApart = `
	i.live_since <= ?1 AND CASE
	WHEN i.namespace <> '' THEN EXISTS (
		SELECT 1 FROM wait_keys k
		WHERE k.tenant = i.tenant AND k.namespace = i.namespace AND k.value = i.value AND k.type = i.type AND k.open_since <= ?1)
	ELSE i.value <> '' AND EXISTS (
		SELECT 1 FROM waits w
		WHERE w.tenant = i.tenant AND w.run_id = i.value AND w.type = i.type AND w.held_number IS NULL AND w.open_since <= ?1)
	END AND EXISTS (SELECT 1 FROM events e WHERE e.number = i.number AND ` + inNobodysHands + `)`
	inNobodysHands = `e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= ?2) AND (e.expires_at IS NULL OR e.expires_at > ?2)`

	// A slice of all live events by their key rows.
	unmetSQL = `
SELECT i.tenant, i.namespace, i.value, i.type, i.number,` + leftApart + `
FROM event_keys i WHERE (i.tenant, i.namespace, i.value, i.type, i.number) > (?3, ?4, ?5, ?6, ?7)
ORDER BY i.tenant, i.namespace, i.value, i.type, i.number LIMIT ?8 + 0`

	// What became matchable: parameters from 3 on are the tenant, the place behind which the page begins, its limit, and of events which range.
	newEventsSQL = `
SELECT i.live_since, i.number, CASE WHEN` + leftApart + ` THEN i.number END
FROM event_keys i INDEXED BY event_keys_since
WHERE i.tenant = ?3 AND (i.expires_at IS NOT NULL) = ?7 AND (i.live_since, i.number) > (?4, ?5) AND i.live_since <= ?1
ORDER BY i.live_since, i.number LIMIT ?6 + 0`
	// With the lowest event that the wait was left apart from: of the first few under each of its keys, and of those that are targeted at its run. What hides
	// behind those is found by its own age.
	newWaitsSQL = `
SELECT w.open_since, w.number, (
	SELECT min(e.number) FROM (
		SELECT (
			SELECT min(e.number) FROM (
				SELECT i.number FROM event_keys i
				WHERE i.tenant = w.tenant AND i.namespace = CASE WHEN p.type = 'array' THEN p.value ->> 0 END
					AND i.value = CASE WHEN p.type = 'array' THEN p.value ->> 1 END AND i.type = w.type AND i.live_since <= ?1
				ORDER BY i.number LIMIT 4) i CROSS JOIN events e ON e.number = i.number
			WHERE ` + inNobodysHands + `) AS number
		FROM json_each(iif(json_valid(w.keys), json_insert(w.keys, '$[#]', json_array('', w.run_id)), '[]')) p) e)
FROM waits w INDEXED BY waits_since
WHERE w.tenant = ?3 AND w.held_number IS NULL AND (w.open_since, w.number) > (?4, ?5) AND w.open_since <= ?1
ORDER BY w.open_since, w.number LIMIT ?6 + 0`
	openTenantSQL = `SELECT w.tenant FROM waits w INDEXED BY waits_since WHERE w.held_number IS NULL AND w.tenant > ? ORDER BY w.tenant LIMIT 1`
)

// UnmetEvents implements [backend.Tx].
func (t *transaction) UnmetEvents(ctx context.Context, l backend.UnmetLook, limit int) (backend.UnmetPage, error) {
	u := unmet{t, ctx, l.Before}
	numbers, page, err := fair.Unmet{Rows: unmetRows, Firsts: u.firsts, Fetch: u.fetch, Slice: u.slice}.Look(l, limit)
	if err != nil || len(numbers) == 0 {
		return page, err
	}
	page.Rows, err = t.inOrder(ctx, numbers)
	return page, err
}

// unmet is one look for unmet events.
type unmet struct {
	*transaction
	ctx    context.Context
	before time.Time
}

// firsts walks from tenant to tenant.
func (u unmet) firsts(waits bool, after backend.Mark, most int) (rows []fair.KeyRow, err error) {
	sql := eventTenantSQL
	if waits {
		sql = openTenantSQL
	}
	behind := &fair.KeyRow{Late: u.before.UnixMicro() - after.At.UnixMicro(), Number: after.Number}
	for tenant := ""; ; {
		next := ""
		if err := u.query(u.ctx, sql, func(c *columns) error { next = c.Text(); return nil }, tenant); err != nil {
			return nil, err
		}
		if next == "" {
			break
		}
		tenant = next
		ranges := []fair.Range{{Tenant: tenant, After: behind, Most: 1}, {Tenant: tenant, Own: true, After: behind, Most: 1}}
		own, err := u.fetch(waits, ranges)
		if err != nil {
			return nil, err
		}
		if len(own) > 0 {
			rows = append(rows, slices.MinFunc(own, fair.Before))
		}
	}
	slices.SortFunc(rows, fair.Before)
	return rows[:min(len(rows), most)], nil
}

func (u unmet) fetch(waits bool, ranges []fair.Range) (rows []fair.KeyRow, err error) {
	for _, r := range ranges {
		sql, args := newEventsSQL, []any{u.before, u.now, r.Tenant, u.before.UnixMicro() - r.After.Late, r.After.Number, r.Most, r.Own}
		if waits {
			if r.Own { // a range of events
				continue
			}
			sql, args = newWaitsSQL, args[:6]
		}
		err := u.query(u.ctx, sql, func(c *columns) error {
			row := fair.KeyRow{Tenant: r.Tenant, Own: r.Own, Late: u.before.UnixMicro() - c.Bigint(), Number: c.Count()}
			if met := !c.Absent(); met {
				row.Event = c.Count()
			} else {
				row.Near, row.Held = true, true
			}
			rows = append(rows, row)
			return nil
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (u unmet) slice(after backend.KeyPlace, rows int) (met []backend.KeyPlace, end *backend.KeyPlace, err error) {
	looked := 0
	err = u.query(u.ctx, unmetSQL, func(c *columns) error {
		p := backend.KeyPlace{Tenant: c.Text(), Namespace: c.Text(), Value: c.Text(), Type: c.Text(), Number: c.Count()}
		if c.Boolean() {
			met = append(met, p)
		}
		if looked++; looked == rows {
			end = &p
		}
		return nil
	}, u.before, u.now, after.Tenant, after.Namespace, after.Value, after.Type, after.Number, rows)
	return met, end, err
}

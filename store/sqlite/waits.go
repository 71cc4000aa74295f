package sqlite

import (
	"context"
	"math"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

const waitColumns = `
	w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
	w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at, w.last_error, w.take,
	w.take_until, w.take_settled, w.quarantined_at`

func (r *reader) waitRows(ctx context.Context, sql string, args ...any) ([]*backend.Wait, error) {
	var rows []*backend.Wait
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Wait(c))
		return nil
	}, args...)
	return rows, err
}

const waitSQL = `SELECT` + waitColumns + ` FROM waits w WHERE w.tenant = ? AND w.run_id = ? AND w.effect = ?`

// Waits implements [backend.Reader].
func (r *reader) Waits(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Wait, error) {
	found := make(map[backend.WaitKey]*backend.Wait, len(keys))
	for _, k := range keys {
		if err := r.query(ctx, waitSQL, func(c *columns) error { found[k] = row.Wait(c); return nil }, k.Tenant, k.RunID, k.Effect); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// + keeps the order of numbers from choosing the index, which would be walked through all of the tenant.
const waitsOfSQL = `SELECT` + waitColumns + ` FROM waits w WHERE w.tenant = ? AND w.run_id = ? ORDER BY +w.number`

// WaitsOf implements [backend.Reader].
func (r *reader) WaitsOf(ctx context.Context, keys []backend.RunKey) ([]*backend.Wait, error) {
	var found []*backend.Wait
	for _, k := range backend.SortedKeys(keys) {
		rows, err := r.waitRows(ctx, waitsOfSQL, k.Tenant, k.ID)
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

const parkedOfSQL = `
SELECT count(*) FILTER (WHERE w.held_number IS NOT NULL AND w.quarantined_at IS NULL) FROM waits w WHERE w.tenant = ? AND w.run_id = ?`

// ParkedOf implements [backend.Reader].
func (r *reader) ParkedOf(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return r.counts(ctx, parkedOfSQL, keys)
}

const openWaitsSQL = `
SELECT` + waitColumns + ` FROM wait_keys i CROSS JOIN waits w ON w.number = i.number
WHERE i.tenant = ? AND i.namespace = ? AND i.value = ? AND i.type = ? AND i.number > ?
ORDER BY i.number LIMIT ? + 0`

// OpenWaits implements [backend.Reader].
func (r *reader) OpenWaits(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error) {
	found := make([][]*backend.Wait, len(lookups))
	for i, l := range lookups {
		rows, err := r.waitRows(ctx, openWaitsSQL, lookupArgs(l)...)
		if err != nil {
			return nil, err
		}
		found[i] = rows
	}
	return found, nil
}

// The lists of waits: whether each row passes, then the row. Parameters 1 to 7 are the tenant, the number behind which the page begins, how many rows it looks
// at, and the filter: run, type, state, and a key as it stands in the text of a set.
const (
	passing = `
	(?4 = '' OR w.run_id = ?4)
	AND (?5 = '' OR w.type = ?5)
	AND (?6 = '' OR ?6 = CASE WHEN w.held_number IS NULL THEN 'open' WHEN w.quarantined_at IS NULL THEN 'parked' ELSE 'quarantined' END)
	AND (?7 = '' OR instr(w.keys, ?7) > 0),`

	listWaitsSQL = `
SELECT` + passing + waitColumns + ` FROM waits w INDEXED BY waits_listed
WHERE w.tenant = ?1 AND w.number > ?2
ORDER BY w.number LIMIT ?3 + 0`
	// A run has at most 1,000; + keeps the order of numbers from choosing the index.
	listRunWaitsSQL = `
SELECT` + passing + waitColumns + ` FROM waits w
WHERE w.tenant = ?1 AND w.run_id = ?4 AND +w.number > ?2
ORDER BY +w.number LIMIT ?3 + 0`
	listParkedSQL = `
SELECT` + passing + waitColumns + ` FROM waits w INDEXED BY waits_due
WHERE w.tenant = ?1 AND w.held_number IS NOT NULL AND w.quarantined_at IS NULL AND (w.next_attempt_at, w.number) > (?8, ?2)
ORDER BY w.next_attempt_at, w.number LIMIT ?3 + 0`
	// Quarantined waits in the order of parked ones. They are few: an operator is to look at each.
	listStuckSQL = `
SELECT` + passing + waitColumns + ` FROM waits w INDEXED BY waits_quarantined
WHERE w.tenant = ?1 AND w.quarantined_at IS NOT NULL AND (w.next_attempt_at, w.number) > (?8, ?2)
ORDER BY w.next_attempt_at, w.number LIMIT ?3 + 0`
	listQuarantinedSQL = `
SELECT` + waitColumns + ` FROM waits w INDEXED BY waits_quarantined
WHERE w.tenant = ? AND w.quarantined_at IS NOT NULL AND (w.quarantined_at, w.number) > (?, ?)
ORDER BY w.quarantined_at, w.number LIMIT ? + 0`
)

func passingArgs(tenant string, after int64, look int, f backend.WaitFilter) []any {
	key := ""
	if f.Key != nil {
		key = keyText(*f.Key)
	}
	return []any{tenant, after, look, f.RunID, f.Type, string(f.State), key}
}

// ListWaits implements [backend.Reader].
func (r *reader) ListWaits(ctx context.Context, tenant string, f backend.WaitFilter, after int64, p backend.Span) ([]*backend.Wait, int64, error) {
	sql, look := listWaitsSQL, p.Look
	if f.RunID != "" {
		sql, look = listRunWaitsSQL, math.MaxInt
	}
	page := backend.Listing[backend.Wait, int64]{Limit: p.Limit, At: backend.NumberAt}
	_, err := fill(ctx, r, &page, row.Wait, look, sql, passingArgs(tenant, after, look, f)...)
	return page.Rows, page.Next, err
}

// fill adds what a statement says to a page, as far as it may look, and reports whether it is done. Only rows that pass are decoded.
func fill[R, P any](
	ctx context.Context, r *reader, page *backend.Listing[R, P], decode func(c *row.Columns) *R, look int, sql string, args ...any,
) (done bool, err error) {
	err = r.query(ctx, sql, func(c *columns) error {
		look--
		passes := c.Boolean()
		if !passes && look > 0 {
			return nil
		}
		if done = page.Add(decode(c), passes, look == 0); done {
			return errEnough
		}
		return nil
	}, args...)
	return done, err
}

// start is before every position.
const start = int64(math.MinInt64)

// ListParked implements [backend.Reader].
func (r *reader) ListParked(
	ctx context.Context, tenant string, f backend.WaitFilter, after backend.ParkedPosition, p backend.Span,
) ([]*backend.Wait, backend.ParkedPosition, error) {
	page := backend.Listing[backend.Wait, backend.ParkedPosition]{Limit: p.Limit, At: backend.ParkedAt}
	at, number := start, start
	if after.Set {
		at, number = after.At.UnixMicro(), after.Number
	}
	if !after.Quarantined {
		done, err := fill(ctx, r, &page, row.Wait, p.Look, listParkedSQL, append(passingArgs(tenant, number, p.Look, f), at)...)
		if done || err != nil {
			return page.Rows, page.Next, err
		}
		at, number = start, start
	}
	_, err := fill(ctx, r, &page, row.Wait, p.Look, listStuckSQL, append(passingArgs(tenant, number, p.Look, f), at)...)
	return page.Rows, page.Next, err
}

// ListQuarantined implements [backend.Reader].
func (r *reader) ListQuarantined(ctx context.Context, tenant string, after backend.ParkedPosition, limit int) ([]*backend.Wait, error) {
	at, number := start, start
	if after.Set {
		at, number = after.At.UnixMicro(), after.Number
	}
	return r.waitRows(ctx, listQuarantinedSQL, tenant, at, number, max(limit, 0))
}

// Each count up to a maximum, the oldest of each among what was counted.
const (
	liveDepthSQL = `
SELECT count(*), min(live_since) FROM (
	SELECT live_since FROM (
		SELECT live_since FROM event_keys INDEXED BY event_keys_since WHERE expires_at IS NULL GROUP BY tenant, live_since, number)
	UNION ALL
	SELECT live_since FROM (
		SELECT live_since FROM event_keys INDEXED BY event_keys_expiring WHERE expires_at IS NOT NULL GROUP BY tenant, expires_at, number)
	LIMIT ? + 0)`
	openDepthSQL   = `SELECT count(*) FROM (SELECT 1 FROM waits WHERE held_number IS NULL LIMIT ? + 0)`
	parkedDepthSQL = `
SELECT count(*), min(parked_at) FROM (
	SELECT parked_at FROM waits INDEXED BY waits_due WHERE held_number IS NOT NULL AND quarantined_at IS NULL LIMIT ? + 0)`
	quarantinedDepthSQL = `SELECT count(*) FROM (SELECT 1 FROM waits INDEXED BY waits_quarantined WHERE quarantined_at IS NOT NULL LIMIT ? + 0)`
	deadDepthSQL        = `SELECT count(*) FROM (SELECT 1 FROM events INDEXED BY events_dead_reason WHERE dead_reason = ? AND dead_at IS NOT NULL AND NOT purged LIMIT ? + 0)`
	timersDepthSQL      = `SELECT count(*) FROM (SELECT 1 FROM timers LIMIT ? + 0)`
	wokenDepthSQL       = `SELECT count(*), min(since) FROM (SELECT since FROM woken LIMIT ? + 0)`
)

// Depths implements [backend.Reader].
func (r *reader) Depths(ctx context.Context, most int) (backend.Depths, error) {
	var d backend.Depths
	for _, q := range [...]struct {
		sql  string
		each func(c *columns)
	}{
		{liveDepthSQL, func(c *columns) { d.LiveEvents, d.OldestLiveEvent = c.Tally(), c.InstantOrNone() }},
		{openDepthSQL, func(c *columns) { d.OpenWaits = c.Tally() }},
		{parkedDepthSQL, func(c *columns) { d.ParkedWaits, d.OldestParked = c.Tally(), c.InstantOrNone() }},
		{quarantinedDepthSQL, func(c *columns) { d.QuarantinedWaits = c.Tally() }},
		{timersDepthSQL, func(c *columns) { d.Timers = c.Tally() }},
		{wokenDepthSQL, func(c *columns) { d.Woken, d.OldestWoken = c.Tally(), c.InstantOrNone() }},
	} {
		if err := r.query(ctx, q.sql, func(c *columns) error { q.each(c); return nil }, max(most, 0)); err != nil {
			return d, err
		}
	}
	if err := r.query(ctx, dueDepthSQL, func(c *columns) error {
		d.DueTimers, d.OldestDueTimer = c.Tally(), c.InstantOrNone()
		return nil
	}, r.now, max(most, 0)); err != nil {
		return d, err
	}
	d.Dead = map[rendezvous.DeadReason]int{}
	for _, reason := range rendezvous.DeadReasons {
		err := r.query(ctx, deadDepthSQL, func(c *columns) error {
			if n := c.Tally(); n > 0 {
				d.Dead[reason] = n
			}
			return nil
		}, string(reason), max(most, 0))
		if err != nil {
			return d, err
		}
	}
	return d, r.pushDepth(ctx, max(most, 0), &d)
}

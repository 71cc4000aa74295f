package sqlite

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

const (
	pushColumns = `
	p.tenant, p.run_id, p.id, p.workflow_id, p.namespace, p.gate, p.incarnation, p.version, p.created_at, p.takes, p.settings, p.next_seq, p.next_index, p.state,
	p.next_attempt_at, p.attempts, p.failing_since, p.rejects, p.attempt_no, p.lost, p.error, p.parked_at, p.reason, p.lease_token, p.lease_owner,
	p.lease_request, p.lease_until, p.lease_revoked, p.ended_token, p.ended_as, p.settle_id, p.settle_outcome, p.unpark_op, p.skipped, p.logged, p.last`

	pushSQL     = `SELECT` + pushColumns + ` FROM push_registrations p WHERE p.tenant = ? AND p.run_id = ? AND p.id = ?`
	pushesOfSQL = `SELECT` + pushColumns + ` FROM push_registrations p WHERE p.tenant = ? AND p.run_id = ? ORDER BY p.id`

	// What is due but for a lease that has run out.
	lapsedPushes = ` FROM push_registrations p INDEXED BY push_leased
WHERE p.state = 'live' AND p.lease_until IS NOT NULL AND p.namespace = ?1 AND p.lease_until <= ?2 AND p.next_attempt_at <= ?3 AND (?4 = '' OR p.tenant = ?4)`
	lapsedPushesSQL      = `SELECT` + pushColumns + lapsedPushes + ` ORDER BY p.lease_until LIMIT ?5 + 0`
	countLapsedPushesSQL = `SELECT count(*), min(next_attempt_at) FROM (SELECT p.next_attempt_at` + lapsedPushes + ` LIMIT ?5 + 0)`

	duePushes    = ` FROM push_registrations p INDEXED BY push_due WHERE p.state = 'live' AND p.lease_until IS NULL AND p.namespace = ?1`
	duePushesSQL = `
SELECT` + pushColumns + duePushes + ` AND p.tenant = ?2 AND p.next_attempt_at <= ?3 AND (p.next_attempt_at, p.run_id, p.id) > (?4, ?5, ?6)
ORDER BY p.next_attempt_at, p.run_id, p.id LIMIT ?7 + 0`

	// The tenants of a namespace, found in a walk from tenant to tenant over the index.
	pushTenants = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (SELECT p.tenant` + duePushes + ` AND p.tenant > tenants.tenant ORDER BY p.tenant LIMIT 1) FROM tenants WHERE tenants.tenant IS NOT NULL
)`
	pushTenantsSQL = pushTenants + `, queues AS MATERIALIZED (
	SELECT tenants.tenant, (SELECT p.next_attempt_at` + duePushes + ` AND p.tenant = tenants.tenant ORDER BY p.next_attempt_at LIMIT 1) AS first FROM tenants
)
SELECT tenant, first FROM queues WHERE first <= ?2`
	nextPushSQL = pushTenants + `
SELECT min((SELECT p.next_attempt_at` + duePushes + ` AND p.tenant = tenants.tenant AND p.next_attempt_at > ?2 ORDER BY p.next_attempt_at LIMIT 1))
FROM tenants WHERE ?3 = '' OR tenants.tenant = ?3`
	countDuePushesSQL = pushTenants + `
SELECT count(*), min(next_attempt_at) FROM (
	SELECT p.next_attempt_at FROM tenants CROSS JOIN push_registrations p INDEXED BY push_due
	ON p.state = 'live' AND p.lease_until IS NULL AND p.namespace = ?1 AND p.tenant = tenants.tenant AND p.next_attempt_at <= ?2
	WHERE ?3 = '' OR tenants.tenant = ?3
	LIMIT ?4 + 0)`

	passesPush        = ` (?1 = '' OR p.reason = ?1) AND (?2 = '' OR p.gate = ?2),`
	listParkedPushSQL = `SELECT` + passesPush + pushColumns + ` FROM push_registrations p INDEXED BY push_parked
WHERE p.state = 'parked' AND p.tenant = ?3 AND (p.run_id, p.id) > (?4, ?5) ORDER BY p.run_id, p.id LIMIT ?6 + 0`
	longestParkedPushSQL = `SELECT` + passesPush + ` p.tenant, p.run_id, p.id, p.parked_at FROM push_registrations p INDEXED BY push_parked_since
WHERE p.state = 'parked' AND p.tenant = ?3 AND (p.parked_at, p.run_id, p.id) > (?4, ?5, ?6) ORDER BY p.parked_at, p.run_id, p.id LIMIT ?7 + 0`
	pushDepthsSQL = `SELECT (SELECT count(*) FROM (SELECT 1` + failingPushes + ` LIMIT ?1 + 0)),
	(SELECT count(*) FROM (SELECT 1 FROM push_registrations p INDEXED BY push_parked WHERE p.state = 'parked' LIMIT ?1 + 0))`

	pushLogColumns  = ` l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no, l.entry_id, l.at, l.kept, l.entry`
	lastIncarnation = `(SELECT max(x.incarnation) FROM push_log x WHERE x.tenant = ?1 AND x.run_id = ?2 AND x.id = ?3)`
	pushLogSQL      = `
SELECT` + pushLogColumns + ` FROM push_log l
WHERE l.tenant = ?1 AND l.run_id = ?2 AND l.id = ?3 AND l.incarnation = iif(?4 = 0, ` + lastIncarnation + `, ?4) AND l.attempt_no < ?5
ORDER BY l.attempt_no DESC LIMIT ?6 + 0`
	pushLoggedSQL = `
SELECT` + pushLogColumns + ` FROM push_log l INDEXED BY push_log_entries
WHERE l.tenant = ? AND l.run_id = ? AND l.id = ? AND l.incarnation = ? AND l.entry_id = ? AND l.entry_id <> ''`
)

func (r *reader) pushRows(ctx context.Context, sql string, args ...any) ([]*backend.Push, error) {
	var rows []*backend.Push
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Push(c))
		return nil
	}, args...)
	return rows, err
}

// Pushes implements [backend.PushReader].
func (r *reader) Pushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	found := make(map[backend.PushKey]*backend.Push, len(keys))
	for _, k := range keys {
		if err := r.query(ctx, pushSQL, func(c *columns) error { found[k] = row.Push(c); return nil }, k.Tenant, k.RunID, k.ID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// PushesOf implements [backend.PushReader].
func (r *reader) PushesOf(ctx context.Context, runs []backend.RunKey) ([]*backend.Push, error) {
	var rows []*backend.Push
	for _, k := range backend.SortedKeys(runs) {
		own, err := r.pushRows(ctx, pushesOfSQL, k.Tenant, k.ID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, own...)
	}
	return rows, nil
}

// DuePushes implements [backend.PushReader].
func (r *reader) DuePushes(ctx context.Context, d backend.PushDue, limit int) ([]*backend.Push, error) {
	rows, err := r.dueOf(ctx, d, nil, limit)
	if err != nil {
		return nil, err
	}
	lapsed, err := r.lapsed(ctx, d)
	return backend.MergeDue(rows, lapsed, limit), err
}

// dueOf are the first unleased due rows of a tenant behind one.
func (r *reader) dueOf(ctx context.Context, d backend.PushDue, after *backend.Push, limit int) ([]*backend.Push, error) {
	at, run, id := start, "", ""
	if after != nil {
		at, run, id = after.NextAttemptAt.UnixMicro(), after.RunID, after.ID
	}
	return r.pushRows(ctx, duePushesSQL, string(d.Namespace), d.Tenant, d.At, at, run, id, limit)
}

// lapsed are rows that are due but for a lease that has run out, in due order.
func (r *reader) lapsed(ctx context.Context, d backend.PushDue) ([]*backend.Push, error) {
	rows, err := r.pushRows(ctx, lapsedPushesSQL, string(d.Namespace), r.now, d.At, d.Tenant, backend.MostLapsedPushes)
	backend.SortDue(rows)
	return rows, err
}

// CountDuePushes implements [backend.PushReader].
func (r *reader) CountDuePushes(ctx context.Context, d backend.PushDue, most int) (int, error) {
	n, _, err := r.countDue(ctx, d, most)
	return n, err
}

// countDue counts due rows, up to most, and tells since when the longest due of those that were counted is.
func (r *reader) countDue(ctx context.Context, d backend.PushDue, most int) (n int, oldest time.Time, err error) {
	count := func(c *columns) error {
		n += c.Tally()
		if at := c.InstantOrNone(); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		return c.Corrupt("instant of a push registration")
	}
	if err = r.query(ctx, countDuePushesSQL, count, string(d.Namespace), d.At, d.Tenant, most); err == nil {
		err = r.query(ctx, countLapsedPushesSQL, count, string(d.Namespace), r.now, d.At, d.Tenant, most)
	}
	return min(n, most), oldest, err
}

// NextPush implements [backend.PushReader].
func (r *reader) NextPush(ctx context.Context, d backend.PushDue) (next time.Time, err error) {
	err = r.query(ctx, nextPushSQL, func(c *columns) error {
		next = c.InstantOrNone()
		return c.Corrupt("instant of a push registration")
	}, string(d.Namespace), d.At, d.Tenant)
	return next, err
}

// ListParkedPushes implements [backend.PushReader].
func (r *reader) ListParkedPushes(
	ctx context.Context, tenant string, f backend.PushFilter, after backend.PushKey, p backend.Span,
) ([]*backend.Push, backend.PushKey, error) {
	page := backend.Listing[backend.Push, backend.PushKey]{Limit: p.Limit, At: (*backend.Push).Key}
	looked := 0
	err := r.query(ctx, listParkedPushSQL, func(c *columns) error {
		passes := c.Boolean()
		x := row.Push(c)
		looked++
		if page.Add(x, passes || x.Corrupt != nil, looked == p.Look) {
			return errEnough
		}
		return nil
	}, string(f.Reason), f.Gate, tenant, after.RunID, after.ID, p.Look)
	return page.Rows, page.Next, err
}

// LongestParkedPushes implements [backend.PushReader].
func (r *reader) LongestParkedPushes(
	ctx context.Context, tenant string, f backend.PushFilter, after backend.ParkedPushPosition, p backend.Span,
) ([]*backend.Push, backend.ParkedPushPosition, error) {
	page := backend.Listing[backend.Push, backend.ParkedPushPosition]{Limit: p.Limit, At: backend.ParkedPushAt}
	at := start
	if after.Set {
		at = after.At.UnixMicro()
	}
	looked := 0
	err := r.query(ctx, longestParkedPushSQL, func(c *columns) error {
		passes := c.Boolean()
		x, err := row.ParkedPush(c)
		if err != nil {
			return err
		}
		looked++
		if page.Add(x, passes, looked == p.Look) {
			return errEnough
		}
		return nil
	}, string(f.Reason), f.Gate, tenant, at, after.Key.RunID, after.Key.ID, p.Look)
	return page.Rows, page.Next, err
}

// DuePushRuns implements [backend.PushReader].
func (r *reader) DuePushRuns(ctx context.Context, before time.Time, limit int) ([]backend.DuePushRun, error) {
	var due []*backend.Push
	for _, n := range [...]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
		d := backend.PushDue{Namespace: n, At: before}
		lapsed, err := r.lapsed(ctx, d)
		if err != nil {
			return nil, err
		}
		due = append(due, lapsed...)
		tenants, err := r.pushTenants(ctx, d)
		if err != nil {
			return nil, err
		}
		for d.Tenant = range tenants {
			rows, err := r.dueOf(ctx, d, nil, limit)
			if err != nil {
				return nil, err
			}
			due = append(due, rows...)
		}
	}
	return backend.RunsOfDue(due, limit), nil
}

// pushTenants are the tenants of a namespace that have unleased due rows, and since when.
func (r *reader) pushTenants(ctx context.Context, d backend.PushDue) (map[string]time.Time, error) {
	tenants := map[string]time.Time{}
	err := r.query(ctx, pushTenantsSQL, func(c *columns) error {
		tenant := c.Text()
		tenants[tenant] = c.Instant()
		return c.Corrupt("instant of a push registration", "tenant", tenant)
	}, string(d.Namespace), d.At)
	return tenants, err
}

// PushLog implements [backend.PushReader].
func (r *reader) PushLog(ctx context.Context, key backend.PushKey, incarnation, before int64, limit int) ([]*backend.PushLogEntry, error) {
	if before == 0 {
		before = rendezvous.MaxSeq
	}
	return r.logRows(ctx, pushLogSQL, key.Tenant, key.RunID, key.ID, incarnation, before, limit)
}

func (r *reader) logRows(ctx context.Context, sql string, args ...any) ([]*backend.PushLogEntry, error) {
	var rows []*backend.PushLogEntry
	err := r.query(ctx, sql, func(c *columns) error {
		e, err := row.PushLogEntry(c)
		rows = append(rows, e)
		return err
	}, args...)
	return rows, err
}

// PushLogged implements [backend.PushReader].
func (r *reader) PushLogged(ctx context.Context, key backend.PushKey, incarnation int64, entryID string) (*backend.PushLogEntry, error) {
	rows, err := r.logRows(ctx, pushLoggedSQL, key.Tenant, key.RunID, key.ID, incarnation, entryID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// pushDepth counts due, failing and parked registrations, up to most, and tells since when the longest due is.
func (r *reader) pushDepth(ctx context.Context, most int, d *backend.Depths) error {
	for _, n := range [...]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
		due, oldest, err := r.countDue(ctx, backend.PushDue{Namespace: n, At: r.now}, most)
		if err != nil {
			return err
		}
		d.DuePushes = min(d.DuePushes+due, most)
		if !oldest.IsZero() && (d.OldestDuePush.IsZero() || oldest.Before(d.OldestDuePush)) {
			d.OldestDuePush = oldest
		}
	}
	return r.query(ctx, pushDepthsSQL, func(c *columns) error {
		d.FailingPushes, d.ParkedPushes = c.Tally(), c.Tally()
		return nil
	}, most)
}

package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

const (
	pushByTokenSQL   = `SELECT` + pushColumns + ` FROM push_registrations p INDEXED BY push_token WHERE p.lease_token = ?1 AND p.lease_token <> 0`
	pushesOfClaimSQL = `SELECT` + pushColumns + ` FROM push_registrations p INDEXED BY push_claims
WHERE p.lease_owner <> '' AND p.lease_owner = ? AND p.lease_request = ? AND NOT p.lease_revoked AND p.state = 'live'`

	// A tenant's gates, found in a walk from gate to gate.
	pushGatesSQL = `
WITH RECURSIVE tenants (gate, n) AS (
	SELECT NULL, 0
	UNION ALL
	SELECT (
		SELECT p.gate FROM push_registrations p INDEXED BY push_gates
		WHERE p.state = 'live' AND p.lease_until IS NULL AND p.namespace = ?1 AND p.tenant = ?2 AND p.gate > coalesce(tenants.gate, '') ORDER BY p.gate LIMIT 1), n + 1
	FROM tenants WHERE (tenants.gate IS NOT NULL OR n = 0) AND n < ?3
)
SELECT gate FROM tenants WHERE gate IS NOT NULL`
	gatePushesSQL = `SELECT` + pushColumns + ` FROM push_registrations p INDEXED BY push_gates
WHERE p.state = 'live' AND p.lease_until IS NULL AND p.namespace = ?1 AND p.tenant = ?2 AND p.gate = ?3 AND p.next_attempt_at <= ?4
ORDER BY p.next_attempt_at, p.run_id, p.id LIMIT ?5 + 0`

	failingPushes = ` FROM push_registrations p INDEXED BY push_failing
WHERE p.state = 'live' AND p.failing_since IS NOT NULL`
	unleasedPush   = ` AND p.failing_since <= ?1 AND (p.lease_until IS NULL OR p.lease_until <= ?2)`
	agedTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (SELECT p.tenant` + failingPushes + ` AND p.tenant > tenants.tenant ORDER BY p.tenant LIMIT 1) FROM tenants WHERE tenants.tenant IS NOT NULL
), queues AS MATERIALIZED (
	SELECT tenants.tenant, (
		SELECT p.failing_since` + failingPushes + unleasedPush + ` AND p.tenant = tenants.tenant ORDER BY p.failing_since LIMIT 1) AS first
	FROM tenants
)
SELECT tenant FROM queues WHERE first IS NOT NULL ORDER BY first, tenant`
	agedPushesSQL = `SELECT` + pushColumns + failingPushes + unleasedPush + ` AND p.tenant = ?3 AND (p.failing_since, p.run_id, p.id) > (?4, ?5, ?6)
ORDER BY p.failing_since, p.run_id, p.id LIMIT ?7 + 0`

	pushLogKeys      = ` l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no`
	oldPushLogSQL    = `SELECT` + pushLogKeys + ` FROM push_log l INDEXED BY push_log_at WHERE NOT l.kept AND l.at <= ?1 ORDER BY l.at LIMIT ?2 + 0`
	longPushLogsSQL  = `SELECT` + pushColumns + ` FROM push_registrations p INDEXED BY push_logged WHERE p.logged > 0 AND p.logged > ?1 ORDER BY p.logged DESC LIMIT ?2 + 0`
	oldestPushLogSQL = `SELECT` + pushLogKeys + ` FROM push_log l
WHERE l.tenant = ?1 AND l.run_id = ?2 AND l.id = ?3 AND l.incarnation = ?4 AND NOT l.kept ORDER BY l.attempt_no LIMIT ?5 + 0`
	gonePushesSQL = `SELECT` + pushColumns + ` FROM push_registrations p INDEXED BY push_over
WHERE p.state = 'gone' AND p.lease_until <= ?1 ORDER BY p.lease_until LIMIT ?2 + 0`
)

// LockPushes implements [backend.PushTx]. The turn is the lock.
func (t *transaction) LockPushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return t.Pushes(ctx, keys)
}

// PushesByToken implements [backend.PushTx].
func (t *transaction) PushesByToken(ctx context.Context, tokens []int64) ([]*backend.Push, error) {
	var rows []*backend.Push
	for _, token := range slices.Compact(slices.Sorted(slices.Values(tokens))) {
		own, err := t.pushRows(ctx, pushByTokenSQL, token)
		if err != nil {
			return nil, err
		}
		rows = append(rows, own...)
	}
	return rows, nil
}

// PushesOfClaim implements [backend.PushTx].
func (t *transaction) PushesOfClaim(ctx context.Context, owner, request string) ([]*backend.Push, error) {
	rows, err := t.pushRows(ctx, pushesOfClaimSQL, owner, request)
	backend.SortDue(rows)
	return rows, err
}

// TakeDuePushes implements [backend.PushTx].
func (t *transaction) TakeDuePushes(ctx context.Context, c backend.PushClaim) (backend.PushesTaken, error) {
	if c.Only != nil {
		rows, err := t.PushesOf(ctx, c.Only)
		if err != nil {
			return backend.PushesTaken{}, err
		}
		return fair.ChoosePushes(c, rows, t.now)
	}
	tenants, err := t.pushTenants(ctx, c.PushDue)
	if err != nil {
		return backend.PushesTaken{}, err
	}
	lapsed, err := t.lapsed(ctx, c.PushDue)
	if err != nil {
		return backend.PushesTaken{}, err
	}
	return fair.TakePushes(c, fair.DuePushes{
		Since: tenants, Lapsed: lapsed, Heads: func(tenant string, most int) ([]*backend.Push, error) { return t.gateHeads(ctx, c, tenant, most) },
		Next: func(places []fair.Place[backend.Push]) (rows []*backend.Push, err error) {
			for _, p := range places {
				own, err := t.dueOf(ctx, backend.PushDue{Namespace: c.Namespace, At: c.At, Tenant: p.Tenant}, p.After, p.Most)
				if err != nil {
					return nil, err
				}
				rows = append(rows, own...)
			}
			return rows, nil
		},
	})
}

// gateHeads are the first due rows of each gate of a tenant.
func (t *transaction) gateHeads(ctx context.Context, c backend.PushClaim, tenant string, most int) ([]*backend.Push, error) {
	var gates []string
	err := t.query(ctx, pushGatesSQL, func(r *columns) error { gates = append(gates, r.Text()); return nil }, string(c.Namespace), tenant, backend.MostPushGates)
	if err != nil {
		return nil, err
	}
	var rows []*backend.Push
	for _, gate := range gates {
		own, err := t.pushRows(ctx, gatePushesSQL, string(c.Namespace), tenant, gate, c.At, most)
		if err != nil {
			return nil, err
		}
		rows = append(rows, own...)
	}
	return rows, nil
}

// TakeAgedPushes implements [backend.PushTx].
func (t *transaction) TakeAgedPushes(ctx context.Context, before time.Time, limit int) ([]*backend.Push, bool, error) {
	var tenants []string
	if err := t.query(ctx, agedTenantsSQL, func(c *columns) error { tenants = append(tenants, c.Text()); return nil }, before, t.now); err != nil {
		return nil, false, err
	}
	compare := func(a, b *backend.Push) int {
		return cmp.Or(a.FailingSince.Compare(b.FailingSince), a.Key().Compare(b.Key()))
	}
	return fair.Rows(tenants, limit, backend.TenantOfPush, compare, func(places []fair.Place[backend.Push]) ([]*backend.Push, error) {
		var rows []*backend.Push
		for _, p := range places {
			at, run, id := start, "", ""
			if p.After != nil {
				at, run, id = p.After.FailingSince.UnixMicro(), p.After.RunID, p.After.ID
			}
			own, err := t.pushRows(ctx, agedPushesSQL, before, t.now, p.Tenant, at, run, id, p.Most)
			if err != nil {
				return nil, err
			}
			rows = append(rows, own...)
		}
		return rows, nil
	})
}

func (t *transaction) logKeys(ctx context.Context, sql string, args ...any) ([]backend.PushLogKey, error) {
	var keys []backend.PushLogKey
	err := t.query(ctx, sql, func(c *columns) error {
		keys = append(keys, row.PushLogKey(c))
		return c.Corrupt("entry of an attempt log")
	}, args...)
	return keys, err
}

// OldPushLog implements [backend.PushTx].
func (t *transaction) OldPushLog(ctx context.Context, before time.Time, limit int) ([]backend.PushLogKey, error) {
	return t.logKeys(ctx, oldPushLogSQL, before, limit)
}

// LongPushLogs implements [backend.PushTx].
func (t *transaction) LongPushLogs(ctx context.Context, keep, limit int) ([]*backend.Push, error) {
	return t.pushRows(ctx, longPushLogsSQL, keep, limit)
}

// OldestPushLog implements [backend.PushTx].
func (t *transaction) OldestPushLog(ctx context.Context, key backend.PushKey, incarnation int64, n int) ([]backend.PushLogKey, error) {
	return t.logKeys(ctx, oldestPushLogSQL, key.Tenant, key.RunID, key.ID, incarnation, n)
}

// GonePushes implements [backend.PushTx].
func (t *transaction) GonePushes(ctx context.Context, limit int) ([]*backend.Push, error) {
	return t.pushRows(ctx, gonePushesSQL, t.now, limit)
}

const (
	insertPushSQL = `
INSERT INTO push_registrations (
	incarnation, version, created_at, next_seq, next_index, state, next_attempt_at, attempts, failing_since, rejects, attempt_no, lost, error, parked_at, reason,
	lease_token, lease_owner, lease_request, lease_until, lease_revoked, ended_token, ended_as, settle_id, settle_outcome, unpark_op, skipped, logged, last,
	tenant, run_id, id, workflow_id, namespace, gate, takes, settings)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updatePushSQL = `
UPDATE push_registrations SET
	incarnation = ?, version = ?, created_at = ?, next_seq = ?, next_index = ?, state = ?, next_attempt_at = ?, attempts = ?, failing_since = ?, rejects = ?,
	attempt_no = ?, lost = ?, error = ?, parked_at = ?, reason = ?, lease_token = ?, lease_owner = ?, lease_request = ?, lease_until = ?, lease_revoked = ?,
	ended_token = ?, ended_as = ?, settle_id = ?, settle_outcome = ?, unpark_op = ?, skipped = ?, logged = ?, last = ?
WHERE tenant = ? AND run_id = ? AND id = ?`
	resettlePushSQL      = `UPDATE push_registrations SET gate = ?, takes = ?, settings = ? WHERE tenant = ? AND run_id = ? AND id = ?`
	updateCorruptPushSQL = `
UPDATE push_registrations SET next_attempt_at = ?, lease_token = ?, lease_owner = ?, lease_request = ?, lease_until = ?, lease_revoked = ?
WHERE tenant = ? AND run_id = ? AND id = ?`
	deletePushSQL = `DELETE FROM push_registrations WHERE tenant = ? AND run_id = ? AND id = ?`
	wakePushSQL   = `
UPDATE push_registrations SET state = 'live', next_attempt_at = ? WHERE tenant = ? AND run_id = ? AND state = 'idle' AND (takes & ?) <> 0`
	deleteRunPushesSQL  = `DELETE FROM push_registrations WHERE tenant = ? AND run_id = ?`
	deleteRunPushLogSQL = `DELETE FROM push_log WHERE tenant = ? AND run_id = ?`
	insertPushLogSQL    = `
INSERT INTO push_log (tenant, run_id, id, incarnation, attempt_no, entry_id, at, kept, entry) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	deletePushLogSQL = `DELETE FROM push_log WHERE tenant = ? AND run_id = ? AND id = ? AND incarnation = ? AND attempt_no = ?`
)

// pushArgs are the columns of registrations that nearly every verb changes, in the order of both statements.
func pushArgs(p *backend.Push) []any {
	return []any{
		p.Incarnation, p.Version, p.CreatedAt, p.NextSeq, p.NextIndex, string(p.State), p.NextAttemptAt, p.Attempts, p.FailingSince, p.Rejects, p.AttemptNo,
		p.Lost, p.Error, p.ParkedAt, string(p.Reason), p.LeaseToken, p.LeaseOwner, p.LeaseRequest, p.LeaseUntil, p.LeaseRevoked, p.EndedToken, p.EndedAs,
		p.SettleID, p.SettleOutcome, p.UnparkOp, p.Skipped, p.Logged, backend.EncodePushAttempt(p.Last), p.Tenant, p.RunID, p.ID,
	}
}

// pushes writes registrations and their logs.
func (w *writer) pushes(c *backend.Changes) {
	for _, x := range c.Wakes {
		if w.err == nil {
			var n int
			n, w.err = w.t.exec(wakePushSQL, x.Now, x.Run.Tenant, x.Run.ID, int64(x.Kinds))
			x.Woke = n > 0
		}
	}
	for _, k := range c.GonePushes {
		w.one(deletePushSQL, k.Tenant, k.RunID, k.ID)
	}
	for _, p := range c.NewPushes {
		w.one(insertPushSQL, append(pushArgs(p), p.WorkflowID, string(p.Namespace), p.Gate, int64(p.Takes), backend.EncodePushSettings(p.Settings))...)
	}
	for _, p := range c.Pushes {
		if p.Corrupt != nil {
			w.one(updateCorruptPushSQL, p.NextAttemptAt, p.LeaseToken, p.LeaseOwner, p.LeaseRequest, p.LeaseUntil, p.LeaseRevoked, p.Tenant, p.RunID, p.ID)
			continue
		}
		w.one(updatePushSQL, pushArgs(p)...)
		if p.Resettled {
			w.one(resettlePushSQL, p.Gate, int64(p.Takes), backend.EncodePushSettings(p.Settings), p.Tenant, p.RunID, p.ID)
		}
	}
	for _, k := range c.GonePushLog {
		w.any(deletePushLogSQL, k.Tenant, k.RunID, k.ID, k.Incarnation, k.No)
	}
	for _, e := range c.PushLog {
		w.one(insertPushLogSQL, e.Tenant, e.RunID, e.ID, e.Incarnation, e.No, e.EntryID, e.At, e.Kept, backend.EncodePushAttempt(&e.Attempt))
	}
}

package sqlite

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// What can be taken of a shard: rows that are ready, and those that only a hold of an older epoch than the shard's keeps from it. Parameters 1 to 7 are the shard,
// now, the tenant, the position behind which the page begins, and its limit.
const (
	shardEpoch = `(SELECT l.epoch FROM shard_leases l WHERE l.pool = '` + backend.TimerPool + `' AND l.shard = ?1)`
	voidHolds  = ` FROM timers t INDEXED BY timers_holds WHERE t.token <> 0 AND t.shard = ?1 AND t.hold_epoch < ` + shardEpoch

	readySQL = `
SELECT` + timerColumns + ` FROM timers t INDEXED BY timers_ready
WHERE t.shard = ?1 AND t.ready_at <= ?2 AND t.tenant = ?3 AND (t.ready_at, t.workflow_id, t.timer_id) > (?4, ?5, ?6)
ORDER BY t.ready_at, t.workflow_id, t.timer_id LIMIT ?7 + 0`
	// No index has them in order: what is sorted is the index alone.
	voidSQL = `
WITH queues AS MATERIALIZED (
	SELECT t.due_at, t.workflow_id, t.timer_id` + voidHolds + ` AND t.ready_at > ?2 AND t.due_at <= ?2 AND t.tenant = ?3
		AND (t.due_at, t.workflow_id, t.timer_id) > (?4, ?5, ?6)
	ORDER BY t.due_at, t.workflow_id, t.timer_id LIMIT ?7 + 0
)
SELECT` + timerColumns + ` FROM queues CROSS JOIN timers t ON t.tenant = ?3 AND t.workflow_id = queues.workflow_id AND t.timer_id = queues.timer_id
ORDER BY queues.due_at, queues.workflow_id, queues.timer_id`

	// The first of each tenant, found in a walk from tenant to tenant over the index.
	readyTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (SELECT t.tenant FROM timers t INDEXED BY timers_ready WHERE t.shard = ?1 AND t.tenant > tenants.tenant ORDER BY t.tenant LIMIT 1)
	FROM tenants WHERE tenants.tenant IS NOT NULL
), queues AS MATERIALIZED (
	SELECT tenants.tenant, (
		SELECT t.ready_at FROM timers t INDEXED BY timers_ready WHERE t.shard = ?1 AND t.tenant = tenants.tenant ORDER BY t.ready_at LIMIT 1) AS first
	FROM tenants
)
SELECT tenant, first FROM queues WHERE first <= ?2`
	voidTenantsSQL = `SELECT t.tenant, min(t.due_at)` + voidHolds + ` AND t.ready_at > ?2 AND t.due_at <= ?2 GROUP BY t.tenant`

	nextReadySQL = `SELECT t.ready_at FROM timers t INDEXED BY timers_next WHERE t.shard = ?1 ORDER BY t.ready_at LIMIT 1`
	nextVoidSQL  = `SELECT min(t.due_at)` + voidHolds

	// How many are due, up to a maximum, and the longest due of those that were counted.
	dueDepthSQL = `
WITH RECURSIVE shards (shard) AS (
	SELECT -1
	UNION ALL
	SELECT (SELECT t.shard FROM timers t INDEXED BY timers_next WHERE t.shard > shards.shard ORDER BY t.shard LIMIT 1)
	FROM shards WHERE shards.shard IS NOT NULL
)
SELECT count(*), min(due_at) FROM (
	SELECT t.due_at FROM shards CROSS JOIN timers t INDEXED BY timers_next ON t.shard = shards.shard AND t.ready_at <= ?1
	UNION ALL
	SELECT t.due_at FROM timers t INDEXED BY timers_holds WHERE t.token <> 0 AND t.ready_at > ?1 AND t.due_at <= ?1
	LIMIT ?2 + 0)`
)

// NextDue implements [backend.TimerReader].
func (r *reader) NextDue(ctx context.Context, shards []int) (map[int]time.Time, error) {
	next := map[int]time.Time{}
	for _, shard := range shards {
		for _, sql := range [...]string{nextReadySQL, nextVoidSQL} {
			err := r.query(ctx, sql, func(c *columns) error {
				at := c.InstantOrNone()
				if was, ok := next[shard]; !at.IsZero() && (!ok || at.Before(was)) {
					next[shard] = at
				}
				return c.Corrupt("instant of a timer", "shard", shard)
			}, shard)
			if err != nil {
				return nil, err
			}
		}
	}
	return next, nil
}

// dueQueue is where a tenant has due timers: a shard, and its ready rows or those of void holds.
type dueQueue struct {
	shard int
	sql   string
}

// DueTimers implements [backend.TimerTx].
func (t *transaction) DueTimers(ctx context.Context, shards []int, limit int) ([]*backend.Timer, bool, error) {
	queues := map[string][]dueQueue{}
	longest := map[string]time.Time{}
	for _, shard := range slices.Compact(slices.Sorted(slices.Values(shards))) {
		for _, of := range [...]struct{ tenants, rows string }{{readyTenantsSQL, readySQL}, {voidTenantsSQL, voidSQL}} {
			err := t.query(ctx, of.tenants, func(c *columns) error {
				tenant, at := c.Text(), c.Instant()
				if was, ok := longest[tenant]; !ok || at.Before(was) {
					longest[tenant] = at
				}
				queues[tenant] = append(queues[tenant], dueQueue{shard, of.rows})
				return c.Corrupt("instant of a timer", "shard", shard)
			}, shard, t.now)
			if err != nil {
				return nil, false, err
			}
		}
	}
	tenants := slices.SortedFunc(maps.Keys(queues), func(a, b string) int { return cmp.Or(longest[a].Compare(longest[b]), cmp.Compare(a, b)) })
	compare := func(a, b *backend.Timer) int {
		return cmp.Or(t.readyFrom(a).Compare(t.readyFrom(b)), a.Key().Compare(b.Key()))
	}
	tenantOf := func(x *backend.Timer) string { return x.Tenant }
	rows, more, err := fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Timer]) ([]*backend.Timer, error) {
		var rows []*backend.Timer
		for _, p := range places {
			own, err := fair.Merge(t.queuesOf(ctx, p.Tenant, queues[p.Tenant]), p.After, p.Most, compare)
			if err != nil {
				return nil, err
			}
			rows = append(rows, own...)
		}
		return rows, nil
	})
	slices.SortFunc(rows, func(a, b *backend.Timer) int { return cmp.Or(a.DueAt.Compare(b.DueAt), a.Key().Compare(b.Key())) })
	return rows, more, err
}

// queuesOf are a tenant's queues.
func (t *transaction) queuesOf(ctx context.Context, tenant string, of []dueQueue) []fair.Fetch[backend.Timer] {
	var queues []fair.Fetch[backend.Timer]
	for _, q := range of {
		queues = append(queues, func(after *backend.Timer, limit int) ([]*backend.Timer, error) {
			at, workflow, timer := start, "", ""
			if after != nil {
				at, workflow, timer = t.readyFrom(after).UnixMicro(), after.WorkflowID, after.TimerID
			}
			return t.timerRows(ctx, q.sql, q.shard, t.now, tenant, at, workflow, timer, limit)
		})
	}
	return queues
}

// readyFrom is since when a due timer could be taken.
func (t *transaction) readyFrom(x *backend.Timer) time.Time {
	if x.ReadyAt.After(t.now) {
		return x.DueAt // its hold is void
	}
	return x.ReadyAt
}

// LockTimers implements [backend.TimerTx]. The turn is the lock.
func (t *transaction) LockTimers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return t.Timers(ctx, keys)
}

const heldTimerSQL = `SELECT` + timerColumns + ` FROM timers t INDEXED BY timers_token WHERE t.token = ?1 AND t.token <> 0`

// HeldTimers implements [backend.TimerTx].
func (t *transaction) HeldTimers(ctx context.Context, tokens []int64) ([]*backend.Timer, error) {
	var found []*backend.Timer
	for _, token := range slices.Compact(slices.Sorted(slices.Values(tokens))) {
		err := t.query(ctx, heldTimerSQL, func(c *columns) error { found = append(found, row.Timer(c)); return nil }, token)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

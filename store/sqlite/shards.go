package sqlite

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// Workflows of a shard and a status. Parameters 1 to 5 are those, the position behind which the page begins, and its limit.
const (
	headColumns = `w.shard, w.tenant, w.workflow_id, w.head_seq, w.status`
	headsSQL    = `
SELECT ` + headColumns + ` FROM workflows w INDEXED BY workflows_heads
WHERE w.shard = ?1 AND w.status = ?2 AND (w.tenant, w.workflow_id) > (?3, ?4)
ORDER BY w.tenant, w.workflow_id LIMIT ?5 + 0`
	tenantHeadsSQL = `
SELECT ` + headColumns + ` FROM workflows w INDEXED BY workflows_heads
WHERE w.shard = ?1 AND w.status = ?2 AND w.tenant = ?3 AND w.workflow_id > ?4
ORDER BY w.workflow_id LIMIT ?5 + 0`
	headShardsSQL = `
WITH RECURSIVE shards (shard) AS (
	SELECT ?1 - 1
	UNION ALL
	SELECT (SELECT w.shard FROM workflows w INDEXED BY workflows_heads WHERE w.shard > shards.shard ORDER BY w.shard LIMIT 1)
	FROM shards WHERE shards.shard IS NOT NULL
)
SELECT shard FROM shards WHERE shard >= ?1`
)

// statusesOfWorkflows are all there are.
var statusesOfWorkflows = [...]rendezvous.Status{
	rendezvous.StatusRunning, rendezvous.StatusPaused, rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled, rendezvous.StatusTimedOut,
}

// Heads implements [backend.TimerReader].
func (r *reader) Heads(
	ctx context.Context, o backend.Owned, status rendezvous.Status, after backend.HeadPosition, limit int,
) ([]backend.WorkflowHead, error) {
	shards := slices.Compact(slices.Sorted(slices.Values(o.Shards)))
	if o.Shards == nil {
		err := r.query(ctx, headShardsSQL, func(c *columns) error { shards = append(shards, c.Integer()); return nil }, after.Shard)
		if err != nil {
			return nil, err
		}
	}
	statuses := statusesOfWorkflows[:]
	if status != "" {
		statuses = []rendezvous.Status{status}
	}
	var found []backend.WorkflowHead
	for _, shard := range shards {
		from := backend.WorkflowKey{}
		if shard < after.Shard {
			continue
		} else if shard == after.Shard {
			from = after.Key
		}
		compare := func(a, b *backend.WorkflowHead) int { return a.Key.Compare(b.Key) }
		rows, err := fair.Merge(r.headsOf(ctx, shard, statuses, o.Tenant, from), nil, limit-len(found), compare)
		if err != nil {
			return nil, err
		}
		for _, h := range rows {
			found = append(found, *h)
		}
		if len(found) >= limit {
			break
		}
	}
	return found, nil
}

// headsOf are a shard's workflows of each status, behind a key; of one tenant, if that is named.
func (r *reader) headsOf(
	ctx context.Context, shard int, statuses []rendezvous.Status, tenant string, from backend.WorkflowKey,
) []fair.Fetch[backend.WorkflowHead] {
	if tenant != "" && from.Tenant > tenant {
		return nil
	}
	var queues []fair.Fetch[backend.WorkflowHead]
	for _, status := range statuses {
		queues = append(queues, func(after *backend.WorkflowHead, limit int) (rows []*backend.WorkflowHead, err error) {
			sql, at := headsSQL, from
			if after != nil {
				at = after.Key
			}
			if tenant != "" {
				if sql = tenantHeadsSQL; at.Tenant != tenant {
					at = backend.WorkflowKey{Tenant: tenant}
				}
			}
			err = r.query(ctx, sql, func(c *columns) error {
				rows = append(rows, &backend.WorkflowHead{
					Shard: c.Tally(), Key: backend.WorkflowKey{Tenant: c.Text(), ID: c.Text()}, Head: c.Count(), Status: c.Status(),
				})
				return nil
			}, shard, string(status), at.Tenant, at.ID, limit)
			return rows, err
		})
	}
	return queues
}

const (
	shardLeaseColumns = ` l.pool, l.shard, l.owner, l.epoch, l.expires_at, l.serving, l.address`
	shardLeasesSQL    = `SELECT` + shardLeaseColumns + ` FROM shard_leases l WHERE l.pool = ? ORDER BY l.shard`
	shardLeaseSQL     = `SELECT` + shardLeaseColumns + ` FROM shard_leases l WHERE l.pool = ? AND l.shard = ?`
	membersSQL        = `
SELECT m.pool, m.incarnation, m.address, m.started_at, m.draining, m.expires_at FROM members m WHERE m.pool = ? ORDER BY m.incarnation`
)

func (r *reader) shardLeases(ctx context.Context, sql string, args ...any) (rows []*backend.ShardLease, err error) {
	err = r.query(ctx, sql, func(c *columns) error {
		l, err := row.ShardLease(c)
		rows = append(rows, l)
		return err
	}, args...)
	return rows, err
}

// ShardLeases implements [backend.TimerReader].
func (r *reader) ShardLeases(ctx context.Context, pool string) ([]*backend.ShardLease, error) {
	return r.shardLeases(ctx, shardLeasesSQL, pool)
}

// Members implements [backend.TimerReader].
func (r *reader) Members(ctx context.Context, pool string) (rows []*backend.Member, err error) {
	err = r.query(ctx, membersSQL, func(c *columns) error {
		m, err := row.Member(c)
		rows = append(rows, m)
		return err
	}, pool)
	return rows, err
}

// LockShards implements [backend.TimerTx]. The turn is the lock.
func (t *transaction) LockShards(ctx context.Context, pool string, shards []int, _ backend.ShardLock) (map[int]*backend.ShardLease, error) {
	found := make(map[int]*backend.ShardLease, len(shards))
	for _, shard := range shards {
		rows, err := t.shardLeases(ctx, shardLeaseSQL, pool, shard)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			found[shard] = rows[0]
		}
	}
	return found, nil
}

// TryLockWorkflows implements [backend.TimerTx]: nobody else has a lock.
func (t *transaction) TryLockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return t.LockWorkflows(ctx, keys)
}

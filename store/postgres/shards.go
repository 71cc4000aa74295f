package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// ShardLeases implements [backend.TimerReader].
func (r *reader) ShardLeases(ctx context.Context, pool string) ([]*backend.ShardLease, error) {
	return r.leases(ctx, shardLeasesSQL, pool)
}

func (r *reader) leases(ctx context.Context, sql string, args ...any) ([]*backend.ShardLease, error) {
	var rows []*backend.ShardLease
	err := r.query(ctx, sql, func(c *columns) error {
		l, err := row.ShardLease(c)
		rows = append(rows, l)
		return err
	}, args...)
	return rows, err
}

func (r *reader) leasesByKey(ctx context.Context, keys []backend.ShardKey) (map[backend.ShardKey]*backend.ShardLease, error) {
	rows, err := r.leases(ctx, leasesByKeySQL, texts(keys, func(k backend.ShardKey) string { return k.Pool }), integers(keys, func(k backend.ShardKey) int { return k.Shard }))
	found := make(map[backend.ShardKey]*backend.ShardLease, len(rows))
	for _, l := range rows {
		found[l.Key()] = l
	}
	return found, err
}

// Members implements [backend.TimerReader].
func (r *reader) Members(ctx context.Context, pool string) ([]*backend.Member, error) {
	var rows []*backend.Member
	err := r.query(ctx, membersSQL, func(c *columns) error {
		m, err := row.Member(c)
		rows = append(rows, m)
		return err
	}, pool)
	return rows, err
}

// LockShards implements [backend.TimerTx]. A process that stands still from here on is not waited for at length.
func (t *transaction) LockShards(ctx context.Context, pool string, shards []int, lock backend.ShardLock) (map[int]*backend.ShardLease, error) {
	sql := fenceShardsSQL
	switch lock {
	case backend.ShardRenew:
		sql = renewShardsSQL
	case backend.ShardTake:
		sql = takeShardsSQL
	}
	shards = slices.Compact(slices.Sorted(slices.Values(shards)))
	locked := make(map[int]*backend.ShardLease, len(shards))
	var batch pgx.Batch
	batch.Queue(limitSessionSQL)
	batch.Queue(sql, pool, integers(shards, func(n int) int { return n })).Query(func(rows pgx.Rows) error {
		return each(rows, func(c *columns) error {
			l, err := row.ShardLease(c)
			locked[l.Shard] = l
			return err
		})
	})
	return locked, translate(t.conn.SendBatch(ctx, &batch).Close())
}

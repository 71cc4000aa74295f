package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Heads implements [backend.TimerReader].
func (r *reader) Heads(
	ctx context.Context, o backend.Owned, status rendezvous.Status, after backend.HeadPosition, limit int,
) ([]backend.WorkflowHead, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	order := r.heads[status]
	if order == nil {
		return nil, nil
	}
	walk := order.all()
	if after.Set {
		walk = order.above(flowAt{after.Shard, after.Key})
	}
	var rows []backend.WorkflowHead
	for p := range walk {
		if len(rows) >= limit {
			break
		}
		if (o.Tenant == "" || o.Tenant == p.key.Tenant) && within(o.Shards, p.shard) {
			w := r.workflows[p.key]
			rows = append(rows, backend.WorkflowHead{Shard: p.shard, Key: p.key, Head: w.Head, Status: w.Status})
		}
	}
	return rows, nil
}

// ShardLeases implements [backend.TimerReader].
func (r *reader) ShardLeases(ctx context.Context, pool string) ([]*backend.ShardLease, error) {
	return ofPool(ctx, r.leases, func(l *backend.ShardLease) bool { return l.Pool == pool })
}

// Members implements [backend.TimerReader].
func (r *reader) Members(ctx context.Context, pool string) ([]*backend.Member, error) {
	return ofPool(ctx, r.members, func(m *backend.Member) bool { return m.Pool == pool })
}

// ofPool reads the rows of a pool by their keys.
func ofPool[K interface {
	comparable
	Compare(K) int
}, V any](ctx context.Context, rows map[K]*V, of func(*V) bool,
) ([]*V, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var found []*V
	for _, k := range slices.SortedFunc(maps.Keys(rows), K.Compare) {
		if of(rows[k]) {
			found = append(found, copied(rows[k]))
		}
	}
	return found, nil
}

// LockShards implements [backend.TimerTx]. The turn is the lock; what is locked is kept to judge Apply by.
func (t *transaction) LockShards(
	ctx context.Context, pool string, shards []int, lock backend.ShardLock,
) (map[int]*backend.ShardLease, error) {
	switch {
	case t.locked != nil:
		return nil, misuse("locks shards after workflows")
	case t.shardLocks != nil:
		return nil, misuse("locks shards twice")
	case lock != backend.ShardFence && lock != backend.ShardRenew && lock != backend.ShardTake:
		return nil, misuse(fmt.Sprintf("locks shards by %q", lock))
	}
	if err := alive(ctx); err != nil {
		return nil, err
	}
	t.shardLocks = map[backend.ShardKey]backend.ShardLock{}
	found := map[int]*backend.ShardLease{}
	for _, shard := range shards {
		key := backend.ShardKey{Pool: pool, Shard: shard}
		if l := t.leases[key]; l != nil {
			t.shardLocks[key], found[shard] = lock, copied(l)
		}
	}
	return found, nil
}

// TryLockWorkflows implements [backend.TimerTx]: nobody else has a lock.
func (t *transaction) TryLockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return t.LockWorkflows(ctx, keys)
}

// checkTimerLocks: a hold is written only under its timer's lock, a lease only under its own, and not under one that others share to read it.
func (t *transaction) checkTimerLocks(c *backend.Changes) error {
	for _, x := range c.HeldTimers {
		if _, ok := t.timerLocks[x.Key()]; !ok {
			return misuse(fmt.Sprintf("changes the hold of timer %q of workflow %q of tenant %q without its lock", x.TimerID, x.WorkflowID, x.Tenant))
		}
	}
	for _, l := range c.ShardLeases {
		if lock, ok := t.shardLocks[l.Key()]; !ok || lock == backend.ShardFence {
			return misuse(fmt.Sprintf("changes the lease of shard %d in pool %q without its lock", l.Shard, l.Pool))
		}
	}
	return nil
}

// changeShards carries out what is to become of leases and members.
func (t *transaction) changeShards(c *backend.Changes) {
	for _, l := range slices.Concat(c.NewShardLeases, c.ShardLeases) {
		t.leases[l.Key()] = copied(l)
	}
	for _, k := range c.GoneMembers {
		delete(t.members, k)
	}
	for _, m := range c.Members {
		t.members[m.Key()] = copied(m)
	}
}

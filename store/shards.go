package store

import (
	"context"
	"time"
)

// Pool names a set of pods that divide the shards among themselves.
type Pool string

// The pools (shards.md section 2): each divides the same shards independently.
const (
	PoolTimer Pool = "timer"
	PoolSweep Pool = "sweep"
)

// Bounds of a shard lease's time to live (SH-11).
const (
	MinShardTTL     = time.Second
	MaxShardTTL     = 60 * time.Second
	DefaultShardTTL = 3 * time.Second
)

// ShardLease is who owns a shard.
type ShardLease struct {
	Shard     int
	Owner     string // an incarnation: member name / id minted at process start; "" is free
	Epoch     int64
	Remaining time.Duration // 0: free or expired
	ExpiresAt time.Time
	Serving   bool
	Address   string
}

// Member is a pod of a pool.
type Member struct {
	Incarnation string
	Address     string
	StartedAt   time.Time
	Draining    bool
	ExpiresAt   time.Time // of its heartbeat
}

// Acquisition is the answer of AcquireOwnedShards.
type Acquisition struct {
	Won  []ShardLease
	Lost []ShardLease // with their owners
}

// Renewal is the answer of RenewOwnedShards.
type Renewal struct {
	Held []ShardLease
	Lost []ShardLease // with the current owner
	Directory
}

// Directory says who owns what in a pool.
type Directory struct {
	Shards  []ShardLease // all N, by number
	Members []Member     // live ones, by incarnation
	Now     time.Time    // the store's
}

// PoolHandle is a store handle bound to one pool and one incarnation. It carries one scope: which shards its enumerations and worker verbs see
// (shards.md section 3). It is safe for concurrent use.
type PoolHandle interface {
	Enumerations
	TimerQueue
	Redeliverer
	Repairer

	// SetOwnedShards replaces the scope: nil is own-all, the start value; an empty list owns nothing (SH-3). No I/O.
	SetOwnedShards(shards []int) error
	// ExtendOwnedShards adds to the scope; on own-all nothing changes (SH-4). No I/O.
	ExtendOwnedShards(shards []int) error
	// AcquireOwnedShard takes a free, absent or expired shard: epoch + 1. Held by this very incarnation: the same epoch, extended (SH-6..SH-9, SH-11).
	// Errors: lease_held (owner, remaining_ms), conflict (draining), invalid (ttl outside 1..60 s).
	AcquireOwnedShard(ctx context.Context, shard int, ttl time.Duration) (ShardLease, error)
	// AcquireOwnedShards takes those it can (SH-10). It does not change the scope.
	AcquireOwnedShards(ctx context.Context, shards []int, ttl time.Duration) (Acquisition, error)
	// PublishShardOwner sets serving and address, fenced (SH-16). Again: nothing.
	PublishShardOwner(ctx context.Context, shard int, epoch int64, address string) error
	// IsCurrentOwner is the pod's belief: no is always safe, yes proves nothing (SH-15). No I/O.
	IsCurrentOwner(shard int) bool
	// RenewOwnedShards extends live leases of exactly this owner and epoch, and the member's heartbeat (SH-12). Lost shards leave the scope.
	RenewOwnedShards(ctx context.Context, shards []ShardEpoch, ttl time.Duration, m Member) (Renewal, error)
	// ReleaseOwnedShards frees what is still this owner's at that epoch (SH-13); the scope shrinks first.
	ReleaseOwnedShards(ctx context.Context, shards []ShardEpoch) error
	// Leave drops the member's row: the last word of a pod that drained.
	Leave(ctx context.Context) error
}

// Pools divide shards.
type Pools interface {
	// PoolHandle is a handle of one pool for one incarnation.
	PoolHandle(pool Pool, incarnation string) (PoolHandle, error)
	// ShardDirectory answers the pool's leases and live members.
	ShardDirectory(ctx context.Context, pool Pool) (Directory, error)
	// Shards is N (shards.md section 1). No I/O.
	Shards() int
}

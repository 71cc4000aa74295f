package shard

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// Leases are what a member needs of its handle of the store, which is a [store.PoolHandle].
type Leases interface {
	SetOwnedShards(shards []int) error
	ExtendOwnedShards(shards []int) error
	AcquireOwnedShards(ctx context.Context, shards []int, ttl time.Duration) (store.Acquisition, error)
	PublishShardOwner(ctx context.Context, shard int, epoch int64, address string) error
	IsCurrentOwner(shard int) bool
	RenewOwnedShards(ctx context.Context, shards []store.ShardEpoch, ttl time.Duration, m store.Member) (store.Renewal, error)
	ReleaseOwnedShards(ctx context.Context, shards []store.ShardEpoch) error
	Leave(ctx context.Context) error
}

// Work is what a pod of the pool does with its shards. The member calls it from one goroutine; nothing of it may block for long, for leases run out.
type Work interface {
	// Subscribe hears the shard's notices from now on. An error drops the shard. A broker that is away is none: notices are missed, and the shard is probed
	// (SH-26).
	Subscribe(ctx context.Context, shard int) error
	// Adopt begins to work on shards that are this pod's: what is due comes first. Before every page it asks IsCurrentOwner.
	Adopt(shards []store.ShardEpoch)
	// Quit begins no page on those shards any more, when it returns, forgets them and their notices, and closes the channel once no page on them is under way. Shards
	// that it does not know it ignores.
	Quit(shards []int) (over <-chan struct{})
}

// Deps is what a member is given.
type Deps struct {
	Leases      Leases // a handle of Pool for Incarnation
	Pool        store.Pool
	Incarnation string // see [Incarnation]
	Work        Work
	// Changed tells the other members of the pool that shards became free (messaging.md section 2). It may be lost. Nil tells nobody.
	Changed func(ctx context.Context)
	Clock   clock.Clock
	Log     *slog.Logger
	Meter   metric.Meter
}

// Config times a member. The zero value takes the contract's numbers (shards.md sections 2 and 5).
type Config struct {
	Address string        // for operators and direct notices
	TTL     time.Duration // of leases and heartbeat: 3 s; a third of it is the time from one renewal to the next
}

// Incarnation names a process of a member: who starts again is a stranger to its former self.
func Incarnation(member string) string { return member + "/" + rand.Text() }

// Times of shards.md section 5.
const (
	restless  = 500 * time.Millisecond // from one round to the next while something is to be had
	spread    = 100 * time.Millisecond // peers that saw the same lease run out do not ask at the same time
	finishing = 2 * time.Second        // for pages under way
	pace      = time.Second            // a part of the surplus is given back in it
	orphaned  = time.Second            // a shard free for so long is anybody's who is below the highest quota, and is kept for 5 of it
	deserted  = 2 * time.Second        // and for so long, anybody's, who keeps it for 15 of it: somebody does not take part
	shunning  = 3 * time.Second        // a shard that failed a step of its taking over is left to others
	unready   = 10 * time.Second       // a pod below its quota that leaves shards free for so long is not ready
	retrying  = 250 * time.Millisecond // after a round that failed
	hearing   = 100 * time.Millisecond // notices make no more than one round in it
)

// mostAtOnce is how many shards a round takes over: renewals are due between.
const mostAtOnce = 32

// publishers is how many of them are published at once.
const publishers = 8

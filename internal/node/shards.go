package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/shard"
	"github.com/rendezvous-events/rendezvous/store"
)

func checkShardLease(setting string, lease time.Duration) error {
	if lease < store.MinShardTTL || lease > store.MaxShardTTL {
		return rendezvous.InvalidField(setting, "%s is outside %s..%s", lease, store.MinShardTTL, store.MaxShardTTL)
	}
	return nil
}

// member is this process in a pool of those that divide the shards.
func (n *Node) member(pool store.Pool, incarnation string, handle store.PoolHandle, work shard.Work, lease time.Duration) (*shard.Member, error) {
	return shard.New(shard.Deps{
		Leases: handle, Pool: pool, Incarnation: incarnation, Work: work,
		Changed: func(ctx context.Context) {
			if err := n.conn.HintShards(string(pool)); err != nil {
				n.log.DebugContext(ctx, "the other pods were not told of shards that are free", "pool", pool, "error", err)
			}
		},
		Clock: clock.System, Log: n.log, Meter: n.telemetry.Meter,
	}, shard.Config{Address: host(), TTL: lease})
}

// join runs a member until the process stops; then it drains, so that the others go on at once.
func (n *Node) join(ctx context.Context, pool store.Pool, member *shard.Member) error {
	stop, err := n.conn.OnShards(string(pool), member.Kick)
	if err != nil {
		return err
	}
	life, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() { left <- member.Run(life) }()
	n.began("shards of the pool "+string(pool), func(ctx context.Context) error {
		stop()
		cancel()
		select {
		case err := <-left:
			return err
		case <-ctx.Done():
			return fmt.Errorf("shards that were not released stay until their leases end: %w", context.Cause(ctx))
		}
	})
	n.ready = append(n.ready, func(context.Context) error { return member.Ready() })
	for end := clock.System.Now().Add(joinPatience); member.Ready() != nil && clock.System.Now().Before(end); {
		if clock.Sleep(ctx, clock.System, 5*time.Millisecond) != nil {
			break
		}
	}
	return nil
}

// joinPatience is how long a start waits for its part of the shards; after that readiness says what is missing.
const joinPatience = 2 * time.Second

// memberName is what a process is called among the pods: its host's name, for a pod's is its own.
func memberName(role string) string {
	if h := host(); h != "" {
		return role + "-" + h
	}
	return role
}

// host is the name of this process's host, "" where it has none that can be shown.
func host() string {
	name, err := os.Hostname()
	if err != nil || rendezvous.CheckID("hostname", name) != nil || len(name) > rendezvous.MaxID/2 {
		return ""
	}
	return name
}

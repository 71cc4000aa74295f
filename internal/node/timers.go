package node

import (
	"context"
	"os"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/shard"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/timer"
)

// Timers are the settings of the role that fires timers.
type Timers struct {
	Lease time.Duration `name:"timer-lease" help:"How long a shard stays this pod's when it is not heard of any more (1s to 60s)." default:"3s"`
	Page  int           `name:"timer-page" help:"Timers fired in one transaction (1 to 2000)." default:"500"`
	Probe time.Duration `kong:"-"` // the longest between two looks at a shard, where a test's clock stands still and then jumps; 0: the contract's
}

func (t *Timers) validate() error {
	if t.Lease < store.MinShardTTL || t.Lease > store.MaxShardTTL {
		return rendezvous.InvalidField("timer-lease", "%s is outside %s..%s", t.Lease, store.MinShardTTL, store.MaxShardTTL)
	}
	if t.Page < 1 || t.Page > 2000 {
		return rendezvous.InvalidField("timer-page", "%d is outside 1..2000", t.Page)
	}
	return nil
}

// startTimers joins the pool of the timer-workers and fires what is due in the shards that this process owns.
func (n *Node) startTimers(ctx context.Context) error {
	if n.cfg.Timers == nil {
		return nil
	}
	incarnation := shard.Incarnation(memberName(n.cfg.Name))
	handle, err := n.store.PoolHandle(store.PoolTimer, incarnation)
	if err != nil {
		return err
	}
	var member *shard.Member
	worker, err := timer.New(handle, n.conn, timer.Deps{
		Matcher: n.store, Sender: n.sender, Fenced: func(shards int) { member.Fenced(shards) }, Clock: clock.System, Log: n.log, Meter: n.telemetry.Meter,
	}, timer.Config{Page: n.cfg.Timers.Page, Probe: n.cfg.Timers.Probe})
	if err != nil {
		return err
	}
	if member, err = n.member(store.PoolTimer, incarnation, handle, worker, n.cfg.Timers.Lease); err != nil {
		return err
	}
	worker.Start()
	n.began("timer-worker", worker.Stop)
	n.ready = append(n.ready, func(context.Context) error { return worker.Ready() })
	return n.join(ctx, store.PoolTimer, member)
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
	}, shard.Config{TTL: lease})
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
	n.began("shards of the pool "+string(pool), func(context.Context) error {
		stop()
		cancel()
		err := <-left
		left <- err
		return err
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
	host, err := os.Hostname()
	if err != nil || rendezvous.CheckID("hostname", host) != nil || len(host) > rendezvous.MaxID/2 {
		return role
	}
	return role + "-" + host
}

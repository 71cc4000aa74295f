package node

import (
	"context"
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
	Page  int           `name:"timer-page" help:"Timers fired in one transaction (1 to 2000)." default:"200"`
	Probe time.Duration `kong:"-"` // the longest between two looks at a shard, where a test's clock stands still and then jumps; 0: the contract's
}

func (t *Timers) validate() error {
	if err := checkShardLease("timer-lease", t.Lease); err != nil {
		return err
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

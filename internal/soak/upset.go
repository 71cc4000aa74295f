package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// What is done to push-workers, and around them, round by round.
const (
	shareFlood   = 0.05 // of the rounds delete every stream,
	shareSever   = 0.05 // end every session at the database,
	shareOthers  = 0.08 // kill the broker or PostgreSQL,
	shareStill   = 0.15 // stop a push-worker for a moment,
	shareAsleep  = 0.05 // let one stand still for longer than its leases last, while the rounds go on,
	shareTold    = 0.18 // tell one to end,
	shareToldAll = 0.05 // or both,
	shareAll     = 0.10 // kill both; else one.

	shareHurried = 0.7 // of the times both are dead their leases end

	backMost   = 1500 * time.Millisecond // until what ended begins its next life
	stillMost  = 4 * time.Second
	asleepMost = 8 * time.Second // beyond the lease
)

// upset is a round of the push shape. At most one push-worker stands still for long, and is let alone meanwhile.
func (c *chaos) upset(ctx, awake context.Context) error {
	var some []*process
	for _, w := range c.plane.pushers {
		if c.asleep.Load() != w {
			some = append(some, w)
		}
	}
	c.rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	r := c.rng.Float64()
	less := func(share float64) bool { r -= share; return r < 0 }
	switch {
	case less(shareFlood):
		return c.deleteStreams(ctx)
	case less(shareSever):
		return c.cut(ctx)
	case less(shareOthers):
		others := []victim{c.plane.broker, postgres{c.plane.cluster}}
		return c.kill(ctx, others[c.rng.IntN(2):][:1])
	case less(shareStill):
		return c.stop(ctx, some[0], c.upTo(stillMost))
	case less(shareAsleep):
		if len(some) > 1 {
			c.sleep(awake, some[0], pushLease+c.upTo(asleepMost))
		}
		return nil
	case less(shareTold):
		return c.told(ctx, some[:1], nothing)
	case less(shareToldAll):
		return c.told(ctx, some, nothing)
	case less(shareAll):
		return c.killed(ctx, some)
	}
	return c.killed(ctx, some[:1])
}

// stop lets a push-worker stand still.
func (c *chaos) stop(ctx context.Context, w *process, d time.Duration) error {
	c.count("push-worker " + frozen)
	c.say("%s is %s for %s", w.name, frozen, d)
	defer func(began time.Time) { c.ledger.disturbed(frozen, began) }(time.Now())
	return w.Stall(ctx, d)
}

// sleep lets one stand still while the rounds go on.
func (c *chaos) sleep(ctx context.Context, w *process, d time.Duration) {
	c.asleep.Store(w)
	c.count("push-worker beyond its leases")
	c.sleeping.Go(func() {
		defer c.asleep.Store(nil)
		if err := c.stop(ctx, w, d); err != nil {
			c.ledger.violation("%s could not be stopped: %v", w.name, err)
		}
	})
}

// told tells push-workers to end, which they do well, and does something before they begin again.
func (c *chaos) told(ctx context.Context, some []*process, between func(ctx context.Context) error) error {
	if err := each(victims(some), func(v victim) error { return v.Up(ctx) }); err != nil { // before, they do not know how to end well
		return err
	}
	if err := c.away(drained, (*process).Stop, some); err != nil {
		return err
	}
	return c.back(ctx, some, between)
}

// killed kills push-workers. When both are dead every send lease is a dead one's, and as a rule ends at once, as time would have it.
func (c *chaos) killed(ctx context.Context, some []*process) error {
	if err := c.away(killed, (*process).Kill, some); err != nil {
		return err
	}
	between := nothing
	if len(some) == len(c.plane.pushers) && c.rng.Float64() < shareHurried {
		between = c.endLeases
	}
	return c.back(ctx, some, between)
}

func nothing(context.Context) error { return nil }

// back brings push-workers back, a while after something else was done.
func (c *chaos) back(ctx context.Context, some []*process, before func(ctx context.Context) error) error {
	if err := before(ctx); err != nil {
		return err
	}
	pause(ctx, c.upTo(backMost))
	if err := each(victims(some), func(v victim) error { return v.Restart(ctx) }); err != nil || c.rng.Float64() < shareHaste {
		return err
	}
	return each(victims(some), func(v victim) error { return v.Up(ctx) })
}

func victims(some []*process) []victim {
	all := make([]victim, len(some))
	for i, w := range some {
		all[i] = w
	}
	return all
}

// endLeases ends every send lease, whose holders are all dead, as time would.
func (c *chaos) endLeases(ctx context.Context) error {
	c.count("leases of the dead ended")
	conn, err := pgx.Connect(ctx, c.plane.cluster.URL(database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "UPDATE push_registrations SET lease_until = rdv_now() - interval '1 second' WHERE lease_token <> 0")
	return errors.Join(err, conn.Close(ctx))
}

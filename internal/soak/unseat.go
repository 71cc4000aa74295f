package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// What is done to the timer-workers, at a pace that as a rule lets those who take over show that they do, and at times kills them too.
const (
	beforeUnseat = 6 * time.Second
	beforeReturn = 2 * time.Second

	shareFrozen  = 0.30 // of the times one stands still for longer than its leases last,
	shareDrained = 0.10 // one is told to end, and gives its shards away,
	sharePair    = 0.15 // two are killed at once; else one

	frozenLeast = 3500 * time.Millisecond
	frozenMost  = 5500 * time.Millisecond
)

// Disturbances, beside those of names of what is killed.
const (
	killed    = "killed"
	frozen    = "frozen"
	drained   = "drained"
	storeAway = "store away"
)

// unseat takes the timer-workers from their shards, until ctx ends. An error is one that did not come back.
func (c *chaos) unseat(ctx context.Context, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 3))
	for len(c.plane.firers) > 0 && pause(ctx, time.Duration(rng.Int64N(int64(beforeUnseat)))) {
		some := slices.Clone(c.plane.firers)
		rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		if err := c.unseatSome(context.WithoutCancel(ctx), rng, some); err != nil {
			return err
		}
	}
	return nil
}

func (c *chaos) unseatSome(ctx context.Context, rng *rand.Rand, some []*process) error {
	away := time.Duration(rng.Int64N(int64(beforeReturn)))
	switch r := rng.Float64(); {
	case r < shareFrozen:
		return c.freeze(ctx, some[0], frozenLeast+time.Duration(rng.Int64N(int64(frozenMost-frozenLeast))))
	case r < shareFrozen+shareDrained:
		if err := some[0].Up(ctx); err != nil { // before, it does not know how to end well
			return err
		}
		return c.end(ctx, drained, (*process).Stop, some[:1], away)
	case r < shareFrozen+shareDrained+sharePair:
		return c.end(ctx, killed, (*process).Kill, some[:2], away)
	}
	return c.end(ctx, killed, (*process).Kill, some[:1], away)
}

// end ends workers and brings them back.
func (c *chaos) end(ctx context.Context, what string, end func(*process) error, some []*process, away time.Duration) error {
	if err := c.away(what, end, some); err != nil {
		return err
	}
	pause(ctx, away)
	return each(victims(some), func(v victim) error { return v.Restart(ctx) })
}

// away ends workers.
func (c *chaos) away(what string, end func(*process) error, some []*process) error {
	began := time.Now()
	for _, w := range some {
		c.count(w.program() + " " + what)
		c.say("%s is %s", w.name, what)
		if err := end(w); err != nil {
			return err
		}
	}
	c.ledger.disturbed(what, began)
	return nil
}

// freeze stops a timer-worker for longer than its leases last. Those who take over do so from the moment on in which it stands still.
func (c *chaos) freeze(ctx context.Context, w *process, d time.Duration) error {
	c.count("timer-worker " + frozen)
	c.say("%s is %s for %s", w.name, frozen, d)
	c.ledger.disturbed(frozen, time.Now())
	return w.Stall(ctx, d)
}

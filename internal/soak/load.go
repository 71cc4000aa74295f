package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

const (
	atOnce = 96 // cases under way

	// Queues: of runs that nobody drives, that an executor drives, and that wild drivers do.
	queueIdle   = "idle"
	queueDriven = "driven"
	queueWild   = "wild"
)

// load puts cases on the plane: each is a small story of runs, waits and events, told to its end however often it has to be repeated.
type load struct {
	access []*access
	ledger *ledger
	pace   *rate.Limiter // of events
	seed   uint64
	next   atomic.Uint64
	hooks  *hooks // nil but in the push shape

	timers  int           // armings to make
	arming  *rate.Limiter // their pace
	armings atomic.Int64

	enoughTold <-chan struct{} // closed when no case is to begin any more
}

func newLoad(all []*access, l *ledger, s *hooks, o options) *load {
	per := func(second int) *rate.Limiter { return rate.NewLimiter(rate.Limit(second), max(second/4, 1)) }
	return &load{access: all, ledger: l, hooks: s, pace: per(o.rate), seed: o.seed, timers: o.timers, arming: per(o.timerRate)}
}

// enough says that all timers are armed.
func (l *load) enough() bool { return l.armings.Load() >= int64(l.timers) }

// run tells cases until none is to begin any more, and returns when all are told. cut ends those under way.
func (l *load) run(begin, cut context.Context) {
	l.enoughTold = begin.Done()
	var telling sync.WaitGroup
	tell := func(atOnce int, enough func() bool, one func(ctx context.Context, n uint64, rng *rand.Rand)) {
		for range atOnce {
			telling.Go(func() {
				for begin.Err() == nil && cut.Err() == nil && !enough() {
					n := l.next.Add(1)
					one(cut, n, rand.New(rand.NewPCG(l.seed, n+1000)))
				}
			})
		}
	}
	never := func() bool { return false }
	if l.hooks != nil {
		tell(followedAtOnce, never, l.tellFollowed)
	} else {
		tell(atOnce, never, l.tell)
		tell(timelyAtOnce, l.enough, l.tellTimely)
	}
	telling.Wait()
}

// tell tells one case.
func (l *load) tell(ctx context.Context, n uint64, rng *rand.Rand) {
	c := &story{load: l, access: l.access[rng.IntN(len(l.access))], rng: rng, id: fmt.Sprintf("c%d", n)}
	switch r := rng.Float64(); {
	case r < 0.35:
		c.plain(ctx)
	case r < 0.47:
		c.line(ctx)
	case r < 0.72:
		c.driven(ctx)
	case r < 0.94:
		c.wild(ctx)
	default:
		c.addressed(ctx)
	}
}

// story is one case.
type story struct {
	*load
	access *access
	rng    *rand.Rand
	id     string
}

func (c *story) run(suffix string) string { return c.id + "-run" + suffix }

// start starts a run; false when the load was cut off.
func (c *story) start(ctx context.Context, workflow, run, queue string, input any) bool {
	req := wire.StartRun{WorkflowID: workflow, RunID: run, Queue: queue}
	if input != nil {
		req.Input = client.JSON(input).Wire()
	}
	return c.begin(ctx, req)
}

func (c *story) begin(ctx context.Context, req wire.StartRun) bool {
	req.Type = "soak"
	_, err := c.access.any(c.rng).StartRun(ctx, req)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		c.ledger.violation("runs.start of %s/%s: %v", c.access.tenant, req.RunID, err)
		return false
	}
	c.ledger.started(c.access.tenant, req.WorkflowID, req.RunID)
	return true
}

// register registers a wait of a run nobody drives; false when the load was cut off.
func (c *story) register(ctx context.Context, run, effect string, keys ...rendezvous.Key) bool {
	return c.await(ctx, wire.RegisterWait{RunID: run, Effect: effect, Keys: keys})
}

// await is register, where some refusals may be.
func (c *story) await(ctx context.Context, req wire.RegisterWait, mayBe ...func(error) bool) bool {
	req.Type = eventType
	if c.rng.IntN(4) == 0 {
		req.From = source
	}
	got, err := c.access.any(c.rng).RegisterWait(ctx, req)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		c.refused(err, mayBe, "waits.register of %s/%s %s", c.access.tenant, req.RunID, req.Effect)
		return false
	}
	c.ledger.registered(c.access.tenant, rendezvous.WaitID{RunID: req.RunID, Effect: req.Effect}, got.Answered != nil)
	return true
}

// refused notes a refusal that may not be.
func (c *story) refused(err error, mayBe []func(error) bool, format string, args ...any) {
	if !slices.ContainsFunc(mayBe, func(is func(error) bool) bool { return is(err) }) {
		c.ledger.violation(format+": %v", append(args, err)...)
	}
}

// deliver sends an event of the case.
func (c *story) deliver(ctx context.Context, e rendezvous.Event, run string) bool {
	return c.send(ctx, c.access, c.rng, e, run)
}

// all does every step, in any order, and reports whether each was done.
func (c *story) all(steps []func() bool) bool {
	c.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	done := true
	for _, step := range steps {
		done = step() && done
	}
	return done
}

// idle lets some time pass, so that what follows meets another state of the plane.
func (c *story) idle(ctx context.Context, most time.Duration) {
	pause(ctx, time.Duration(c.rng.Int64N(int64(most))))
}

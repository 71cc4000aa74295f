package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Stories of time. Nobody drives their runs, so that nothing but the plane delays what is due; everything else that can happen to a timer happens about when it is.
const (
	timelyAtOnce = 128

	dueMost  = 4 * time.Second
	longMost = 15 * time.Second       // of a tenth of the timers: through several deaths of their owners
	aim      = 150 * time.Millisecond // what is to race with an instant comes so much before it or after
)

// tellTimely tells one of them.
func (l *load) tellTimely(ctx context.Context, n uint64, rng *rand.Rand) {
	c := &story{load: l, access: l.access[rng.IntN(len(l.access))], rng: rng, id: fmt.Sprintf("t%d", n)}
	switch r := rng.Float64(); {
	case r < 0.5:
		c.naps(ctx)
	case r < 0.8:
		c.deadlines(ctx)
	default:
		c.overdue(ctx)
	}
}

// together does parts of a story at once, each with a source of chances of its own.
func (c *story) together(parts ...func(part *story)) {
	var all sync.WaitGroup
	for _, do := range parts {
		part := *c
		part.rng = rand.New(rand.NewPCG(c.rng.Uint64(), c.rng.Uint64()))
		all.Go(func() { do(&part) })
	}
	all.Wait()
}

// naps is a run of several timers; at times an operator is at it meanwhile.
func (c *story) naps(ctx context.Context) {
	run := c.run("")
	if !c.start(ctx, c.id, run, queueIdle, nil) {
		return
	}
	var parts []func(*story)
	for i := range 2 + c.rng.IntN(4) {
		parts = append(parts, func(part *story) { part.nap(ctx, run, fmt.Sprintf("nap-%d", i)) })
	}
	if c.rng.IntN(2) == 0 {
		parts = append(parts, func(part *story) { part.operate(ctx, run) })
	}
	c.together(parts...)
}

// nap is one timer: it fires, or about when it is due it is armed again, for the same instant or a later one, or cancelled.
func (c *story) nap(ctx context.Context, run, timer string) {
	at, ok := c.arm(ctx, run, timer, time.Time{})
	for range c.rng.IntN(4) {
		if !ok || !c.near(ctx, at) {
			return
		}
		switch c.rng.IntN(3) {
		case 0:
			at, ok = c.arm(ctx, run, timer, at)
		case 1:
			at, ok = c.arm(ctx, run, timer, time.Time{})
		default:
			c.cancelTimer(ctx, run, timer)
		}
	}
}

// near lets time pass until about that instant, or some of it where that is far; false when the load was cut off.
func (c *story) near(ctx context.Context, at time.Time) bool {
	d := time.Until(at) + time.Duration(c.rng.Int64N(int64(2*aim))) - aim
	return pause(ctx, min(max(d, 0), dueMost))
}

// arm arms a timer for at, or some time from now. Where the plane refuses, because the run is over, ok is false; because it is paused, at is the instant before.
func (c *story) arm(ctx context.Context, run, timer string, at time.Time) (due time.Time, ok bool) {
	if c.arming.Wait(ctx) != nil {
		return at, false
	}
	req := wire.ArmTimer{RunID: run, TimerID: timer, FireAt: wire.DueAt(at)}
	if at.IsZero() {
		req.AfterMS = new(c.someTime().Milliseconds())
	}
	got, err := c.access.any(c.rng).ArmTimer(ctx, req)
	switch {
	case ctx.Err() != nil:
		return at, false
	case err != nil:
		c.refused(err, []func(error) bool{over, paused}, "timers.arm of %s/%s %s", c.access.tenant, run, timer)
		return at, paused(err)
	}
	c.armings.Add(1)
	c.ledger.told(promise{c.access.tenant, run, got.ArmedSeq, []rendezvous.Kind{rendezvous.TimerStarted}, timer, got.FireAt.Time})
	return got.FireAt.Time, true
}

// over and paused are refusals that a run gives which an operator, or a deadline, has been at.
func over(err error) bool { return errors.Is(err, rendezvous.ErrSealed) }

func paused(err error) bool {
	return errors.Is(err, rendezvous.ErrConflict) && rendezvous.AsError(err).Details["what"] == "paused"
}

// anew is the refusal of a repeated registration whose first one was made, and left open by an end that was taken back.
func anew(err error) bool { return errors.Is(err, rendezvous.ErrDuplicate) }

// ended is the refusal of a reopening by a run that its deadline ended, or that goes on.
func ended(err error) bool {
	return errors.Is(err, rendezvous.ErrConflict) && rendezvous.AsError(err).Details["what"] == "status"
}

func (c *story) someTime() time.Duration {
	if c.rng.IntN(10) == 0 {
		return time.Duration(c.rng.Int64N(int64(longMost)))
	}
	return time.Duration(c.rng.Int64N(int64(dueMost)))
}

func (c *story) cancelTimer(ctx context.Context, run, timer string) {
	got, err := c.access.any(c.rng).CancelTimer(ctx, wire.CancelTimer{RunID: run, TimerID: timer, Reason: "soak"})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.refused(err, []func(error) bool{over}, "timers.cancel of %s/%s %s", c.access.tenant, run, timer)
	case got.Seq > 0:
		kinds := []rendezvous.Kind{rendezvous.TimerCancelled}
		if got.Outcome == string(store.TimerFired) {
			kinds = append(kinds, rendezvous.TimerFired)
		}
		c.ledger.told(promise{tenant: c.access.tenant, run: run, seq: got.Seq, kinds: kinds, timer: timer})
	}
}

// operate pauses and resumes the run, or ends it, and as a rule opens it again.
func (c *story) operate(ctx context.Context, run string) {
	c.idle(ctx, dueMost)
	if c.rng.IntN(2) == 0 {
		c.act(ctx, run, rendezvous.RunPaused)
		c.idle(ctx, 2*time.Second)
		c.act(ctx, run, rendezvous.RunResumed)
		return
	}
	c.cancel(ctx, run)
	if c.rng.IntN(4) > 0 {
		c.idle(ctx, time.Second)
		c.reopen(ctx, run)
	}
}

// act pauses or resumes. A run that its deadline ended meanwhile is over.
func (c *story) act(ctx context.Context, run string, kind rendezvous.Kind) {
	do := c.access.any(c.rng).PauseRun
	if kind == rendezvous.RunResumed {
		do = c.access.any(c.rng).ResumeRun
	}
	got, err := do(ctx, wire.ActOnRun{RunID: run, Operator: operator, Reason: "soak"})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.refused(err, []func(error) bool{over}, "%s of %s/%s", kind, c.access.tenant, run)
	case got.Seq > 0:
		c.ledger.told(promise{tenant: c.access.tenant, run: run, seq: got.Seq, kinds: []rendezvous.Kind{kind}})
	}
}

// reopen opens a run again; one that its deadline ended stays over.
func (c *story) reopen(ctx context.Context, run string) {
	c.ledger.reopened(c.access.tenant, run)
	got, err := c.access.any(c.rng).ReopenRun(ctx, wire.ReopenRun{RunID: run, Operator: operator, Reason: "soak"})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.refused(err, []func(error) bool{ended}, "runs.reopen of %s/%s", c.access.tenant, run)
	default:
		c.armings.Add(int64(got.Timers))
		c.ledger.told(promise{tenant: c.access.tenant, run: run, seq: got.Seq, kinds: []rendezvous.Kind{rendezvous.RunReopened}})
	}
}

// deadlines is a run of waits with deadlines. About when one is over its event comes, or it is given up; or nothing happens.
func (c *story) deadlines(ctx context.Context) {
	run := c.run("")
	if !c.start(ctx, c.id, run, queueIdle, nil) {
		return
	}
	var parts []func(*story)
	for i := range 1 + c.rng.IntN(4) {
		parts = append(parts, func(part *story) { part.deadline(ctx, run, i) })
	}
	c.together(parts...)
}

func (c *story) deadline(ctx context.Context, run string, i int) {
	e := c.someEvent(fmt.Sprintf("%s/%d", c.id, i))
	w := rendezvous.WaitID{RunID: run, Effect: fmt.Sprintf("w%d", i)}
	d := time.Duration(c.rng.Int64N(int64(dueMost)))
	c.ledger.race(c.access.tenant, w, e.EventID)
	if c.arming.Wait(ctx) != nil || !c.await(ctx, wire.RegisterWait{
		RunID: run, Effect: w.Effect, Keys: e.Keys[:1], DeadlineAfterMS: new(d.Milliseconds()),
	}, over, paused, anew) {
		return
	}
	c.armings.Add(1)
	switch r := c.rng.IntN(10); {
	case r < 5 && c.near(ctx, time.Now().Add(d)), r == 5:
		c.deliver(ctx, e, "")
	case r == 6 && c.near(ctx, time.Now().Add(d)):
		c.withdraw(ctx, run, w.Effect)
	}
}

// overdue is a run with a deadline, which comes while timers and waits are open, or an operator was quicker.
func (c *story) overdue(ctx context.Context) {
	run, d := c.run(""), 200*time.Millisecond+time.Duration(c.rng.Int64N(int64(dueMost)))
	if c.arming.Wait(ctx) != nil || !c.begin(ctx, wire.StartRun{WorkflowID: c.id, RunID: run, Queue: queueIdle, DeadlineAfterMS: new(d.Milliseconds())}) {
		return
	}
	c.armings.Add(1)
	due := time.Now().Add(d)
	c.together(
		func(part *story) { part.nap(ctx, run, "nap") },
		func(part *story) { part.deadline(ctx, run, 0) },
		func(part *story) {
			switch r := part.rng.IntN(4); {
			case r == 0:
				part.operate(ctx, run)
			case r == 1 && part.near(ctx, due):
				part.cancel(ctx, run)
				part.reopen(ctx, run)
			}
		},
	)
}

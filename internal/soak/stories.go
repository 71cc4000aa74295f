package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// operator is who cancels.
var operator = &rendezvous.Operator{Actor: "soak", Basis: rendezvous.BasisAsserted}

// plain is a run nobody drives, with one to three waits and an event for each. Events come before their waits and after; some waits take either of two
// keys, some events carry keys that nobody waits for.
func (c *story) plain(ctx context.Context) {
	run := c.run("")
	if !c.start(ctx, c.id, run, queueIdle, nil) {
		return
	}
	var steps []func() bool
	for i := range 1 + c.rng.IntN(3) {
		effect, value := fmt.Sprintf("w%d", i), fmt.Sprintf("%s/%d", c.id, i)
		e := c.someEvent(value)
		steps = append(steps, c.meeting(ctx, run, effect, e, c.someKeys(value)))
	}
	if !c.all(steps) {
		return
	}
	switch c.rng.IntN(20) {
	case 0:
		c.cancel(ctx, run)
	case 1:
		c.withdraw(ctx, run, "w0")
	}
}

// someKeys is what a wait for that value listens to: its own key, or one more.
func (c *story) someKeys(value string) []rendezvous.Key {
	keys := []rendezvous.Key{key(value)}
	if c.rng.IntN(3) == 0 {
		keys = append(keys, key(value+"/alias"))
	}
	return keys
}

// someEvent is an event for that value, among other keys at times.
func (c *story) someEvent(value string) rendezvous.Event {
	keys := []rendezvous.Key{key(value)}
	if c.rng.IntN(3) == 0 {
		keys = append(keys, key(value+"/other"), rendezvous.Key{Namespace: "region", Value: value})
		c.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	return event(value, keys...)
}

// meeting is the two sides of a pair, one after the other, either first.
func (c *story) meeting(ctx context.Context, run, effect string, e rendezvous.Event, keys []rendezvous.Key) func() bool {
	return func() bool {
		c.ledger.meet(c.access.tenant, rendezvous.WaitID{RunID: run, Effect: effect}, e.EventID)
		return c.all([]func() bool{
			func() bool { return c.register(ctx, run, effect, keys...) },
			func() bool { return c.deliver(ctx, e, "") },
		})
	}
}

// line is a queue: several runs wait on one key, and as many events come for it.
func (c *story) line(ctx context.Context) {
	n := 2 + c.rng.IntN(3)
	var steps []func() bool
	for i := range n {
		run := c.run(fmt.Sprint(i))
		if !c.start(ctx, fmt.Sprintf("%s-%d", c.id, i), run, queueIdle, nil) {
			return
		}
		e := event(fmt.Sprintf("%s/%d", c.id, i), key(c.id))
		steps = append(steps,
			func() bool { return c.register(ctx, run, "turn", key(c.id)) },
			func() bool { return c.deliver(ctx, e, "") })
	}
	c.all(steps)
}

// input is what a driven run waits for: one event per step, in this run and in those it continues as.
type input struct {
	Case  string `json:"case"`
	Steps int    `json:"steps"`
	Run   int    `json:"run"`             // this one's number, from 0
	Runs  int    `json:"runs"`            // of the chain
	Ahead bool   `json:"ahead,omitempty"` // every wait is registered before the first answer is looked at

	NapMS    int64 `json:"nap_ms,omitempty"`    // before each wait, unless they are registered ahead
	WithinMS int64 `json:"within_ms,omitempty"` // how long each wait is open; 0: until it is answered
}

func (in input) value(step int) string { return fmt.Sprintf("%s/%d/%d", in.Case, in.Run, step) }

func effectOf(step int) string { return fmt.Sprintf("s%d", step) }

// driven is a run that an executor brings to its end: once all its events are accepted it has to complete.
func (c *story) driven(ctx context.Context) {
	in := input{Case: c.id, Steps: 1 + c.rng.IntN(2), Runs: 1 + c.rng.IntN(2), Ahead: c.rng.IntN(2) == 0}
	if c.rng.IntN(3) == 0 {
		in.NapMS = c.rng.Int64N(napMost.Milliseconds())
	}
	if c.rng.IntN(3) == 0 {
		in.WithinMS = c.rng.Int64N(withinMost.Milliseconds())
	}
	if c.feed(ctx, in, queueDriven) {
		c.ledger.completes(c.access.tenant, c.id)
	}
}

// wild is one that drivers handle who hold, abandon, withdraw and conclude as it pleases them.
func (c *story) wild(ctx context.Context) {
	c.feed(ctx, input{Case: c.id, Steps: 1 + c.rng.IntN(3), Runs: 1 + c.rng.IntN(2)}, queueWild)
}

// feed starts the run and sends all its events, some of them before.
func (c *story) feed(ctx context.Context, in input, queue string) bool {
	steps := []func() bool{func() bool { return c.start(ctx, c.id, c.run(""), queue, in) }}
	for run := range in.Runs {
		for step := range in.Steps {
			at := in
			at.Run = run
			steps = append(steps, func() bool {
				c.idle(ctx, 400*time.Millisecond)
				return c.deliver(ctx, c.someEvent(at.value(step)), "")
			})
		}
	}
	return c.all(steps)
}

// addressed is a run with a wait that only an event sent to the run answers. The request door refuses it while nobody waits, the stream door keeps it.
func (c *story) addressed(ctx context.Context) {
	run := c.run("")
	if !c.start(ctx, c.id, run, queueIdle, nil) {
		return
	}
	e := event(c.id + "/to")
	if !c.all([]func() bool{
		func() bool { return c.register(ctx, run, "to", key(c.id)) },
		func() bool { c.deliver(ctx, e, run); return true },
	}) {
		return
	}
	if c.rng.IntN(3) == 0 {
		c.cancel(ctx, run)
		c.deliver(ctx, event(c.id+"/late"), run)
	}
}

func (c *story) cancel(ctx context.Context, run string) {
	_, err := c.access.any(c.rng).CancelRun(ctx, wire.ActOnRun{RunID: run, Operator: operator, Reason: "soak", Now: true})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.ledger.violation("runs.cancel of %s/%s: %v", c.access.tenant, run, err)
	default:
		c.ledger.concluded(c.access.tenant, run)
	}
}

func (c *story) withdraw(ctx context.Context, run, effect string) {
	_, err := c.access.any(c.rng).WithdrawWait(ctx, wire.WithdrawWait{RunID: run, Effect: effect, Reason: "soak"})
	if err != nil && ctx.Err() == nil {
		unknown := func(err error) bool { return errors.Is(err, rendezvous.ErrNotFound) }
		c.refused(err, []func(error) bool{unknown, over}, "waits.withdraw of %s/%s %s", c.access.tenant, run, effect)
	}
}

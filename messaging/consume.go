package messaging

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

// Batch limits of a consumption. Zero fields take the defaults.
type Batch struct {
	// Size is the most messages a handler gets at once (500), Bytes the most bytes (8 MiB; one message always fits).
	Size  int
	Bytes int
	// Linger is how long a message waits for company (5 ms). Negative: not at all; what comes while a handler runs makes the next batch.
	Linger time.Duration
	// Concurrency is how many batches may be in handlers at once (1).
	Concurrency int
}

func (b Batch) withDefaults() Batch {
	if b.Size <= 0 {
		b.Size = rendezvous.MaxBatchItems
	}
	if b.Bytes <= 0 {
		b.Bytes = rendezvous.MaxBatchBytes
	}
	if b.Linger == 0 {
		b.Linger = 5 * time.Millisecond
	}
	if b.Concurrency <= 0 {
		b.Concurrency = 1
	}
	return b
}

// ConsumeOptions of one consumption.
type ConsumeOptions struct {
	Batch Batch
	// Gap is called when notices may have been lost or delayed: at start, after a reconnect, after missed heartbeats, after a stream or durable
	// had to be made again. The worker runs its poll. It must not block; calls may come close together.
	Gap func()
}

// handler judges one batch: one Outcome for each message, in order; none at all, or a panic, is a Retry for each. ctx ends only when a stop ran out of
// patience.
type handler func(ctx context.Context, batch []Msg) []Outcome

// Consumption is a running consumer. It works until it is stopped, whatever happens to the broker.
type Consumption struct {
	src  source
	opts Batch
	gap  func()
	buf  *buffer
	pull *puller

	stopOnce sync.Once
	stopped  chan struct{} // closed when a stop was asked for
	done     chan struct{} // closed when everything is down
	hard     context.CancelCauseFunc
	err      error
}

// source is what a consumption takes messages from.
type source struct {
	nc       *nats.Conn
	api      string // prefix of JetStream's API subjects
	stream   string
	durables []string
	deps     Deps
	ensure   func(context.Context) error            // makes stream and durables when they are missing
	created  func(stream, durable string) time.Time // since when what ensure found has been there
}

func start(src source, opts ConsumeOptions, h handler) (*Consumption, error) {
	b := opts.Batch.withDefaults()
	c := &Consumption{
		src: src, opts: b, gap: opts.Gap, buf: newBuffer(src.deps.Clock), stopped: make(chan struct{}), done: make(chan struct{}),
	}
	if c.gap == nil {
		c.gap = func() {}
	}
	c.pull = newPuller(src, b, c.buf, c.gap)
	if err := c.pull.subscribe(); err != nil {
		return nil, rendezvous.Errorf(rendezvous.CodeUnavailable, "cannot consume %s: the NATS connection is closed", src.stream).Because(err)
	}
	ctx, hard := context.WithCancelCause(context.Background())
	c.hard = hard
	tend, endTend := context.WithCancel(ctx)
	tended := make(chan struct{})
	go func() {
		defer close(tended)
		c.pull.tend(tend)
	}()
	go c.run(ctx, h, func() { endTend(); <-tended })
	return c, nil
}

// Stop ends the pulls, lets running batches finish, gives back what no handler has seen, and returns when all is down and said to the broker.
// When ctx ends first the handlers' context is cancelled and the cause is returned once they have come back. Idempotent; every caller waits.
func (c *Consumption) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() { close(c.stopped) })
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	c.hard(context.Cause(ctx))
	<-c.done
	return errors.Join(c.err, context.Cause(ctx))
}

// run gathers and hands out batches until the consumption is stopped, then takes it down in order.
func (c *Consumption) run(ctx context.Context, h handler, endTend func()) {
	defer close(c.done)
	defer c.hard(context.Canceled)
	slots := make(chan struct{}, c.opts.Concurrency)
	var handlers sync.WaitGroup
	for {
		select {
		case slots <- struct{}{}:
		case <-c.stopped:
		}
		batch := c.gather()
		if batch == nil {
			break
		}
		handlers.Go(func() {
			defer func() { <-slots }()
			c.handle(ctx, h, batch)
		})
	}
	endTend()
	c.pull.unsubscribe(ctx)
	handlers.Wait()
	c.release(c.buf.close())
	c.err = flush(c.src.nc)
}

// gather waits for a first message and then for company; nil once a stop was asked for.
func (c *Consumption) gather() []held {
	for {
		select {
		case <-c.stopped:
			return nil
		default:
		}
		linger := c.opts.Linger
		if c.pull.blocked() {
			linger /= 4
		}
		wait, ripe := c.buf.ripe(c.opts, linger)
		if ripe {
			return c.pull.take(c.opts)
		}
		if !c.await(wait) {
			return nil
		}
	}
}

// await waits until the buffer changes or d has passed (0: no limit); false once a stop was asked for.
func (c *Consumption) await(d time.Duration) bool {
	var late <-chan time.Time
	if d > 0 {
		t := c.src.deps.Clock.NewTimer(d)
		defer t.Stop()
		late = t.C()
	}
	select {
	case <-c.buf.changed:
	case <-late:
	case <-c.stopped:
		return false
	}
	return true
}

func (c *Consumption) handle(ctx context.Context, h handler, batch []held) {
	msgs := make([]Msg, len(batch))
	for i, m := range batch {
		msgs[i] = m.Msg
	}
	outcomes := c.guarded(ctx, h, msgs)
	if len(outcomes) != len(batch) && len(outcomes) > 0 {
		c.src.deps.Log.Error("handler answered another number of outcomes than it got messages; the rest comes again",
			"stream", c.src.stream, "messages", len(batch), "outcomes", len(outcomes))
	}
	for i, m := range batch {
		var o Outcome
		if i < len(outcomes) {
			o = outcomes[i]
		}
		c.pull.acknowledge(m, o)
	}
}

// guarded runs a handler. A panic in it is its batch's trouble alone: it comes again.
func (c *Consumption) guarded(ctx context.Context, h handler, msgs []Msg) (outcomes []Outcome) {
	defer func() {
		if p := recover(); p != nil {
			c.src.deps.Log.ErrorContext(ctx, "handler panicked; its messages come again", "stream", c.src.stream, "messages", len(msgs),
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			outcomes = nil
		}
	}()
	return h(ctx, msgs)
}

func (c *Consumption) release(rest []held) {
	for _, m := range rest {
		c.pull.acknowledge(m, Release())
	}
}

// flush returns when the broker has read everything sent so far. A broker that is away makes no stop fail: messages come again. It has a
// limit of its own, in the network's time, since the acknowledgements matter most when a stop was impatient.
func flush(nc *nats.Conn) error {
	if !nc.IsConnected() {
		return nil
	}
	ctx, cancel := clock.WithTimeout(context.Background(), clock.System, apiTimeout)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil && nc.IsConnected() {
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "the NATS server did not confirm the last acknowledgements; messages come again").Because(err)
	}
	return nil
}

// typed decodes a batch for a handler of T. What does not decode can never work: it is terminated here and the handler does not see it.
func typed[T any](deps Deps, stream string, decode func(Msg) (T, error), h func(context.Context, []T) []Outcome) handler {
	return func(ctx context.Context, batch []Msg) []Outcome {
		outcomes := make([]Outcome, len(batch))
		values, at := make([]T, 0, len(batch)), make([]int, 0, len(batch))
		for i, m := range batch {
			v, err := decode(m)
			if err != nil {
				deps.Log.Warn("message terminated", "stream", stream, "sequence", m.Sequence, "error", err)
				outcomes[i] = Term(err.Error())
				continue
			}
			values, at = append(values, v), append(at, i)
		}
		if len(values) == 0 {
			return outcomes
		}
		for i, o := range h(ctx, values) {
			if i < len(at) {
				outcomes[at[i]] = o
			}
		}
		return outcomes
	}
}

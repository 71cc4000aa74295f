// Package group is the group commit: many callers' items go into few transactions. A door hands in one item at a time and gets its own outcome; the
// commit function sees batches.
//
// A batch leaves at once when no commit is under way, so a lone caller waits for nobody; while commits are under way the next batch gathers, up to
// its bounds. That needs no timer: under load the commit itself is the window. Memory is bounded: at most Queue calls wait, further callers block.
package group

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/rendezvous-events/rendezvous"
)

// Config bounds a group. The zero value takes the contract's numbers.
type Config struct {
	Items   int // items of a batch, rendezvous.MaxBatchItems
	Bytes   int // bytes of a batch, rendezvous.MaxBatchBytes; one item always fits
	Commits int // commits under way at once, 1
	Queue   int // calls that may wait, 4 × Items

	Log *slog.Logger // told of commits that panic, slog.Default
}

// Commit makes one batch durable and answers one outcome per item, in order. Its error is every item's; a panic in it is every item's commit_unknown.
type Commit[I, O any] func(ctx context.Context, items []I) ([]O, error)

// Group gathers items for a commit function. Make it with [New], end it with Stop.
type Group[I, O any] struct {
	cfg    Config
	size   func(I) int
	commit Commit[I, O]
	queue  chan entry[I, O]
	stop   chan struct{}
	once   sync.Once
	done   sync.WaitGroup
	down   chan struct{} // closed when every batch is answered
	hard   context.Context
	cancel context.CancelFunc
}

// entry is what a caller handed in to be committed together.
type entry[I, O any] struct {
	items []I
	bytes int
	reply chan result[O]
}

type result[O any] struct {
	outs []O // one for each item
	err  error
}

// New starts a group; size tells an item's bytes.
func New[I, O any](cfg Config, size func(I) int, commit Commit[I, O]) *Group[I, O] {
	if cfg.Items <= 0 {
		cfg.Items = rendezvous.MaxBatchItems
	}
	if cfg.Bytes <= 0 {
		cfg.Bytes = rendezvous.MaxBatchBytes
	}
	if cfg.Commits <= 0 {
		cfg.Commits = 1
	}
	if cfg.Queue <= 0 {
		cfg.Queue = 4 * cfg.Items
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	hard, cancel := context.WithCancel(context.Background())
	g := &Group[I, O]{
		cfg: cfg, size: size, commit: commit, queue: make(chan entry[I, O], cfg.Queue), stop: make(chan struct{}), down: make(chan struct{}), hard: hard, cancel: cancel,
	}
	batches := make(chan batch[I, O])
	g.done.Add(1 + cfg.Commits)
	go g.gather(batches)
	for range cfg.Commits {
		go g.work(batches)
	}
	go func() { g.done.Wait(); close(g.down) }()
	return g
}

// Do hands one item in and waits for its outcome. When ctx ends first the item may still be committed: the error is commit_unknown, and repeating
// the call is safe by the contract of the verb behind it.
func (g *Group[I, O]) Do(ctx context.Context, item I) (O, error) { return g.Hand(ctx, item)() }

// Hand hands one item in and answers a function that waits for its outcome, as [Group.Do] does both: a caller of many items hands in all before it waits,
// and needs no goroutine for each. It blocks while the group is full. Call the function once.
func (g *Group[I, O]) Hand(ctx context.Context, item I) func() (O, error) {
	wait := g.hand(ctx, []I{item})
	return func() (none O, _ error) {
		outs, err := wait()
		if err != nil {
			return none, err
		}
		return outs[0], nil
	}
}

// HandAll is Hand for items whose order matters: they are committed together as far as the bounds of a batch allow, and what goes into a later commit is
// handed in when the one before is answered. One outcome and one error per item, in order.
func (g *Group[I, O]) HandAll(ctx context.Context, items []I) func() ([]O, []error) {
	parts := g.split(items)
	wait := func() ([]O, error) { return nil, nil }
	if len(parts) > 0 {
		wait = g.hand(ctx, parts[0])
	}
	return func() ([]O, []error) {
		outs, errs := make([]O, 0, len(items)), make([]error, 0, len(items))
		for i, part := range parts {
			if i > 0 {
				wait = g.hand(ctx, part)
			}
			got, err := wait()
			if err != nil {
				got = make([]O, len(part))
			}
			outs = append(outs, got...)
			for range part {
				errs = append(errs, err)
			}
		}
		return outs, errs
	}
}

// split cuts items into parts that fit a batch each.
func (g *Group[I, O]) split(items []I) [][]I {
	var parts [][]I
	start, bytes := 0, 0
	for i, item := range items {
		size := g.size(item)
		if n := i - start; n > 0 && (n == g.cfg.Items || bytes+size > g.cfg.Bytes) {
			parts = append(parts, items[start:i])
			start, bytes = i, 0
		}
		bytes += size
	}
	if start < len(items) {
		parts = append(parts, items[start:])
	}
	return parts
}

// hand hands one entry in.
func (g *Group[I, O]) hand(ctx context.Context, items []I) func() ([]O, error) {
	refused := func(err error) func() ([]O, error) {
		return func() ([]O, error) { return nil, err }
	}
	select {
	case <-g.stop:
		return refused(stopped())
	default:
	}
	e := entry[I, O]{items: items, reply: make(chan result[O], 1)}
	for _, item := range items {
		e.bytes += g.size(item)
	}
	select {
	case g.queue <- e:
	case <-ctx.Done():
		return refused(rendezvous.Errorf(rendezvous.CodeUnavailable, "the door is full; nothing was done, try again").Because(context.Cause(ctx)))
	case <-g.stop:
		return refused(stopped())
	}
	return func() ([]O, error) { return g.outcome(ctx, e.reply) }
}

func (g *Group[I, O]) outcome(ctx context.Context, r <-chan result[O]) ([]O, error) {
	select {
	case o := <-r:
		return o.outs, o.err
	case <-g.down: // it came in behind the last look at the queue, or its answer is there already
		select {
		case o := <-r:
			return o.outs, o.err
		default:
			return nil, stopped()
		}
	case <-ctx.Done():
		return nil, rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the caller left before its commit was answered; repeat the call").
			Because(context.Cause(ctx))
	}
}

func stopped() error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "this door is closing; nothing was done, try again elsewhere")
}

// Stop refuses new items, commits what waits, and returns when all is answered; when ctx ends first the commits' context is cancelled. Idempotent.
func (g *Group[I, O]) Stop(ctx context.Context) {
	g.once.Do(func() { close(g.stop) })
	select {
	case <-g.down:
	case <-ctx.Done():
		g.cancel()
		<-g.down
	}
	g.cancel()
}

// batch is what goes into one commit.
type batch[I, O any] struct {
	entries      []entry[I, O]
	items, bytes int
}

func (b *batch[I, O]) add(e entry[I, O]) {
	b.entries = append(b.entries, e)
	b.items += len(e.items)
	b.bytes += e.bytes
}

// gather makes batches of what waits and hands each to a free committer.
func (g *Group[I, O]) gather(batches chan<- batch[I, O]) {
	defer g.done.Done()
	defer close(batches)
	var b batch[I, O]
	for {
		if len(b.entries) == 0 {
			select {
			case e := <-g.queue:
				b.add(e)
			case <-g.stop:
				g.refuse()
				return
			}
			continue
		}
		if b.items >= g.cfg.Items || b.bytes >= g.cfg.Bytes {
			batches <- b
			b = batch[I, O]{}
			continue
		}
		b = g.more(batches, b)
	}
}

// more takes one further entry, or hands the batch over when a committer is free and nothing waits.
func (g *Group[I, O]) more(batches chan<- batch[I, O], b batch[I, O]) batch[I, O] {
	var e entry[I, O]
	select {
	case e = <-g.queue:
	default:
		select {
		case e = <-g.queue:
		case batches <- b:
			return batch[I, O]{}
		}
	}
	if b.items+len(e.items) > g.cfg.Items || b.bytes+e.bytes > g.cfg.Bytes {
		batches <- b
		b = batch[I, O]{}
	}
	b.add(e)
	return b
}

// refuse answers what came in between the stop and now.
func (g *Group[I, O]) refuse() {
	for {
		select {
		case e := <-g.queue:
			e.reply <- result[O]{err: stopped()}
		default:
			return
		}
	}
}

func (g *Group[I, O]) work(batches <-chan batch[I, O]) {
	defer g.done.Done()
	for b := range batches {
		items := b.entries[0].items
		if len(b.entries) > 1 {
			items = make([]I, 0, b.items)
			for _, e := range b.entries {
				items = append(items, e.items...)
			}
		}
		outs, err := g.guarded(items)
		if err == nil && len(outs) != len(items) {
			err = rendezvous.Errorf(rendezvous.CodeCorrupt, "a batch of %d was answered with %d outcomes", len(items), len(outs))
		}
		for _, e := range b.entries {
			if err != nil {
				e.reply <- result[O]{err: err}
				continue
			}
			n := len(e.items)
			e.reply <- result[O]{outs: outs[:n:n]}
			outs = outs[n:]
		}
	}
}

// guarded commits a batch. What a panic leaves done nobody knows: its callers repeat their calls, and the others go on.
func (g *Group[I, O]) guarded(items []I) (outs []O, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.cfg.Log.ErrorContext(g.hard, "commit panicked", "items", len(items), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			outs, err = nil, rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the commit broke off inside; it may or may not be done, repeat the call")
		}
	}()
	return g.commit(g.hard, items)
}

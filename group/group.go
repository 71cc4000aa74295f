// Package group is the group commit: many callers' items go into few transactions. A door hands in one item at a time and gets its own outcome; the
// commit function sees batches.
//
// A batch leaves at once when no commit is under way, so a lone caller waits for nobody; while commits are under way the next batch gathers, up to
// its bounds. That needs no timer: under load the commit itself is the window. Memory is bounded: at most Queue items wait, further callers block.
package group

import (
	"context"
	"sync"

	"github.com/rendezvous-events/rendezvous"
)

// Config bounds a group. The zero value takes the contract's numbers.
type Config struct {
	Items   int // items of a batch, rendezvous.MaxBatchItems
	Bytes   int // bytes of a batch, rendezvous.MaxBatchBytes; one item always fits
	Commits int // commits under way at once, 1
	Queue   int // items that may wait, 4 × Items
}

// Commit makes one batch durable and answers one outcome per item, in order. Its error is every item's.
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

type entry[I, O any] struct {
	item  I
	bytes int
	reply chan result[O]
}

type result[O any] struct {
	out O
	err error
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
	hard, cancel := context.WithCancel(context.Background())
	g := &Group[I, O]{
		cfg: cfg, size: size, commit: commit, queue: make(chan entry[I, O], cfg.Queue), stop: make(chan struct{}), down: make(chan struct{}), hard: hard, cancel: cancel,
	}
	batches := make(chan []entry[I, O])
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
	r := make(chan result[O], 1)
	refused := func(err error) func() (O, error) {
		return func() (none O, _ error) { return none, err }
	}
	select {
	case <-g.stop:
		return refused(stopped())
	default:
	}
	select {
	case g.queue <- entry[I, O]{item: item, bytes: g.size(item), reply: r}:
	case <-ctx.Done():
		return refused(rendezvous.Errorf(rendezvous.CodeUnavailable, "the door is full; nothing was done, try again").Because(context.Cause(ctx)))
	case <-g.stop:
		return refused(stopped())
	}
	return func() (O, error) { return g.outcome(ctx, r) }
}

func (g *Group[I, O]) outcome(ctx context.Context, r <-chan result[O]) (O, error) {
	var none O
	select {
	case o := <-r:
		return o.out, o.err
	case <-g.down: // it came in behind the last look at the queue, or its answer is there already
		select {
		case o := <-r:
			return o.out, o.err
		default:
			return none, stopped()
		}
	case <-ctx.Done():
		return none, rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the caller left before its commit was answered; repeat the call").
			Because(context.Cause(ctx))
	}
}

// DoAll hands several items in and waits for all: one outcome and one error per item, in order.
func (g *Group[I, O]) DoAll(ctx context.Context, items []I) ([]O, []error) {
	outs, errs := make([]O, len(items)), make([]error, len(items))
	waits := make([]func() (O, error), len(items))
	for i, item := range items {
		waits[i] = g.Hand(ctx, item)
	}
	for i, wait := range waits {
		outs[i], errs[i] = wait()
	}
	return outs, errs
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

// gather makes batches of what waits and hands each to a free committer.
func (g *Group[I, O]) gather(batches chan<- []entry[I, O]) {
	defer g.done.Done()
	defer close(batches)
	var batch []entry[I, O]
	bytes := 0
	for {
		if len(batch) == 0 {
			select {
			case e := <-g.queue:
				batch, bytes = append(batch, e), e.bytes
			case <-g.stop:
				g.refuse()
				return
			}
			continue
		}
		if len(batch) >= g.cfg.Items || bytes >= g.cfg.Bytes {
			batches <- batch
			batch, bytes = nil, 0
			continue
		}
		batch, bytes = g.more(batches, batch, bytes)
	}
}

// more takes one further item, or hands the batch over when a committer is free and nothing waits.
func (g *Group[I, O]) more(batches chan<- []entry[I, O], batch []entry[I, O], bytes int) ([]entry[I, O], int) {
	var e entry[I, O]
	select {
	case e = <-g.queue:
	default:
		select {
		case e = <-g.queue:
		case batches <- batch:
			return nil, 0
		}
	}
	if bytes+e.bytes > g.cfg.Bytes {
		batches <- batch
		return []entry[I, O]{e}, e.bytes
	}
	return append(batch, e), bytes + e.bytes
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

func (g *Group[I, O]) work(batches <-chan []entry[I, O]) {
	defer g.done.Done()
	for batch := range batches {
		items := make([]I, len(batch))
		for i, e := range batch {
			items[i] = e.item
		}
		outs, err := g.commit(g.hard, items)
		if err == nil && len(outs) != len(batch) {
			err = rendezvous.Errorf(rendezvous.CodeCorrupt, "a batch of %d was answered with %d outcomes", len(batch), len(outs))
		}
		for i, e := range batch {
			if err != nil {
				e.reply <- result[O]{err: err}
			} else {
				e.reply <- result[O]{out: outs[i]}
			}
		}
	}
}

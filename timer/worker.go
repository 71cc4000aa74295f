package timer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// Store is what the worker needs of its pool's handle.
type Store interface {
	FireDueTimers(ctx context.Context, shards []store.ShardEpoch, limit int) (store.FiredPage, error)
	NextDue(ctx context.Context, shards []int) (store.DueInstants, error)
	IsCurrentOwner(shard int) bool
	ReconcileTimers(ctx context.Context, shards []store.ShardEpoch, deep bool, after *store.WorkflowPosition, limit int) (store.Reconciled, error)
}

// Hints tells of early instants.
type Hints interface {
	// OnTimers calls look for every hint about a shard until stop is called.
	OnTimers(shard int, look func()) (stop func(), err error)
	// Connected reports whether hints arrive now.
	Connected() bool
}

// Sender sends notices after a commit; what it cannot send, the sweeper's passes find.
type Sender interface {
	Try(ctx context.Context, n store.Notices)
}

// Deps is what a worker is given.
type Deps struct {
	Matcher store.Matcher // offers the waits of contested deadlines
	Sender  Sender
	// Fenced hears of writes that were refused under so many shards: they are somebody else's by now. nil: nobody.
	Fenced func(shards int)
	Clock  clock.Clock
	Log    *slog.Logger
	Meter  metric.Meter
}

// Config times the worker. The zero value takes the contract's numbers (timers.md section 6).
type Config struct {
	Probe     time.Duration // the longest between two looks at a shard: 5 s
	Alone     time.Duration // the same while hints do not arrive: 1 s
	Call      time.Duration // timeout of a store call: 5 s
	Page      int           // timers of a page: 200
	Slow      time.Duration // a page that takes longer halves the next: 250 ms
	Reconcile time.Duration // between two walks over the live workflows: 60 s
	Deep      time.Duration // between two walks that believe no count: 24 h
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Probe, 5*time.Second)
	def(&c.Alone, time.Second)
	def(&c.Call, 5*time.Second)
	def(&c.Slow, 250*time.Millisecond)
	def(&c.Reconcile, time.Minute)
	def(&c.Deep, 24*time.Hour)
	if c.Page <= 0 {
		c.Page = 200
	}
	return c
}

// pagesInFlight is how many pages one pod has under way.
const pagesInFlight = 2

// Notices go out beside the pages: by so many senders, and so many runs' may wait for one. What is over is for the sweeper's passes to restore.
const (
	senders     = 4
	mostPending = 10_000
)

// minPage is the least a slow store makes of a page.
const minPage = 50

// Worker fires timers. Make it with [New].
type Worker struct {
	store   Store
	hints   Hints
	deps    Deps
	cfg     Config
	metrics *metrics

	mu      sync.Mutex
	shards  map[int]*aim
	page    int // timers of the next page
	flights []*flight
	turns   uint64            // pages begun
	pending store.Notices     // to be sent
	offers  []store.OfferItem // waits of contested deadlines, to be offered
	sending int               // senders at work

	wake    chan struct{} // capacity 1
	adopted chan struct{} // capacity 1: there is something new to reconcile
	probed  atomic.Int64  // unix ms of the clock: the last look that was answered
	cancel  context.CancelFunc
	stop    context.CancelFunc // of the calls themselves: when a drain runs out of patience
	done    sync.WaitGroup
}

// New makes a worker; Start begins to fire in the shards that it is given.
func New(s Store, hints Hints, d Deps, cfg Config) (*Worker, error) {
	cfg = cfg.withDefaults()
	w := &Worker{
		store: s, hints: hints, deps: d, cfg: cfg, shards: map[int]*aim{}, page: cfg.Page,
		wake: make(chan struct{}, 1), adopted: make(chan struct{}, 1),
	}
	var err error
	w.metrics, err = newMetrics(d.Meter, w)
	return w, err
}

// Start runs the loop, and the walk that reconciles, until Stop.
func (w *Worker) Start() {
	calls, stop := context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(calls)
	w.cancel, w.stop = cancel, stop
	w.probed.Store(w.deps.Clock.Now().UnixMilli())
	w.done.Go(func() { w.loop(ctx, calls) })
	w.done.Go(func() { w.reconciling(ctx) })
}

// Stop begins no new page and waits for those in flight until ctx ends; then their calls are cancelled. Idempotent.
func (w *Worker) Stop(ctx context.Context) error {
	if w.cancel == nil {
		return nil
	}
	w.cancel()
	down := make(chan struct{})
	go func() { w.done.Wait(); close(down) }()
	var err error
	select {
	case <-down:
	case <-ctx.Done():
		w.stop()
		<-down
		err = errors.Join(errors.New("pages of timers were broken off; what they had not recorded comes again"), context.Cause(ctx))
	}
	w.stop()
	w.Quit(w.known())
	return err
}

// Subscribe begins to hear the hints of a shard: before it is looked at for the first time, so that nothing is armed in between unseen.
func (w *Worker) Subscribe(_ context.Context, shard int) error {
	w.mu.Lock()
	a := w.shards[shard]
	if a == nil {
		a = &aim{}
		w.shards[shard] = a
	}
	listening := a.stop != nil
	w.mu.Unlock()
	if listening {
		return nil
	}
	stop, err := w.hints.OnTimers(shard, func() { w.hint(shard) })
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a = w.shards[shard]; a == nil || a.stop != nil { // dropped, or listened to, meanwhile
		stop()
		return nil
	}
	a.stop = stop
	return nil
}

// Adopt begins to fire in shards that are owned under those epochs. A shard that is known under another epoch is looked at anew.
func (w *Worker) Adopt(shards []store.ShardEpoch) {
	if len(w.epochs()) == 0 {
		w.probed.Store(w.deps.Clock.Now().UnixMilli()) // until now there was nothing to look at
	}
	w.mu.Lock()
	for _, s := range shards {
		a := w.shards[s.Shard]
		if a == nil {
			a = &aim{}
			w.shards[s.Shard] = a
		}
		if a.epoch != s.Epoch {
			a.epoch, a.look = s.Epoch, true
		}
	}
	w.mu.Unlock()
	signal(w.wake)
	signal(w.adopted)
}

// Quit forgets shards at once: no page of theirs begins any more. over is closed when none is in flight; where they are somebody else's by now, the fence stops
// it.
func (w *Worker) Quit(shards []int) (over <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := make(chan struct{})
	var flying []*flight
	for _, f := range w.flights {
		if slices.ContainsFunc(f.shards, func(s store.ShardEpoch) bool { return slices.Contains(shards, s.Shard) }) {
			flying = append(flying, f)
		}
	}
	for _, s := range shards {
		w.forget(s)
	}
	if len(flying) == 0 {
		close(ended)
		return ended
	}
	go func() { // ends with its flights, which Stop waits for
		defer close(ended)
		for _, f := range flying {
			<-f.done
		}
	}()
	return ended
}

// forget drops what is known of a shard. The caller holds mu.
func (w *Worker) forget(shard int) {
	if a := w.shards[shard]; a != nil {
		delete(w.shards, shard)
		if a.stop != nil {
			a.stop()
		}
	}
}

// Ready says that the store answered a look within three probes, where there is something to look at.
func (w *Worker) Ready() error {
	age := w.probeAge()
	if len(w.epochs()) > 0 && age > 3*w.cfg.Probe {
		return fmt.Errorf("no timer was looked for since %d ms: the store does not answer", age.Milliseconds())
	}
	return nil
}

func (w *Worker) probeAge() time.Duration {
	return w.deps.Clock.Now().Sub(time.UnixMilli(w.probed.Load()))
}

func (w *Worker) hint(shard int) {
	w.mu.Lock()
	if a := w.shards[shard]; a != nil {
		a.look = true
	}
	w.mu.Unlock()
	signal(w.wake)
}

// known are the shards that are listened to or fired in.
func (w *Worker) known() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.shards))
}

// epochs are the adopted shards.
func (w *Worker) epochs() []store.ShardEpoch {
	w.mu.Lock()
	defer w.mu.Unlock()
	var own []store.ShardEpoch
	for s, a := range w.shards {
		if a.epoch != 0 {
			own = append(own, store.ShardEpoch{Shard: s, Epoch: a.epoch})
		}
	}
	return own
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

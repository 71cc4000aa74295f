package sweep

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
)

// Worker runs the passes. Make it with [New].
type Worker struct {
	store   Store
	shards  Shards
	stream  Stream
	deps    Deps
	cfg     Config
	metrics *metrics
	passes  []*pass
	depths  *pass // no pass of the contract, but contained as they are

	mu      sync.Mutex
	owned   map[int]struct{}           // shards that are this worker's
	flights map[chan struct{}]struct{} // pages over them that are under way, each closed at its end
	anew    atomic.Bool                // shards came since the pass leases last began a page

	leased string // cursor of the pass leases: rows that stay, unreadable ones, hide none behind them
	unmet  string // cursor of the pass unmet's walk through all
	news   string // and of its looks at what is new
	old    string // cursor of the old letters
	closed string // cursor of the closed workflows
	given  givenUp
	seen   atomic.Pointer[store.Depths]
	seenAt atomic.Pointer[time.Time] // the store's now of that look
	alarms alarms
	last   atomic.Pointer[Report]

	pull    *messaging.Consumption
	kick    chan struct{} // capacity 1
	adopted chan struct{} // capacity 1
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// New makes a worker; Start begins to run its passes: the plane-wide ones, and over the shards that it is given to adopt the others. shards is the handle that
// those are owned by.
func New(s Store, shards Shards, stream Stream, d Deps, cfg Config) (*Worker, error) {
	w := &Worker{
		store: s, shards: shards, stream: stream, deps: d, cfg: cfg.withDefaults(), owned: map[int]struct{}{}, flights: map[chan struct{}]struct{}{},
		kick: make(chan struct{}, 1), adopted: make(chan struct{}, 1),
	}
	w.passes = []*pass{
		{name: Leases, every: w.cfg.Tick, owned: true, work: w.within(w.leases)},
		{name: Parked, every: w.cfg.Tick, owned: true, work: w.within(w.parked)},
		{name: Unmet, every: w.cfg.Tick, work: w.unmetPairs},
		{name: Woken, every: w.cfg.Woken, owned: true, work: w.within(w.woken)},
		{name: Late, every: w.cfg.Woken, owned: true, work: w.within(w.late)},
		{name: Unclaimed, every: w.cfg.Tick, work: w.unclaimed},
		{name: PushUpkeep, every: w.cfg.Upkeep, work: w.pushUpkeep},
		{name: Exhausted, every: w.cfg.Tick, work: w.exhausted},
		{name: Retention, every: w.cfg.Retention, work: w.retention},
	}
	w.depths = &pass{name: "depths", every: w.cfg.Woken, work: w.lookAtDepths}
	w.last.Store(&Report{})
	var err error
	w.metrics, err = newMetrics(d.Meter, w)
	return w, err
}

// Start runs the passes until Stop: once at once, then each at its interval, jittered. It refuses to run a part of them (SW-33).
func (w *Worker) Start() error {
	if err := w.scheduled(); err != nil {
		return err
	}
	// What notices were lost while the broker was away, the passes look for at once.
	pull, err := w.stream.ConsumeAdvisory(messaging.ConsumeOptions{Gap: w.Kick}, w.given.take)
	if err != nil {
		return err
	}
	w.pull = pull
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	start := w.deps.Clock.Now()
	for _, s := range w.all() { // before the loop runs, which readiness does not wait for
		s.last.Store(start.UnixMilli())
		s.due = start
	}
	select {
	case <-w.adopted: // before the start: all passes are due now
	default:
	}
	w.done.Go(func() { w.loop(ctx) })
	return nil
}

// scheduled says which pass would never run.
func (w *Worker) scheduled() error {
	for _, name := range Passes() {
		if !slices.ContainsFunc(w.passes, func(s *pass) bool { return s.name == name && s.every > 0 && s.work != nil }) {
			return fmt.Errorf("the pass %s is not scheduled: this build is broken, run another", name)
		}
	}
	return nil
}

// Stop ends the passes: a page under way is cancelled, and waited for until ctx ends; then the error names the passes that are left. Idempotent.
func (w *Worker) Stop(ctx context.Context) error {
	if w.cancel != nil {
		w.cancel()
	}
	var err error
	if w.pull != nil {
		err = w.pull.Stop(ctx)
	}
	down := make(chan struct{})
	go func() { w.done.Wait(); close(down) }()
	select {
	case <-down:
		return err
	case <-ctx.Done():
	}
	var left []string
	for _, s := range w.all() {
		if s.busy.Load() {
			left = append(left, s.name)
		}
	}
	if len(left) == 0 {
		return err // nothing holds the loop up
	}
	return errors.Join(err, fmt.Errorf("passes %v do not come back and are left to themselves: %w", left, context.Cause(ctx)))
}

// Kick makes every pass run now: notices may have been lost.
func (w *Worker) Kick() { signal(w.kick) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Ready says that every pass ran within three of its periods; else which did not (SW-33). Those over owned shards need not where none is owned: then this is a
// stand-by.
func (w *Worker) Ready() error {
	now, standBy := w.deps.Clock.Now(), w.standBy()
	for _, s := range w.passes {
		if s.owned && standBy {
			continue
		}
		if d, late := s.late(now, w.cfg.Page); late {
			return fmt.Errorf("the pass %s has not run for %d ms", s.name, d.Milliseconds())
		}
	}
	return nil
}

// Last is the report of the last tick; its At is zero before the first.
func (w *Worker) Last() Report { return *w.last.Load() }

func (w *Worker) all() []*pass { return append(slices.Clone(w.passes), w.depths) }

func (w *Worker) loop(ctx context.Context) {
	for ctx.Err() == nil {
		w.tick(ctx)
		t := w.deps.Clock.NewTimer(w.untilDue())
		select {
		case <-t.C():
		case <-w.kick:
			w.makeDue(func(*pass) bool { return true })
		case <-w.adopted:
			w.makeDue(func(s *pass) bool { return s.owned })
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// makeDue makes passes due now.
func (w *Worker) makeDue(which func(*pass) bool) {
	now := w.deps.Clock.Now()
	for _, s := range w.all() {
		if which(s) {
			s.due = now
		}
	}
}

func (w *Worker) untilDue() time.Duration {
	now := w.deps.Clock.Now()
	wait := w.cfg.Tick
	for _, s := range w.all() {
		wait = min(wait, s.due.Sub(now))
	}
	return max(wait, 0)
}

// jitter spreads d over 0.5..1.5 of itself.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

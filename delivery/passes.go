package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// PassStore is what the passes need of the store.
type PassStore interface {
	Store
	store.Repairer
}

// PassConfig times the passes. The zero value takes the contract's numbers.
type PassConfig struct {
	Tick  time.Duration // of leases, parked and unmet: 5 s
	Woken time.Duration // of woken: 10 s
	Pages int           // pages a saturated pass may work in one tick: 20
	Page  time.Duration // budget of one page: 2 s
	Grace time.Duration // how long an unmet pair may be on its way: 2 s
}

func (c PassConfig) withDefaults() PassConfig {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Tick, 5*time.Second)
	def(&c.Woken, 10*time.Second)
	def(&c.Page, 2*time.Second)
	def(&c.Grace, 2*time.Second)
	if c.Pages <= 0 {
		c.Pages = 20
	}
	return c
}

// page is what one page of a pass did.
type page struct {
	handed    int
	saturated bool
}

// wokenPass tells again of news for runs that nobody drives.
const wokenPass = "woken"

// pass is one backstop: work does a page.
type pass struct {
	name  string
	every time.Duration
	work  func(ctx context.Context) (page, error)
	due   time.Time
	last  atomic.Int64 // unix milliseconds of its last page that did not fail
	busy  atomic.Bool  // a page of it is under way, or hangs
}

func (s *pass) label() metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("pass", s.name))
}

// Passes runs the four passes that repair the spine: leases, parked, unmet, woken, in this order. Make it with [NewPasses].
type Passes struct {
	store  PassStore
	deps   Deps
	cfg    PassConfig
	passes []*pass
	leased string // cursor of the pass leases: rows that stay, unreadable ones, hide none behind them
	unmet  string // cursor of the pass unmet
	kick   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup

	handed    metric.Int64Counter
	pages     metric.Int64Counter
	saturated metric.Int64Counter
	failed    metric.Int64Counter
}

// NewPasses makes the passes; Start begins to run them.
func NewPasses(s PassStore, d Deps, cfg PassConfig) (*Passes, error) {
	p := &Passes{store: s, deps: d, cfg: cfg.withDefaults(), kick: make(chan struct{}, 1)}
	p.passes = []*pass{
		{name: "leases", every: p.cfg.Tick, work: p.leases},
		{name: "parked", every: p.cfg.Tick, work: p.parked},
		{name: "unmet", every: p.cfg.Tick, work: p.unmetPairs},
		{name: wokenPass, every: p.cfg.Woken, work: p.woken},
	}
	var err error
	counter := func(name, unit, text string) metric.Int64Counter {
		c, e := d.Meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		if err == nil {
			err = e
		}
		return c
	}
	p.handed = counter("rendezvous.sweep.rows", "{row}", "Rows a pass handled.")
	p.pages = counter("rendezvous.sweep.pages", "{page}", "Pages a pass worked; a pass whose count stands still does not run.")
	p.saturated = counter("rendezvous.sweep.saturated", "{page}", "Pages after which more was due.")
	p.failed = counter("rendezvous.sweep.failed", "{page}", "Pages that failed as a whole.")
	if err != nil {
		return nil, err
	}
	for _, s := range p.passes { // counters begin at 0, or the first increase is invisible to whoever looks at rates
		for _, c := range [...]metric.Int64Counter{p.handed, p.pages, p.saturated, p.failed} {
			c.Add(context.Background(), 0, s.label())
		}
	}
	return p, nil
}

// Start runs the passes until Stop: once at once, then each at its interval, jittered.
func (p *Passes) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	start := p.deps.Clock.Now()
	for _, s := range p.passes { // before the loop runs, which readiness does not wait for
		s.last.Store(start.UnixMilli())
		s.due = start
	}
	p.done.Go(func() { p.loop(ctx) })
}

// Stop ends the passes: a page under way is cancelled, and waited for until ctx ends; then the error names the passes that are left. Idempotent.
func (p *Passes) Stop(ctx context.Context) error {
	if p.cancel != nil {
		p.cancel()
	}
	down := make(chan struct{})
	go func() { p.done.Wait(); close(down) }()
	select {
	case <-down:
		return nil
	case <-ctx.Done():
	}
	var left []string
	for _, s := range p.passes {
		if s.busy.Load() {
			left = append(left, s.name)
		}
	}
	if len(left) == 0 {
		return nil // nothing holds the loop up
	}
	return fmt.Errorf("passes %v do not come back and are left to themselves: %w", left, context.Cause(ctx))
}

// Kick makes every pass run now: notices may have been lost.
func (p *Passes) Kick() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Ready says that every pass ran within three of its periods; else which did not.
func (p *Passes) Ready() error {
	now := p.deps.Clock.Now().UnixMilli()
	for _, s := range p.passes {
		if late := now - s.last.Load(); late > 3*s.every.Milliseconds()+p.cfg.Page.Milliseconds() {
			return fmt.Errorf("the pass %s has not run for %d ms", s.name, late)
		}
	}
	return nil
}

func (p *Passes) loop(ctx context.Context) {
	for ctx.Err() == nil {
		p.tick(ctx)
		t := p.deps.Clock.NewTimer(p.untilDue())
		select {
		case <-t.C():
		case <-p.kick:
			for _, s := range p.passes {
				s.due = p.deps.Clock.Now()
			}
		case <-ctx.Done():
		}
		t.Stop()
	}
}

func (p *Passes) untilDue() time.Duration {
	now := p.deps.Clock.Now()
	wait := p.cfg.Tick
	for _, s := range p.passes {
		wait = min(wait, s.due.Sub(now))
	}
	return max(wait, 0)
}

// tick works a page of every due pass, and further pages of the saturated ones in turns (S4, S7).
func (p *Passes) tick(ctx context.Context) {
	now := p.deps.Clock.Now()
	var turn []*pass
	for _, s := range p.passes {
		if !s.due.After(now) {
			s.due = now.Add(jitter(s.every))
			turn = append(turn, s)
		}
	}
	for range p.cfg.Pages {
		var again []*pass
		for _, s := range turn {
			if ctx.Err() != nil {
				return
			}
			if p.run(ctx, s) {
				again = append(again, s)
			}
		}
		if turn = again; len(turn) == 0 {
			return
		}
	}
}

// run works one page and reports whether more is due. Nothing that happens in it reaches the other passes (S4).
func (p *Passes) run(ctx context.Context, s *pass) (more bool) {
	if s.busy.Load() {
		return false // its last page hangs: Ready says so
	}
	name := s.label()
	got, err := p.contained(ctx, s)
	p.pages.Add(ctx, 1, name)
	if err != nil {
		if ctx.Err() == nil {
			p.failed.Add(ctx, 1, name)
			p.deps.Log.WarnContext(ctx, "pass failed; it runs again with the next tick", "pass", s.name, "error", err)
		}
		return false
	}
	s.last.Store(p.deps.Clock.Now().UnixMilli())
	p.handed.Add(ctx, int64(got.handed), name)
	if got.saturated {
		p.saturated.Add(ctx, 1, name)
	}
	if got.handed > 0 {
		level, says := slog.LevelInfo, "pass repaired"
		if s.name == wokenPass { // nothing was amiss: nobody drives those runs yet
			level, says = slog.LevelDebug, "notices sent again"
		}
		p.deps.Log.Log(ctx, level, says, "pass", s.name, "rows", got.handed, "saturated", got.saturated)
	}
	return got.saturated
}

// contained works a page in a goroutine of its own: one that panics fails alone, and one that does not come back when its budget is over is left to itself.
func (p *Passes) contained(ctx context.Context, s *pass) (page, error) {
	type result struct {
		page
		err error
	}
	done := make(chan result, 1)
	bounded, cancel := clock.WithTimeout(ctx, p.deps.Clock, p.cfg.Page)
	defer cancel()
	s.busy.Store(true)
	p.done.Go(func() {
		got, err := p.guarded(bounded, s)
		s.busy.Store(false)
		done <- result{got, err}
	})
	select {
	case r := <-done:
		return r.page, r.err
	case <-bounded.Done():
	}
	grace := p.deps.Clock.NewTimer(p.cfg.Page)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.page, r.err
	case <-grace.C():
		return page{}, fmt.Errorf("it does not come back after its budget of %s; the others go on without it", p.cfg.Page)
	}
}

func (p *Passes) guarded(ctx context.Context, s *pass) (got page, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			p.deps.Log.ErrorContext(ctx, "pass panicked", "pass", s.name, slog.String("stack", string(debug.Stack())))
		}
	}()
	return s.work(ctx)
}

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

	"github.com/rendezvous-events/rendezvous"
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

// Page sizes of the passes (sweep.md section 2).
const (
	leasesPage = 200
	parkedPage = 500
	unmetPage  = 500
	wokenPage  = 500
)

// holds of taken rows: how long a lost worker keeps them from the others.
const (
	parkedHold = 30 * time.Second
	unmetHold  = 30 * time.Second
)

// page is what one page of a pass did.
type page struct {
	handed    int
	saturated bool
}

// pass is one backstop: work does a page.
type pass struct {
	name  string
	every time.Duration
	work  func(ctx context.Context) (page, error)
	due   time.Time
	last  atomic.Int64 // unix milliseconds of its last page that did not fail
}

// Passes runs the four passes that repair the spine: leases, parked, unmet, woken, in this order. Make it with [NewPasses].
type Passes struct {
	store  PassStore
	deps   Deps
	cfg    PassConfig
	passes []*pass
	unmet  string // cursor of the unmet pass
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
		{name: "woken", every: p.cfg.Woken, work: p.woken},
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
	return p, err
}

// Start runs the passes until Stop: once at once, then each at its interval, jittered.
func (p *Passes) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.done.Go(func() { p.loop(ctx) })
}

// Stop ends them after the page under way. Idempotent.
func (p *Passes) Stop() {
	if p.cancel != nil {
		p.cancel()
	}
	p.done.Wait()
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
	start := p.deps.Clock.Now()
	for _, s := range p.passes {
		s.last.Store(start.UnixMilli())
		s.due = start
	}
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
	name := metric.WithAttributes(attribute.String("pass", s.name))
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
		p.deps.Log.InfoContext(ctx, "pass repaired", "pass", s.name, "rows", got.handed, "saturated", got.saturated)
	}
	return got.saturated
}

func (p *Passes) contained(ctx context.Context, s *pass) (got page, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			p.deps.Log.ErrorContext(ctx, "pass panicked", "pass", s.name, slog.String("stack", string(debug.Stack())))
		}
	}()
	ctx, cancel := clock.WithTimeout(ctx, p.deps.Clock, p.cfg.Page)
	defer cancel()
	return s.work(ctx)
}

// leases ends leases that ran out (RN-37).
func (p *Passes) leases(ctx context.Context) (page, error) {
	rows, next, err := p.store.AbandonedRuns(ctx, leasesPage, "")
	if err != nil {
		return page{}, err
	}
	items := make([]store.ReclaimItem, 0, len(rows))
	for _, r := range rows {
		if r.Corrupt != nil {
			p.deps.Log.ErrorContext(ctx, "run does not decode", "tenant", r.Tenant, "workflow_id", r.WorkflowID, "error", r.Corrupt)
			continue
		}
		items = append(items, store.ReclaimItem{Tenant: r.Tenant, WorkflowID: r.WorkflowID, Epoch: r.Epoch, ExpiresAt: r.ExpiresAt})
	}
	if len(items) == 0 {
		return page{}, nil
	}
	got, err := p.store.ReclaimRun(ctx, items)
	if err != nil {
		return page{}, err
	}
	var n store.Notices
	done := 0
	for i, r := range got {
		n.Append(r.Notices)
		if r.Outcome == store.ReclaimReclaimed {
			done++
		}
		if r.Reclaims >= rendezvous.StuckReclaims {
			p.deps.Log.ErrorContext(ctx, "run is stuck: it loses every driver", "tenant", items[i].Tenant, "workflow_id", items[i].WorkflowID, "reclaims", r.Reclaims)
		}
		if r.Err != nil {
			p.deps.Log.WarnContext(ctx, "reclaim failed", "tenant", items[i].Tenant, "workflow_id", items[i].WorkflowID, "error", r.Err)
		}
	}
	p.deps.Sender.Try(ctx, n)
	return page{handed: done, saturated: next != "" && done > 0}, nil
}

// parked tries parked waits whose runs are free (events.md section 7).
func (p *Passes) parked(ctx context.Context) (page, error) {
	taken, err := p.store.TakeParked(ctx, parkedPage, parkedHold)
	if err != nil || len(taken.Rows) == 0 {
		return page{}, err
	}
	refs := make([]store.WaitRef, len(taken.Rows))
	for i, w := range taken.Rows {
		refs[i] = store.WaitRef{Tenant: w.Tenant, WaitID: w.WaitID}
	}
	got, err := p.store.DeliverParked(ctx, refs, time.Time{})
	if err != nil {
		return page{}, err
	}
	var back []store.ParkItem
	for i, o := range got.Items {
		item := store.ParkItem{Tenant: taken.Rows[i].Tenant, WaitID: taken.Rows[i].WaitID, Take: taken.Rows[i].Take}
		switch {
		case o.Outcome == store.OfferParked && !o.Quarantined:
			item.Cause, item.RetryIn = store.ParkLeased, min(o.Remaining+jitter(500*time.Millisecond), 30*time.Second)
			back = append(back, item)
		case o.Outcome == store.OfferFailed:
			item.Cause, item.RetryIn = store.ParkFailed, failedPause(taken.Rows[i].Attempts)
			item.Error = string(rendezvous.AsError(o.Err).Code)
			back = append(back, item)
		}
	}
	if len(back) > 0 {
		if _, err := p.store.ParkWait(ctx, back, time.Time{}); err != nil {
			return page{}, err
		}
	}
	p.deps.Sender.Try(ctx, got.Notices)
	return page{handed: len(refs), saturated: taken.Saturated}, nil
}

// failedPause is full jitter over 1 s doubling to 5 min.
func failedPause(attempts int) time.Duration {
	most := min(time.Second<<min(attempts, 10), 5*time.Minute)
	return jitter(most) * 2 / 3
}

// unmetPairs offers live events left apart from a wait they meet: a MATCH notice was lost (EV-41 and sweep.md section 2).
func (p *Passes) unmetPairs(ctx context.Context) (page, error) {
	taken, next, err := p.store.TakeUnmet(ctx, p.cfg.Grace, unmetPage, unmetHold, p.unmet)
	if err != nil {
		return page{}, err
	}
	p.unmet = next
	if len(taken.Rows) == 0 {
		return page{saturated: taken.Saturated}, nil
	}
	items := make([]store.OfferItem, len(taken.Rows))
	for i, r := range taken.Rows {
		id := r.Event.EventID
		items[i] = store.OfferItem{Tenant: r.Tenant, Event: &id}
	}
	got, err := p.store.OfferBatch(ctx, items, time.Time{})
	if err != nil {
		return page{}, err
	}
	p.deps.Sender.Try(ctx, got.Notices)
	return page{handed: len(items), saturated: taken.Saturated}, nil
}

// woken repeats RESUME notices of runs nobody has taken up (runs.md section 6).
func (p *Passes) woken(ctx context.Context) (page, error) {
	taken, err := p.store.TakeWoken(ctx, wokenPage)
	if err != nil || len(taken.Rows) == 0 {
		return page{}, err
	}
	p.deps.Sender.Try(ctx, store.Notices{Resume: taken.Rows})
	return page{handed: len(taken.Rows), saturated: taken.Saturated}, nil
}

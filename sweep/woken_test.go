package sweep_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// pausing is a clock on which a pause, a timer shorter than a page's budget, is over at once.
type pausing struct {
	*clock.Manual
	budget time.Duration
	made   []time.Duration
}

func (p *pausing) NewTimer(d time.Duration) clock.Timer {
	if d >= p.budget {
		return p.Manual.NewTimer(d)
	}
	p.made = append(p.made, d)
	p.Advance(d)
	return p.Manual.NewTimer(0)
}

// pausing makes a worker on such a clock, and answers the clock.
func (p *plane) pausing(s Store, sender sweep.Sender, cfg sweep.Config) (*sweeper, *pausing) {
	p.t.Helper()
	c := &pausing{Manual: p.clock, budget: cfg.Page}
	w, err := sweep.New(s, s, stream{}, sweep.Deps{
		Sender: sender, Clock: c, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Meter: metricnoop.Meter{},
	}, cfg)
	must(p.t, err)
	w.Adopt(p.shards())
	p.t.Cleanup(func() { must(p.t, w.Stop(context.Background())) })
	return &sweeper{w, p}, c
}

// slow is a broker that takes its time for each lot, and sends nothing when the page's budget is over.
type slow struct {
	p    *plane
	took time.Duration
	over time.Time
	sent int
}

func (s *slow) Try(_ context.Context, n store.Notices) {
	if s.p.clock.Advance(s.took); s.p.clock.Now().Before(s.over) {
		s.sent += len(n.Resume)
	}
}

// S7: the pauses between lots of repeats take no repeat's place in the page's budget: all that TakeWoken counted are sent, on a slow broker too.
func TestRepeatsThatAreCountedAreSent(t *testing.T) {
	p := newPlane(t)
	for _, r := range runs("run", 500) {
		p.start(r)
	}
	p.clock.Advance(time.Minute)
	const step, budget = time.Second, 8 * time.Second
	s := &slow{p: p, took: 600 * time.Millisecond, over: p.clock.Now().Add(step + budget)}
	w, _ := p.pausing(p.all(), s, sweep.Config{Pages: 1, Page: budget})
	got := pass(t, w.tick(step), sweep.Woken)
	if got.Handed != 500 || got.Done != 500 || s.sent != 500 {
		t.Errorf("%d sent, reported %+v", s.sent, got)
	}
}

// slowly is a store that takes its time for a page of woken runs.
type slowly struct {
	Store
	p    *plane
	took time.Duration
}

func (s slowly) TakeWoken(ctx context.Context, limit int) (store.Taken[store.ResumeRef], error) {
	s.p.clock.Advance(s.took)
	return s.Store.TakeWoken(ctx, limit)
}

// S7: a tick with more to do leaves as long a pause after a round of pages as the round took, and none behind its last one.
func TestATickPausesBetweenItsPages(t *testing.T) {
	p := newPlane(t)
	for _, r := range runs("run", 1600) {
		p.start(r)
	}
	p.clock.Advance(time.Minute)
	w, clock := p.pausing(slowly{p.all(), p, 50 * time.Millisecond}, p.sender, sweep.Config{Pages: 3, Page: 2 * time.Second})
	got := pass(t, w.tick(time.Second), sweep.Woken)
	if want := []time.Duration{50 * time.Millisecond, 50 * time.Millisecond}; got.Pages != 3 || !got.Saturated || !slices.Equal(clock.made, want) {
		t.Errorf("%d pages, pauses %v", got.Pages, clock.made)
	}
}

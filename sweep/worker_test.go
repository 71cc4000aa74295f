package sweep_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// broken is a store whose DueLeases does what the test says.
type broken struct {
	Store
	abandoned func(ctx context.Context, cursor string) ([]store.AbandonedRun, string, error)
}

func (b broken) DueLeases(ctx context.Context, _ int, cursor string) ([]store.AbandonedRun, string, error) {
	return b.abandoned(ctx, cursor)
}

// SW-26, S4: a pass that panics, fails or hangs, also one that ignores its context, stops no other; the report is made all the same and says which, and so does
// Ready.
func TestAPassThatBreaksStopsNoOther(t *testing.T) {
	end := make(chan struct{})
	for name, abandoned := range map[string]func(ctx context.Context, cursor string) ([]store.AbandonedRun, string, error){
		"panics": func(context.Context, string) ([]store.AbandonedRun, string, error) { panic("a bug") },
		"fails": func(context.Context, string) ([]store.AbandonedRun, string, error) {
			return nil, "", errors.New("broken")
		},
		"hangs": func(ctx context.Context, _ string) ([]store.AbandonedRun, string, error) {
			<-ctx.Done()
			return nil, "", context.Cause(ctx)
		},
		"hangs for ever": func(context.Context, string) ([]store.AbandonedRun, string, error) { <-end; return nil, "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.stall = 250 * time.Millisecond // a page that gets through is far quicker, also on a busy machine
			p.start("run-1")
			p.await("run-1", 0)
			p.buffer("run-1")
			w := p.sweep(broken{p.all(), abandoned}, sweep.Config{})
			r := w.until(time.Second, "the other passes' work", func(sweep.Report) bool { return p.state("run-1") == rendezvous.EventConsumed })
			if pass(t, r, sweep.Leases).Err == nil || pass(t, r, sweep.Unmet).Err != nil || !attends(r, "failed", sweep.Leases) || attends(r, "failed", sweep.Unmet) {
				t.Errorf("reported %+v", r)
			}
			w.until(time.Second, "that Ready names the pass", func(sweep.Report) bool {
				err := w.Ready()
				return err != nil && strings.Contains(err.Error(), "leases")
			})
			if name == "hangs for ever" {
				close(end) // so that Stop finds it down
			}
		})
	}
}

// blind is a store that cannot count, and hangs over it where it is told to.
type blind struct {
	Store
	hangs bool
}

func (b blind) Depths(ctx context.Context) (store.Depths, error) {
	if b.hangs {
		<-ctx.Done()
	}
	return store.Depths{}, errors.New("cannot count")
}

// SW-26: gauges that fail or hang are flagged; they discard no report and stop no pass.
func TestGaugesThatFailDegradeTheReport(t *testing.T) {
	for name, hangs := range map[string]bool{"fail": false, "hang": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.stall = 250 * time.Millisecond // a page that gets through is far quicker, also on a busy machine
			p.start("run-1")
			p.await("run-1", 0)
			p.buffer("run-1")
			w := p.sweep(blind{p.all(), hangs}, sweep.Config{})
			r := w.until(time.Second, "the passes' work", func(sweep.Report) bool { return p.state("run-1") == rendezvous.EventConsumed })
			if r.DepthsErr == nil || !attends(r, "gauges_missing", "") || attends(r, "failed", sweep.Unmet) {
				t.Errorf("reported %+v", r)
			}
			must(t, w.Ready())
		})
	}
}

// A page that ignores its context does not hold up the end of the process; Stop names its pass.
func TestStopDoesNotWaitForAPassThatHangs(t *testing.T) {
	p := newPlane(t)
	hangs, end := make(chan struct{}), make(chan struct{})
	w := p.sweep(broken{p.all(), func(context.Context, string) ([]store.AbandonedRun, string, error) {
		close(hangs)
		<-end
		return nil, "", nil
	}}, sweep.Config{})
	must(t, w.Start())
	<-hangs
	late := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := w.Stop(ctx); !errors.Is(err, late) || !strings.Contains(err.Error(), "[leases]") {
		t.Errorf("shut down with %v", err)
	}
	close(end)
	must(t, w.Stop(t.Context()))
}

// SW-33: passes that run are ready; one that has not run for three of its periods is named.
func TestOnlyPassesThatRunAreReady(t *testing.T) {
	p := newPlane(t)
	reports := make(chan sweep.Report, 100)
	w := p.sweep(nil, sweep.Config{Reported: func(r sweep.Report) { reports <- r }})
	must(t, w.Start())
	for range 20 {
		<-reports
		must(t, w.Ready())
		p.clock.Waiting(1)               // for the next tick: a clock that goes on before that would make it later
		p.clock.Advance(8 * time.Second) // every jittered 5 s are over
	}
	<-reports
	must(t, w.Stop(t.Context()))
	p.clock.Advance(10 * time.Second)
	must(t, w.Ready())
	p.clock.Advance(8 * time.Second)
	if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "leases") {
		t.Errorf("18 s after its last page: %v", err)
	}
}

// What may have been lost is looked for at once, not at the next interval.
func TestAKickedWorkerTicksAtOnce(t *testing.T) {
	p := newPlane(t)
	reports := make(chan sweep.Report, 100)
	w := p.sweep(nil, sweep.Config{Reported: func(r sweep.Report) { reports <- r }})
	must(t, w.Start())
	for range 5 {
		if r := <-reports; len(r.Passes) != len(sweep.Passes()) {
			t.Fatalf("%d passes in the tick", len(r.Passes))
		}
		w.Kick()
	}
}

// SW-33: a build that lost a pass does not start; it would look well and repair less.
func TestAWorkerWithoutOneOfItsPassesDoesNotStart(t *testing.T) {
	for _, name := range sweep.Passes() {
		p := newPlane(t)
		w, err := sweep.New(p.store, p.all(), stream{}, sweep.Deps{Sender: p.sender, Clock: p.clock, Log: slog.New(slog.DiscardHandler), Meter: metricnoop.Meter{}}, sweep.Config{})
		must(t, err)
		w.Unschedule(name)
		if err := w.Start(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s it starts with %v", name, err)
		}
		must(t, w.Stop(t.Context()))
	}
}

// S7, S1: a pass that always has more goes on at once, up to its pages, and the others have their turns between. After the second such tick it is to be looked at.
func TestASaturatedPassGoesOnAndLeavesTheOthersTheirTurns(t *testing.T) {
	p := newPlane(t)
	turns := make(chan string, 100)
	w := p.sweep(broken{turning{p.all(), turns}, func(context.Context, string) ([]store.AbandonedRun, string, error) {
		turns <- "leases"
		return nil, "more", nil
	}}, sweep.Config{Pages: 7})
	first := w.tick(time.Second)
	if got := pass(t, first, sweep.Leases); got.Pages != 7 || !got.Saturated || attends(first, "saturated", sweep.Leases) {
		t.Errorf("reported %+v, %+v", got, first.Attention)
	}
	if second := w.tick(time.Second); !attends(second, "saturated", sweep.Leases) || attends(second, "saturated", sweep.Woken) {
		t.Errorf("attention %+v", second.Attention)
	}
	close(turns)
	want := []string{"leases", "woken", "leases", "leases", "leases", "leases", "leases", "leases"}
	n := 0
	for got := range turns {
		if got != want[n%len(want)] {
			t.Fatalf("%s had turn %d", got, n)
		}
		n++
	}
	if n != 2*len(want) {
		t.Errorf("%d turns in two ticks", n)
	}
}

// turning notes the turns of the pass woken.
type turning struct {
	Store
	turns chan<- string
}

func (s turning) TakeWoken(ctx context.Context, limit int) (store.Taken[store.ResumeRef], error) {
	s.turns <- "woken"
	return s.Store.TakeWoken(ctx, limit)
}

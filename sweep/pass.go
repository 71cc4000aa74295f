package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

// The passes of this build.
const (
	Leases     = "leases"
	Parked     = "parked"
	Unmet      = "unmet"
	Woken      = "woken"
	Late       = "late"
	Unclaimed  = "unclaimed"
	PushUpkeep = "push_upkeep"
	Exhausted  = "exhausted"
	Retention  = "retention"
)

// Passes are the names of all, in the order of a tick, which matters twice: leases end before parked waits are tried, and unmet pairs are offered before anything
// is retired as unclaimed.
func Passes() []string {
	return []string{Leases, Parked, Unmet, Woken, Late, Unclaimed, PushUpkeep, Exhausted, Retention}
}

// page is what one page of a pass did.
type page struct {
	Counts
	saturated bool
	oldest    time.Duration
	types     map[string]int
	none      bool // there was none: no shard is this worker's
}

// pass is one backstop: work does a page.
type pass struct {
	name  string
	every time.Duration
	owned bool // looks at the shards that are owned; the others are plane-wide
	work  func(ctx context.Context) (page, error)

	due    time.Time
	last   atomic.Int64 // unix milliseconds of its last page that did not fail
	busy   atomic.Bool  // a page of it is under way, or hangs
	ticks  int          // in a row at whose end more was due
	failed bool         // in its last turn
}

// late is for how long a pass has not run, and whether that is too long: three of its periods, and a page's budget (SW-33).
func (s *pass) late(now time.Time, budget time.Duration) (time.Duration, bool) {
	d := time.Duration(now.UnixMilli()-s.last.Load()) * time.Millisecond
	return d, d > 3*s.every+budget
}

// contained works a page in a goroutine of its own: one that panics fails alone, and one that does not come back when its budget is over is left to itself (S4).
func (w *Worker) contained(ctx context.Context, s *pass) (page, error) {
	if s.busy.Load() {
		return page{}, fmt.Errorf("its last page has not come back")
	}
	type result struct {
		page
		err error
	}
	done := make(chan result, 1)
	bounded, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Page)
	defer cancel()
	s.busy.Store(true)
	w.done.Go(func() {
		got, err := w.guarded(bounded, s)
		s.busy.Store(false)
		done <- result{got, err}
	})
	select {
	case r := <-done:
		return r.page, r.err
	case <-bounded.Done():
	}
	grace := w.deps.Clock.NewTimer(w.cfg.Page)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.page, r.err
	case <-grace.C():
		return page{}, fmt.Errorf("it does not come back after its budget of %s; the others go on without it", w.cfg.Page)
	}
}

func (w *Worker) guarded(ctx context.Context, s *pass) (got page, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			w.deps.Log.ErrorContext(ctx, "pass panicked", "pass", s.name, slog.String("stack", string(debug.Stack())))
		}
	}()
	return s.work(ctx)
}

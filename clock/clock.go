// Package clock is the one place that reads the wall clock.
//
// Everything under store/ and every worker takes a [Clock] (invariant I16): [System] in production, [Manual] in tests.
// Timers, tickers, sleeps and context timeouts go through it too, so that a test moves time instead of waiting for it.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and measures waits. Implementations are safe for concurrent use.
type Clock interface {
	// Now is the current instant. It carries a monotonic reading where the clock has one, so that differences hold across a step of the wall clock; UTC, Local
	// and In would drop it.
	Now() time.Time
	// NewTimer sends on C once, d from now; at once when d <= 0.
	NewTimer(d time.Duration) Timer
	// NewTicker sends on C every d; it drops ticks for slow receivers. d must be positive.
	NewTicker(d time.Duration) Ticker
}

// Timer is a single wake-up.
type Timer interface {
	// C delivers the time once, when the timer fires.
	C() <-chan time.Time
	// Stop prevents the timer from firing; false when it fired or was stopped before.
	Stop() bool
}

// Ticker is a repeated wake-up. Stop it when it is no longer needed.
type Ticker interface {
	// C delivers the time with every tick; ticks that nobody takes are dropped.
	C() <-chan time.Time
	Stop()
}

// System is the machine's clock.
var System Clock = system{}

type system struct{}

func (system) Now() time.Time                   { return now() }
func (system) NewTimer(d time.Duration) Timer   { return systemTimer{time.NewTimer(d)} }
func (system) NewTicker(d time.Duration) Ticker { return systemTicker{time.NewTicker(d)} }

type systemTimer struct{ t *time.Timer }

func (s systemTimer) C() <-chan time.Time { return s.t.C }
func (s systemTimer) Stop() bool          { return s.t.Stop() }

type systemTicker struct{ t *time.Ticker }

func (s systemTicker) C() <-chan time.Time { return s.t.C }
func (s systemTicker) Stop()               { s.t.Stop() }

// Sleep waits d on c, or until ctx is done; then it answers the cause.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithTimeout is context.WithTimeout on c. The cause of the timeout is [context.DeadlineExceeded].
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	if c == System {
		return context.WithTimeout(ctx, d)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t := c.NewTimer(d)
	go func() {
		defer t.Stop()
		select {
		case <-t.C():
			cancel(context.DeadlineExceeded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		t.Stop() // here already: who waits for a clock's sleepers is not to count it
		cancel(context.Canceled)
	}
}

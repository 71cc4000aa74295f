package clock

import (
	"sync"
	"time"
)

// Manual is a clock that moves only when told to. The zero value is not usable: see [NewManual].
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	waiters map[*manualTimer]struct{}
	changed chan struct{} // closed and replaced whenever a waiter comes
}

// NewManual starts a manual clock at start.
func NewManual(start time.Time) *Manual {
	return &Manual{now: start.UTC().Round(0), waiters: map[*manualTimer]struct{}{}, changed: make(chan struct{})}
}

// Now is the instant last set.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock by d (negative sets it back) and fires what is due, each timer once and each ticker once.
func (m *Manual) Advance(d time.Duration) { m.Set(m.Now().Add(d)) }

// Set moves the clock to t.
func (m *Manual) Set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = t.UTC().Round(0)
	for w := range m.waiters {
		if !w.due.After(m.now) {
			m.fire(w)
		}
	}
}

// Waiting blocks until at least n timers and tickers wait on the clock: a test's signal that the code under test sleeps.
func (m *Manual) Waiting(n int) {
	for {
		m.mu.Lock()
		enough, changed := len(m.waiters) >= n, m.changed
		m.mu.Unlock()
		if enough {
			return
		}
		<-changed
	}
}

// NewTimer implements [Clock].
func (m *Manual) NewTimer(d time.Duration) Timer { return m.add(d, 0) }

// NewTicker implements [Clock].
func (m *Manual) NewTicker(d time.Duration) Ticker {
	if d <= 0 {
		panic("clock: non-positive ticker period")
	}
	return manualTicker{m.add(d, d)}
}

func (m *Manual) add(d, every time.Duration) *manualTimer {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &manualTimer{clock: m, due: m.now.Add(d), every: every, c: make(chan time.Time, 1)}
	m.waiters[w] = struct{}{}
	if d <= 0 {
		m.fire(w)
	}
	close(m.changed)
	m.changed = make(chan struct{})
	return w
}

// fire sends and reschedules or forgets w; the caller holds mu.
func (m *Manual) fire(w *manualTimer) {
	select {
	case w.c <- m.now:
	default:
	}
	if w.every == 0 {
		delete(m.waiters, w)
		return
	}
	for !w.due.After(m.now) {
		w.due = w.due.Add(w.every)
	}
}

type manualTimer struct {
	clock *Manual
	due   time.Time
	every time.Duration
	c     chan time.Time
}

func (t *manualTimer) C() <-chan time.Time { return t.c }

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, waiting := t.clock.waiters[t]
	delete(t.clock.waiters, t)
	return waiting
}

type manualTicker struct{ t *manualTimer }

func (t manualTicker) C() <-chan time.Time { return t.t.c }
func (t manualTicker) Stop()               { t.t.Stop() }

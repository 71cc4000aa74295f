package push

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// Why a turn's requests are cancelled.
var (
	errLeaseOver = errors.New("the send lease ended")
	errFenced    = errors.New("somebody else holds the send lease")
	errDrained   = errors.New("the worker stops")
)

// held is a send lease of a running turn.
type held struct {
	anchor anchor
	end    time.Time // by the clock
	last   bool      // nothing more is to be sent; what is on the wire may end until then
	lose   context.CancelCauseFunc
}

// leases are those of the running turns: they are renewed each third of their length. Who loses one to somebody else or to its end is cancelled; whose lease is revoked
// stops behind the request on the wire.
type leases struct {
	clock  clock.Clock
	length time.Duration
	renew  func(ctx context.Context, tokens []int64) ([]store.PushLease, error)
	fenced func(state store.PushLeaseState)

	mu   sync.Mutex
	held map[int64]*held // by token
	wake chan struct{}   // capacity 1: there is a first one
}

func newLeases(c clock.Clock, length time.Duration, renew func(context.Context, []int64) ([]store.PushLease, error), fenced func(store.PushLeaseState)) *leases {
	return &leases{clock: c, length: length, renew: renew, fenced: fenced, held: map[int64]*held{}, wake: make(chan struct{}, 1)}
}

// hold begins to watch a lease; lose is called once when it is over, with the reason.
func (l *leases) hold(token int64, a anchor, expires time.Time, lose context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[token] = &held{anchor: a, end: a.by(expires), lose: lose}
	signal(l.wake)
}

// drop ends the watch.
func (l *leases) drop(token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, token)
}

// left is how long something may be sent under a lease; 0 when it is over, or the turn is to send nothing more.
func (l *leases) left(token int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[token]
	if h == nil || h.last {
		return 0
	}
	return max(0, h.end.Sub(l.clock.Now()))
}

// ensure has a lease hold for that long, renewing it where it must; false where it cannot be had.
func (l *leases) ensure(ctx context.Context, token int64, long time.Duration) bool {
	if l.left(token) >= long {
		return true
	}
	if l.stopping(token) {
		return false
	}
	l.extend(ctx, []int64{token})
	return l.left(token) >= long
}

// extend renews leases and cancels those that are nobody's or somebody else's. Without an answer they go on until they end.
func (l *leases) extend(ctx context.Context, tokens []int64) {
	answers, err := l.renew(ctx, tokens)
	if err != nil {
		return
	}
	for _, a := range answers {
		switch a.State {
		case store.PushLeaseHeld:
			l.prolong(a.Token, a.ExpiresAt)
		case store.PushLeaseRevoked:
			l.stop(a.Token)
			l.fenced(a.State)
		default:
			l.lost(a.Token, errFenced)
			l.fenced(a.State)
		}
	}
}

func (l *leases) prolong(token int64, expires time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[token]; h != nil {
		if end := h.anchor.by(expires); end.After(h.end) {
			h.end = end
		}
	}
}

// stop has a turn send nothing more, as its lease was revoked. The request on the wire goes on as long as the lease would have: nobody else is at the receiver until the
// turn hands the lease in, and to cut it off would have what was accepted come again (PU-33).
func (l *leases) stop(token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[token]; h != nil {
		h.last = true
	}
}

func (l *leases) stopping(token int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[token]
	return h != nil && h.last
}

// lost cancels a turn. Its token stays known as one that holds no more.
func (l *leases) lost(token int64, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[token]; h != nil {
		h.end = l.clock.Now()
		h.lose(why)
	}
}

// watch cancels turns as their leases end by the clock, until ctx does.
func (l *leases) watch(ctx context.Context) {
	for {
		var timer clock.Timer
		var over <-chan time.Time
		if wait, any := l.expire(); any {
			timer = l.clock.NewTimer(wait)
			over = timer.C()
		}
		select {
		case <-over:
		case <-l.wake:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// expire cancels the turns whose lease is over and answers when the next one ends.
func (l *leases) expire() (wait time.Duration, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	for token, h := range l.held {
		left := h.end.Sub(now)
		if left <= 0 {
			h.lose(errLeaseOver)
			delete(l.held, token)
			continue
		}
		if !any || left < wait {
			wait, any = left, true
		}
	}
	return wait, any
}

// renewing renews all leases each third of their length, until ctx ends.
func (l *leases) renewing(ctx context.Context) {
	tick := l.clock.NewTicker(l.length / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C():
			for tokens := range slices.Chunk(l.tokens(), store.MaxPushClaim) {
				l.extend(ctx, tokens)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (l *leases) tokens() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := make([]int64, 0, len(l.held))
	for token, h := range l.held {
		if !h.last {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

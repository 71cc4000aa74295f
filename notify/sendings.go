package notify

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Sendings are notices that go out behind answers which do not wait for them. The zero value is ready; its owner ends it with Stop. Safe for concurrent use.
type Sendings struct {
	Log *slog.Logger // told of sendings that panic, slog.Default

	mu     sync.Mutex
	next   int
	leave  map[int]context.CancelCauseFunc // of those under way
	awaits sync.WaitGroup
}

// Go starts a sending. It keeps the values of ctx and outlives it: only an impatient Stop ends its context. One that panics ends alone; passes find its rows.
func (s *Sendings) Go(ctx context.Context, send func(ctx context.Context)) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	if s.leave == nil {
		s.leave = map[int]context.CancelCauseFunc{}
	}
	own := s.next
	s.next++
	s.leave[own] = cancel
	s.mu.Unlock()
	s.awaits.Go(func() {
		defer s.ended(own)
		defer s.contain(ctx)
		send(ctx)
	})
}

func (s *Sendings) contain(ctx context.Context) {
	if p := recover(); p != nil {
		cmp.Or(s.Log, slog.Default()).ErrorContext(ctx, "sending panicked; passes find its rows", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

func (s *Sendings) ended(own int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave[own](context.Canceled)
	delete(s.leave, own)
}

// Stop returns when all is sent. When ctx ends first it ends the contexts of the rest, and the error says how many were left; the store's passes find their
// rows. Idempotent. Nothing may be started meanwhile.
func (s *Sendings) Stop(ctx context.Context) error {
	down := make(chan struct{})
	go func() { s.awaits.Wait(); close(down) }()
	select {
	case <-down:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leave) == 0 {
		return nil
	}
	for _, cancel := range s.leave {
		cancel(context.Cause(ctx))
	}
	return fmt.Errorf("%d batches of notices were not sent in time; passes find their rows: %w", len(s.leave), context.Cause(ctx))
}

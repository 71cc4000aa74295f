package notify_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rendezvous-events/rendezvous/notify"
)

func TestAnImpatientStopEndsSendingsAndTellsHowManyWereLeft(t *testing.T) {
	var s notify.Sendings
	caller, gone := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		s.Go(caller, func(ctx context.Context) { <-ctx.Done(); ended <- context.Cause(ctx) })
	}
	gone() // a sending outlives its caller
	stubborn := make(chan struct{})
	s.Go(t.Context(), func(context.Context) { <-stubborn })
	late := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	err := s.Stop(ctx)
	if !errors.Is(err, late) || err.Error()[:1] != "3" {
		t.Errorf("stopped with %v", err)
	}
	for range 2 {
		if got := <-ended; !errors.Is(got, late) {
			t.Errorf("a sending ended with %v", got)
		}
	}
	close(stubborn)
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("when all is sent: %v", err)
	}
}

package notify_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/notify"
)

func TestASendingThatPanicsEndsAlone(t *testing.T) {
	var log strings.Builder
	s := notify.Sendings{Log: slog.New(slog.NewTextHandler(&log, nil))}
	s.Go(t.Context(), func(context.Context) { panic("a bug") })
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if text := log.String(); !strings.Contains(text, "a bug") || !strings.Contains(text, "sendings_test.go") {
		t.Errorf("the log does not tell of it with its stack: %s", text)
	}
}

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

package sweep_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// slow is a broker that takes its time for each lot, and nothing when that time is over.
type slow struct {
	p    *plane
	took time.Duration
	sent int
}

func (s *slow) Try(ctx context.Context, n store.Notices) {
	if s.p.clock.Advance(s.took); ctx.Err() == nil {
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
	p.stall = 5 * time.Millisecond // the pauses: a second each, as this clock goes
	s := &slow{p: p, took: 600 * time.Millisecond}
	w, err := sweep.New(p.store, stream{}, sweep.Deps{
		Sender: s, Clock: p.clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Meter: metricnoop.Meter{},
	}, sweep.Config{Pages: 1, Page: 12 * time.Second})
	must(t, err)
	defer func() { must(t, w.Stop(context.Background())) }()
	got := pass(t, (&sweeper{w, p}).tick(time.Second), sweep.Woken)
	if got.Handed != 500 || got.Done != 500 || s.sent != 500 {
		t.Errorf("%d sent, reported %+v", s.sent, got)
	}
}

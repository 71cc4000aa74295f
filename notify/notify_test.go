package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publisher notes what it is given and fails the notices of one event.
type publisher struct {
	mu    sync.Mutex
	calls int
	most  int
	seen  map[string]int
	fail  string
}

func (p *publisher) Publish(_ context.Context, notices []messaging.Notice) error {
	p.mu.Lock()
	p.calls++
	p.most = max(p.most, len(notices))
	defer p.mu.Unlock()
	var failed []int
	for i, n := range notices {
		m := n.(messaging.MatchNotice)
		p.seen[m.ID]++
		if m.ID == p.fail {
			failed = append(failed, i)
		}
	}
	if failed != nil {
		return &messaging.PublishError{Failed: failed, Err: rendezvous.ErrUnavailable}
	}
	return nil
}

func (p *publisher) HintTimers(shards []int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range shards {
		p.seen[fmt.Sprint("shard ", s)]++
	}
	return rendezvous.ErrUnavailable
}

func sender(t *testing.T, p *publisher) *Sender {
	t.Helper()
	p.seen = map[string]int{}
	s, err := New(p, slog.New(slog.NewTextHandler(io.Discard, nil)), tracenoop.NewTracerProvider().Tracer(""), metricnoop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

func event(id string) store.Notices {
	return store.Notices{Events: []store.EventRef{{Tenant: "acme", EventID: rendezvous.EventID{Source: "s", ID: id}}}}
}

func TestEachCallerIsToldOfItsOwnNotices(t *testing.T) {
	p := &publisher{fail: "50"}
	s := sender(t, p)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			err := s.Send(t.Context(), event(fmt.Sprint(i)))
			if lost := errors.Is(err, rendezvous.ErrUnavailable); lost != (i == 50) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range 200 {
		if n := p.seen[fmt.Sprint(i)]; n != 1 {
			t.Errorf("notice %d went out %d times", i, n)
		}
	}
}

func TestNothingToSendPublishesNothing(t *testing.T) {
	p := &publisher{}
	if err := sender(t, p).Send(t.Context(), store.Notices{}); err != nil || p.calls != 0 {
		t.Errorf("%d publishes, %v", p.calls, err)
	}
}

func TestAPublishIsBounded(t *testing.T) {
	p := &publisher{}
	s := sender(t, p)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			var n store.Notices
			for i := range 300 {
				n.Append(event(fmt.Sprint(i)))
			}
			if err := s.Send(t.Context(), n); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p.most > maxNotices {
		t.Errorf("a publish had %d notices, over %d", p.most, maxNotices)
	}
}

func TestHintsGoOncePerShardAndFailNothing(t *testing.T) {
	p := &publisher{}
	s := sender(t, p)
	n := event("1")
	n.Timers = []store.TimerRef{{Shard: 4}, {Shard: 2}, {Shard: 4}}
	if err := s.Send(t.Context(), n); err != nil {
		t.Error(err)
	}
	if err := s.Send(t.Context(), store.Notices{Timers: []store.TimerRef{{Shard: 2}}}); err != nil {
		t.Error(err)
	}
	if p.seen["shard 4"] != 1 || p.seen["shard 2"] != 2 || p.seen["1"] != 1 || p.calls != 1 {
		t.Errorf("sent %v in %d publishes", p.seen, p.calls)
	}
}

package delivery_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/delivery"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/open"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 60 * time.Second // only a failing test waits so long

// plane is a store in memory on a clock that stands still, and what a worker is given beside it.
type plane struct {
	t      *testing.T
	clock  *clock.Manual
	store  store.Store
	tenant store.Tenant
	faults *fault.Backend
	sender *sender
	stream *stream
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{t: t, clock: clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), sender: &sender{}, stream: &stream{}}
	var err error
	p.store, err = open.Open(t.Context(), "memory:", open.Options{Clock: p.clock, Wrap: func(b backend.Backend) backend.Backend {
		p.faults = fault.Wrap(b)
		return p.faults
	}})
	must(t, err)
	t.Cleanup(func() { must(t, p.store.Close()) })
	p.tenant, err = p.store.Tenant("acme")
	must(t, err)
	return p
}

func (p *plane) deps() delivery.Deps {
	return delivery.Deps{
		Sender: p.sender, Clock: p.clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Tracer: tracenoop.Tracer{}, Meter: metricnoop.Meter{},
	}
}

// worker starts a worker over s, the plane's store where that is nil.
func (p *plane) worker(s delivery.Store) {
	p.t.Helper()
	if s == nil {
		s = p.store
	}
	w, err := delivery.New(s, p.stream, p.deps())
	must(p.t, err)
	must(p.t, w.Start(func() {}))
	p.t.Cleanup(func() {
		must(p.t, w.Stop(context.Background()))
		must(p.t, w.Stop(context.Background())) // idempotent
	})
}

func (p *plane) start(run string) {
	p.t.Helper()
	_, err := p.tenant.StartRun(p.t.Context(), store.Start{WorkflowID: "w-" + run, RunID: run, Type: "t"}, time.Time{})
	must(p.t, err)
}

func (p *plane) lease(run string, ttl time.Duration) int64 {
	p.t.Helper()
	l, err := p.tenant.AcquireLease(p.t.Context(), run, "pod", ttl, "a-"+run)
	must(p.t, err)
	return l.Epoch
}

// await registers run's wait e for events of type t on key k=run, and expects that it waits.
func (p *plane) await(run string, epoch int64) {
	p.t.Helper()
	r, err := p.tenant.RegisterWait(p.t.Context(), store.Registration{Wait: rendezvous.Wait{
		WaitID: rendezvous.WaitID{RunID: run, Effect: "e"}, Type: "t", Keys: []rendezvous.Key{{Namespace: "k", Value: run}},
	}, Epoch: epoch}, time.Time{})
	must(p.t, err)
	if r.Outcome != store.RegisterWaiting {
		p.t.Fatalf("registered: %+v", r)
	}
}

// buffer stores the event that run's wait is for, under the id of the run.
func (p *plane) buffer(run string) {
	p.t.Helper()
	_, err := p.tenant.Buffer(p.t.Context(), rendezvous.Event{
		EventID: rendezvous.EventID{Source: "s", ID: run}, Type: "t", Keys: []rendezvous.Key{{Namespace: "k", Value: run}}, Payload: []byte("1"),
	}, time.Time{})
	must(p.t, err)
}

func (p *plane) state(run string) rendezvous.EventState {
	p.t.Helper()
	e, err := p.tenant.LookupEvent(p.t.Context(), rendezvous.EventID{Source: "s", ID: run}, false)
	must(p.t, err)
	return e.State
}

// eventually waits until an event is in that state.
func (p *plane) eventually(run string, want rendezvous.EventState) {
	p.t.Helper()
	for end := time.Now().Add(patience); p.state(run) != want; clock.Sleep(context.Background(), clock.System, time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("event %s stays %s, want %s", run, p.state(run), want)
		}
	}
}

// notice is MATCH's notice of the event of a run.
func notice(run string) messaging.MatchNotice {
	return messaging.MatchNotice{Tenant: "acme", Source: "s", ID: run}
}

// stream is MATCH as the test plays it.
type stream struct {
	handle func(ctx context.Context, batch []messaging.MatchNotice) []messaging.Outcome
	fail   error
}

func (s *stream) ConsumeMatch(_ messaging.ConsumeOptions, h func(ctx context.Context, batch []messaging.MatchNotice) []messaging.Outcome) (*messaging.Consumption, error) {
	s.handle = h
	return nil, s.fail
}

// deliver hands notices to the worker and answers the words of its outcomes.
func (p *plane) deliver(batch ...messaging.MatchNotice) []string {
	p.t.Helper()
	var words []string
	for _, o := range p.stream.handle(p.t.Context(), batch) {
		words = append(words, o.String())
	}
	return words
}

// sender notes what is sent, and fails when told to.
type sender struct {
	mu   sync.Mutex
	sent store.Notices
	n    int
	fail error
}

func (s *sender) Send(_ context.Context, n store.Notices) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.sent.Append(n)
	if !n.Empty() {
		s.n++
	}
	return nil
}

func (s *sender) Try(ctx context.Context, n store.Notices) { _ = s.Send(ctx, n) }

// take answers what was sent since it was last asked.
func (s *sender) take() store.Notices {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.sent
	s.sent = store.Notices{}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package sweep_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/sweep"
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
	damage memory.Damage
	sender *sender
	pods   []*pod
	notice notice
	stall  time.Duration // how long a tick may take before the clock moves on under it
}

func newPlane(t *testing.T, change ...func(backend.Backend) backend.Backend) *plane {
	t.Helper()
	return newPlaneOf(t, rendezvous.DefaultShards, change...)
}

func newPlaneOf(t *testing.T, shards int, change ...func(backend.Backend) backend.Backend) *plane {
	t.Helper()
	p := &plane{t: t, clock: clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), sender: &sender{}, stall: patience}
	var err error
	p.store, err = open.Open(t.Context(), "memory:", open.Options{Clock: p.clock, Shards: shards, Wrap: func(b backend.Backend) backend.Backend {
		p.damage = b.(*memory.Backend).Damage()
		for _, c := range change {
			b = c(b)
		}
		p.faults = fault.Wrap(b)
		return p.faults
	}})
	must(t, err)
	t.Cleanup(func() { must(t, p.store.Close()) })
	p.tenant, err = p.store.Tenant("acme")
	must(t, err)
	return p
}

// sweeper is a worker whose ticks the test makes.
type sweeper struct {
	*sweep.Worker
	p *plane
}

// Store is both sides of a worker's store.
type Store interface {
	sweep.Store
	sweep.Shards
}

// everything is the store as a pod sees it that takes every shard for its own, whoever else does.
type everything struct{ store.Store }

func (everything) IsCurrentOwner(int) bool { return true }

func (p *plane) all() everything { return everything{p.store} }

// shards are all there are, each as whoever acquires it first holds it.
func (p *plane) shards() []store.ShardEpoch {
	all := make([]store.ShardEpoch, p.store.Shards())
	for i := range all {
		all[i] = store.ShardEpoch{Shard: i, Epoch: 1}
	}
	return all
}

// sweep makes a worker over s, the plane's store where that is nil, that owns every shard. It is not started.
func (p *plane) sweep(s Store, cfg sweep.Config) *sweeper {
	p.t.Helper()
	if s == nil {
		s = p.all()
	}
	w, err := sweep.New(s, s, stream{}, sweep.Deps{
		Sender: p.sender, Clock: p.clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Meter: metricnoop.Meter{},
	}, cfg)
	must(p.t, err)
	w.Adopt(p.shards())
	p.t.Cleanup(func() {
		must(p.t, w.Stop(context.Background()))
		must(p.t, w.Stop(context.Background())) // idempotent
	})
	return &sweeper{w, p}
}

// tick moves the clock and makes a tick of every pass. Where a pass hangs, the clock moves on under it.
func (w *sweeper) tick(step time.Duration) sweep.Report {
	w.p.t.Helper()
	w.p.clock.Advance(step)
	done := make(chan sweep.Report, 1)
	go func() { done <- w.Tick(context.Background()) }()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case r := <-done:
			return r
		case <-time.After(w.p.stall):
			w.p.clock.Advance(time.Second)
		}
	}
	w.p.t.Fatal("the tick does not end")
	panic("unreachable")
}

// until ticks until it holds, and answers the last report.
func (w *sweeper) until(step time.Duration, what string, holds func(r sweep.Report) bool) sweep.Report {
	w.p.t.Helper()
	for end := time.Now().Add(patience); ; {
		if r := w.tick(step); holds(r) {
			return r
		}
		if time.Now().After(end) {
			w.p.t.Fatalf("did not happen: %s", what)
		}
	}
}

// pass is a pass's part of a report.
func pass(t *testing.T, r sweep.Report, name string) sweep.PassReport {
	t.Helper()
	p, due := r.Pass(name)
	if !due {
		t.Fatalf("%s is not in the report", name)
	}
	return p
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

func eventID(run string) rendezvous.EventID { return rendezvous.EventID{Source: "s", ID: run} }

// buffer stores the event that run's wait is for, under the id of the run.
func (p *plane) buffer(run string) {
	p.t.Helper()
	_, err := p.tenant.Buffer(p.t.Context(), rendezvous.Event{
		EventID: eventID(run), Type: "t", Keys: []rendezvous.Key{{Namespace: "k", Value: run}}, Payload: []byte("1"),
	}, time.Time{})
	must(p.t, err)
}

// claim ties run's event to its wait, as a worker does that dies before it records the answer.
func (p *plane) claim(run string) {
	p.t.Helper()
	_, err := p.tenant.MatchWaiter(p.t.Context(), eventID(run), time.Time{})
	must(p.t, err)
}

// park leaves a run with a wait that holds its event.
func (p *plane) park(run string) {
	p.t.Helper()
	p.start(run)
	p.await(run, 0)
	p.buffer(run)
	p.claim(run)
}

func (p *plane) state(run string) rendezvous.EventState {
	p.t.Helper()
	e, err := p.tenant.LookupEvent(p.t.Context(), eventID(run), false)
	must(p.t, err)
	return e.State
}

// answers counts how often a run's history answers its wait.
func (p *plane) answers(run string) int {
	p.t.Helper()
	page, err := p.tenant.ReadHistoryFrom(p.t.Context(), "w-"+run, 1, 0)
	must(p.t, err)
	n := 0
	for _, r := range page.Records {
		if r.Kind == rendezvous.WaitAnswered {
			n++
		}
	}
	return n
}

// resumed reports whether a RESUME of that cause went out for a run since it was last asked.
func (p *plane) resumed(run string, cause rendezvous.Cause) bool {
	for _, r := range p.sender.take().Resume {
		if r.RunID == run && r.Cause == cause {
			return true
		}
	}
	return false
}

// stream is an ADVISORY on which nothing comes.
type stream struct{}

func (stream) ConsumeAdvisory(messaging.ConsumeOptions, func(context.Context, []messaging.Advisory) []messaging.Outcome) (*messaging.Consumption, error) {
	return nil, nil
}

// sender notes what is sent, and loses it where the test says so.
type sender struct {
	mu   sync.Mutex
	sent store.Notices
}

func (s *sender) Try(_ context.Context, n store.Notices) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.Append(n)
}

// take answers what was sent since it was last asked.
func (s *sender) take() store.Notices {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.sent
	s.sent = store.Notices{}
	return n
}

func runs(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package timer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/timer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 60 * time.Second // only a failing test waits so long

// plane is a store in memory on a clock that stands still.
type plane struct {
	t      *testing.T
	clock  *clock.Manual
	store  store.Store
	tenant store.Tenant
	faults *fault.Backend
	runs   int
	pods   []*pod
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{t: t, clock: clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
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

// hints are those of a test: they arrive only while they are said to.
type hints struct {
	connected atomic.Bool
	mu        sync.Mutex
	look      map[int]func()
}

func (h *hints) OnTimers(shard int, look func()) (func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look[shard] = look
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.look, shard)
	}, nil
}

func (h *hints) Connected() bool { return h.connected.Load() }

// give hands a verb's hints to whoever listens.
func (h *hints) give(n store.Notices) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range n.Timers {
		if look := h.look[t.Shard]; look != nil {
			look()
		}
	}
}

type sender struct {
	mu      sync.Mutex
	resumes []store.ResumeRef
}

func (s *sender) Try(_ context.Context, n store.Notices) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumes = append(s.resumes, n.Resume...)
}

func (s *sender) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.resumes)
}

// pod is a worker that owns every shard.
type pod struct {
	*timer.Worker
	p      *plane
	handle store.PoolHandle
	hints  *hints
	sender *sender
	epochs []store.ShardEpoch
}

// pod starts a worker on c, which is the store's clock unless given.
func (p *plane) pod(name string, c clock.Clock, wrap func(timer.Store) timer.Store) *pod {
	p.t.Helper()
	if c == nil {
		c = p.clock
	}
	handle, err := p.store.PoolHandle(store.PoolTimer, name+"/1")
	must(p.t, err)
	w := &pod{p: p, handle: handle, hints: &hints{look: map[int]func(){}}, sender: &sender{}}
	w.hints.connected.Store(true)
	var s timer.Store = handle
	if wrap != nil {
		s = wrap(s)
	}
	w.Worker, err = timer.New(s, w.hints, timer.Deps{
		Matcher: p.store, Sender: w.sender, Clock: c, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Meter: metricnoop.Meter{},
	}, timer.Config{})
	must(p.t, err)
	w.Start()
	p.pods = append(p.pods, w)
	p.t.Cleanup(func() {
		must(p.t, w.Stop(context.Background()))
		must(p.t, w.Stop(context.Background())) // idempotent
	})
	return w
}

// own takes every shard that is free.
func (w *pod) own() {
	w.p.t.Helper()
	all := make([]int, w.p.store.Shards())
	for i := range all {
		all[i] = i
		must(w.p.t, w.Subscribe(context.Background(), i))
	}
	got, err := w.handle.AcquireOwnedShards(context.Background(), all, store.MaxShardTTL)
	must(w.p.t, err)
	w.epochs = nil
	for _, l := range got.Won {
		w.epochs = append(w.epochs, store.ShardEpoch{Shard: l.Shard, Epoch: l.Epoch})
	}
	w.Adopt(w.epochs)
}

// run starts a run that nobody drives.
func (p *plane) run() string {
	p.t.Helper()
	p.runs++
	id := fmt.Sprintf("run-%d", p.runs)
	_, err := p.tenant.StartRun(context.Background(), store.Start{WorkflowID: fmt.Sprintf("flow-%d", p.runs), RunID: id, Type: "order"}, time.Time{})
	must(p.t, err)
	return id
}

// arm arms a timer that far ahead and answers what is to be noticed.
func (p *plane) arm(run, id string, ahead time.Duration) store.Notices {
	p.t.Helper()
	armed, err := p.tenant.ArmTimer(context.Background(), store.Arm{RunID: run, TimerID: id, After: &ahead, BatchID: id}, time.Time{})
	must(p.t, err)
	return armed.Notices
}

// fired lists the instants at which the timers of a run fired, by timer.
func (p *plane) fired(run string) map[string][]time.Time {
	p.t.Helper()
	w, err := p.tenant.DescribeWorkflow(context.Background(), store.WorkflowRef{RunID: run})
	must(p.t, err)
	records, err := p.tenant.ReadHistory(context.Background(), w.WorkflowID)
	must(p.t, err)
	out := map[string][]time.Time{}
	for _, r := range records {
		if r.Kind == rendezvous.TimerFired {
			var d rendezvous.TimerFiredData
			must(p.t, rendezvous.DecodeData(r, &d))
			at, err := rendezvous.ParseInstant("fire_at", d.FireAt)
			must(p.t, err)
			if r.RecordedAt.Before(at) {
				p.t.Errorf("%s fired %s early", d.TimerID, at.Sub(r.RecordedAt))
			}
			out[d.TimerID] = append(out[d.TimerID], r.RecordedAt)
		}
	}
	return out
}

// until moves c by step at a time until it holds.
func (p *plane) until(c *clock.Manual, step time.Duration, what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			p.t.Fatalf("did not happen: %s", what)
		}
		p.step(c, step)
	}
}

// step moves c on when the pods have done what there was to do at its instant, as far as a look from outside can say. A call that hangs is not waited for.
func (p *plane) step(c *clock.Manual, step time.Duration) {
	c.Waiting(2 * len(p.pods)) // each one's loop, and its walk that reconciles
	for idle, looks := 0, 0; idle < 3 && looks < 200; looks++ {
		<-time.After(50 * time.Microsecond)
		idle++
		for _, w := range p.pods {
			if !w.Idle() {
				idle = 0
			}
		}
	}
	c.Advance(step)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errHung = errors.New("the call hung until it was given up")

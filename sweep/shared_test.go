package sweep_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// SW-17, S5: two sweepers at once on the same rows: each parked wait is answered once, each abandoned run is reclaimed and called for once, and what one reports
// as done the other does not.
func TestTwoSweepersDoNothingTwice(t *testing.T) {
	p := newPlane(t)
	parked, abandoned, apart := runs("parked", 700), runs("abandoned", 300), runs("apart", 700)
	for _, run := range parked {
		p.park(run)
	}
	for _, run := range abandoned {
		p.start(run)
		p.lease(run, 2*time.Second)
	}
	for _, run := range apart {
		p.start(run)
		p.await(run, 0)
		p.buffer(run)
	}
	p.clock.Advance(10 * time.Second)
	p.sender.take()
	meet := &together{Store: p.all(), want: 2, all: make(chan struct{})}
	done := map[string]int{}
	var both sync.WaitGroup
	reports := make([]sweep.Report, 2)
	for i := range reports {
		w := p.sweep(meet, sweep.Config{})
		both.Go(func() { reports[i] = w.Tick(t.Context()) })
	}
	both.Wait()
	for _, r := range reports {
		for _, name := range []string{sweep.Parked, sweep.Leases, sweep.Unmet} {
			done[name] += pass(t, r, name).Done
		}
	}
	if done[sweep.Parked] != len(parked) || done[sweep.Leases] != len(abandoned) || done[sweep.Unmet] != len(apart) {
		t.Errorf("done %v", done)
	}
	for _, run := range append(parked, apart...) {
		if n := p.answers(run); n != 1 {
			t.Fatalf("%s is answered %d times", run, n)
		}
	}
	called := map[string]int{}
	for _, r := range p.sender.take().Resume {
		if r.Cause == rendezvous.CauseLeaseExpired && r.Notices == 0 {
			called[r.RunID]++
		}
	}
	for _, run := range abandoned {
		wf, err := p.tenant.DescribeWorkflow(t.Context(), store.WorkflowRef{RunID: run})
		must(t, err)
		if wf.Reclaims != 1 || called[run] != 1 {
			t.Fatalf("%s is reclaimed %d times and called for %d times", run, wf.Reclaims, called[run])
		}
	}
}

// together is a store that hands abandoned runs out only when two have asked for the first page, so that both see the same ones.
type together struct {
	Store
	mu   sync.Mutex
	want int
	all  chan struct{}
}

func (s *together) DueLeases(ctx context.Context, limit int, cursor string) ([]store.AbandonedRun, string, error) {
	rows, next, err := s.Store.DueLeases(ctx, limit, cursor)
	s.mu.Lock()
	if s.want--; s.want == 0 {
		close(s.all)
	}
	s.mu.Unlock()
	<-s.all
	return rows, next, err
}

// SW-24: of 1,000 abandoned runs the one whose lease ran out first goes first, an unreadable row is told and left alone, and each run is called for once.
func TestAThousandAbandonedRunsAreReclaimedInOrder(t *testing.T) {
	p := newPlane(t)
	names := runs("run", 1000)
	for i, run := range names {
		p.start(run)
		p.lease(run, time.Hour-time.Duration(i)*time.Second) // the last expires first
	}
	p.sender.take()
	p.clock.Advance(2 * time.Hour)
	bad := store.AbandonedRun{Tenant: "acme", WorkflowRef: store.WorkflowRef{WorkflowID: "bad"}, Corrupt: rendezvous.Errorf(rendezvous.CodeCorrupt, "does not decode")}
	w := p.sweep(broken{p.all(), func(ctx context.Context, cursor string) ([]store.AbandonedRun, string, error) {
		rows, next, err := p.store.DueLeases(ctx, 200, cursor)
		if cursor == "" {
			rows = append([]store.AbandonedRun{bad}, rows...)
		}
		return rows, next, err
	}}, sweep.Config{})
	if got := pass(t, w.tick(0), sweep.Leases); got.Handed != 1001 || got.Done != 1000 || got.Failed != 1 || got.Pages != 5 || got.Saturated || got.Oldest < time.Hour {
		t.Errorf("reported %+v", got)
	}
	var order []string
	for _, r := range p.sender.take().Resume {
		if r.Cause == rendezvous.CauseLeaseExpired {
			order = append(order, r.RunID)
		}
	}
	if len(order) != 1000 {
		t.Fatalf("%d runs are called for", len(order))
	}
	for i, run := range order {
		if want := names[len(names)-1-i]; run != want {
			t.Fatalf("place %d has %s, want %s", i, run, want)
		}
	}
}

// SW-23: a run with news that nobody takes up is told of again at growing intervals, for ever, and raises attention after 5 min; an executor ends both.
func TestARunWithoutAnExecutorIsToldOfAndRaisesAttention(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	w := p.sweep(nil, sweep.Config{})
	var told []time.Time
	for range 3 * 60 * 12 { // three hours
		r := w.tick(5 * time.Second)
		if p.resumed("run-1", rendezvous.CauseStarted) {
			told = append(told, p.clock.Now())
		}
		if early := p.clock.Now().Sub(time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)) < 0; early && attends(r, "no_executor", "") {
			t.Fatalf("attention at %s", p.clock.Now())
		}
	}
	if len(told) < 20 || told[1].Sub(told[0]) > 20*time.Second {
		t.Errorf("told at %v", told)
	}
	for i := 2; i < len(told); i++ {
		if d := told[i].Sub(told[i-1]); d > 10*time.Minute+5*time.Second || i < 6 && d < told[i-1].Sub(told[i-2]) {
			t.Errorf("told after %s, before that after %s", d, told[i-1].Sub(told[i-2]))
		}
	}
	if r := w.Last(); !attends(r, "no_executor", "") {
		t.Errorf("attention %+v", r.Attention)
	}
	p.lease("run-1", time.Hour)
	p.sender.take()
	for range 20 {
		w.tick(30 * time.Second)
	}
	if r := w.Last(); attends(r, "no_executor", "") || p.resumed("run-1", rendezvous.CauseStarted) {
		t.Errorf("with a driver: attention %+v", r.Attention)
	}
}

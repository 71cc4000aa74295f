package sweep_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/shard"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// pod is a sweeper that runs as a member of the pool, on the plane's clock.
type pod struct {
	*sweep.Worker
	p       *plane
	member  *shard.Member
	handle  store.PoolHandle
	reports chan sweep.Report
	cut     atomic.Bool // the store does not hear it
	end     context.CancelFunc
	left    chan error
	leaves  bool
}

// join starts a pod.
func (p *plane) join(name string) *pod {
	p.t.Helper()
	d := &pod{p: p, left: make(chan error, 1), reports: make(chan sweep.Report, 10_000)}
	incarnation := shard.Incarnation(name)
	var err error
	d.handle, err = p.store.PoolHandle(store.PoolSweep, incarnation)
	must(p.t, err)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	d.Worker, err = sweep.New(p.store, d.handle, stream{}, sweep.Deps{Sender: p.sender, Clock: p.clock, Log: quiet, Meter: metricnoop.Meter{}},
		sweep.Config{Reported: func(r sweep.Report) { d.reports <- r }})
	must(p.t, err)
	d.member, err = shard.New(shard.Deps{
		Leases: leases{d.handle, &d.cut}, Pool: store.PoolSweep, Incarnation: incarnation, Work: d.Worker, Changed: p.notice.changed, Clock: p.clock, Log: quiet,
		Meter: metricnoop.Meter{},
	}, shard.Config{})
	must(p.t, err)
	p.notice.heard(d.member)
	must(p.t, d.Start())
	life, end := context.WithCancel(context.Background())
	d.end = end
	go func() { d.left <- d.member.Run(life) }()
	p.pods = append(p.pods, d)
	p.t.Cleanup(func() {
		d.cut.Store(true)
		end()
		if !d.leaves {
			must(p.t, <-d.left)
		}
		must(p.t, d.Stop(context.Background()))
	})
	return d
}

// notice tells every member that shards became free.
type notice struct {
	mu      sync.Mutex
	members []*shard.Member
}

func (n *notice) heard(m *shard.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members = append(n.members, m)
}

func (n *notice) changed(context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.members {
		m.Kick()
	}
}

// leases is the store as a pod's member reaches it, while it does.
type leases struct {
	store.PoolHandle
	cut *atomic.Bool
}

var errCut = errors.New("no way to the store")

func (l leases) RenewOwnedShards(ctx context.Context, shards []store.ShardEpoch, ttl time.Duration, m store.Member) (store.Renewal, error) {
	if l.cut.Load() {
		return store.Renewal{}, errCut
	}
	return l.PoolHandle.RenewOwnedShards(ctx, shards, ttl, m)
}

func (l leases) ReleaseOwnedShards(ctx context.Context, shards []store.ShardEpoch) error {
	if l.cut.Load() {
		return errCut
	}
	return l.PoolHandle.ReleaseOwnedShards(ctx, shards)
}

// kill ends a pod without a word to anybody.
func (d *pod) kill() {
	d.p.t.Helper()
	d.cut.Store(true)
	must(d.p.t, d.Stop(context.Background()))
	d.p.pods = slices.DeleteFunc(d.p.pods, func(o *pod) bool { return o == d })
}

// drain takes a pod out of the pool.
func (d *pod) drain() {
	d.leaves = true
	d.end()
}

// owned are the shards that the store gives to the pod.
func (d *pod) owned() (shards []int) {
	d.p.t.Helper()
	dir, err := d.p.store.ShardDirectory(context.Background(), store.PoolSweep)
	must(d.p.t, err)
	for _, l := range dir.Shards {
		if l.Remaining > 0 && d.handle.IsCurrentOwner(l.Shard) {
			shards = append(shards, l.Shard)
		}
	}
	return shards
}

// within moves the clock until it holds, and answers how long that took; longer than most fails the test.
func (p *plane) within(most time.Duration, what string, holds func() bool) time.Duration {
	p.t.Helper()
	const step = 50 * time.Millisecond
	for d := time.Duration(0); ; d += step {
		p.settle()
		if holds() {
			return d
		}
		if d >= most {
			p.t.Fatalf("not within %s: %s", most, what)
		}
		p.clock.Advance(step)
	}
}

// settle lets the pods do what there is to do at this instant.
func (p *plane) settle() {
	sleep := 0
	for _, d := range p.pods {
		if sleep++; !d.leaves { // its passes, and its rounds
			sleep++
		}
	}
	p.clock.Waiting(sleep)
	for idle, looks := 0, 0; idle < 4 && looks < 200; looks++ {
		<-time.After(50 * time.Microsecond)
		idle++
		for _, d := range p.pods {
			if !d.Idle() {
				idle = 0
			}
		}
	}
}

// abandon leaves runs, in about every shard, whose drivers are heard of once, and answers by shard which ones.
func (p *plane) abandon(prefix string, n int) (runsOf map[int][]string) {
	p.t.Helper()
	runsOf = map[int][]string{}
	for _, run := range runs(prefix, n) {
		p.start(run)
		p.lease(run, rendezvous.MinLease)
		s := rendezvous.Shard("acme", "w-"+run, p.store.Shards())
		runsOf[s] = append(runsOf[s], run)
	}
	return runsOf
}

// reclaimed reports whether the leases of all those runs were ended, each once.
func (p *plane) reclaimed(runsOf map[int][]string, shards []int) bool {
	p.t.Helper()
	all := true
	for _, s := range shards {
		for _, run := range runsOf[s] {
			w, err := p.tenant.DescribeWorkflow(context.Background(), store.WorkflowRef{RunID: run})
			must(p.t, err)
			if w.Reclaims > 1 {
				p.t.Fatalf("%s is reclaimed %d times", run, w.Reclaims)
			}
			all = all && w.Reclaims == 1
		}
	}
	return all
}

// shards.md section 5, SH-21: two sweepers have half of the shards each. One is killed: what its shards hold is handled within 5 s. SH-25: one that is cut off from
// the store stops by itself, and is stood in for alike.
func TestADeadSweepersShardsAreSweptByAnother(t *testing.T) {
	for name, end := range map[string]func(d *pod){"killed": (*pod).kill, "cut off": func(d *pod) { d.cut.Store(true) }} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			first, second := p.join("a"), p.join("b")
			p.within(10*time.Second, "that each has its half", func() bool { return len(first.owned()) == 32 && len(second.owned()) == 32 })
			theirs := first.owned()
			left := p.abandon("run", 200)
			end(first)
			took := p.within(5*time.Second, "that the other has all and no lease stands", func() bool {
				return len(second.owned()) == 64 && p.reclaimed(left, theirs)
			})
			t.Logf("it is succeeded %s after", took)
			must(t, second.Ready())
			if name == "cut off" {
				if got := first.owned(); len(got) > 0 {
					t.Errorf("cut off it believes in %v", got)
				}
				first.forget()
				p.within(30*time.Second, "that it says that its passes do not run", func() bool { return first.Worker.Ready() != nil })
				first.saysNothingOfShards()
			}
		})
	}
}

// SH-22: a sweeper that drains hands its shards over at once, whose rows the other then sees to; it begins no page on them any more.
func TestASweeperThatDrainsHandsItsShardsOver(t *testing.T) {
	p := newPlane(t)
	first, second := p.join("a"), p.join("b")
	p.within(10*time.Second, "that each has its half", func() bool { return len(first.owned()) == 32 && len(second.owned()) == 32 })
	theirs := first.owned()
	first.drain()
	took := p.within(time.Second, "that the other has all", func() bool { return len(second.owned()) == 64 })
	t.Logf("handed over within %s", took)
	must(t, <-first.left)
	left := p.abandon("run", 200)
	first.forget()
	p.within(rendezvous.MinLease+8*time.Second, "that the other ends the leases of all", func() bool { return p.reclaimed(left, theirs) })
	p.within(20*time.Second, "reports of the one that drained", func() bool { return len(first.reports) >= 4 })
	first.saysNothingOfShards()
}

// forget drops the pod's reports up to now.
func (d *pod) forget() {
	for len(d.reports) > 0 {
		<-d.reports
	}
}

// saysNothingOfShards looks at the pod's reports: none of a pass over owned shards.
func (d *pod) saysNothingOfShards() {
	d.p.t.Helper()
	for len(d.reports) > 0 {
		d.nothingOfShards(<-d.reports)
	}
}

func (d *pod) nothingOfShards(r sweep.Report) {
	d.p.t.Helper()
	for _, name := range []string{sweep.Leases, sweep.Parked, sweep.Woken, sweep.Late} {
		if got, worked := r.Pass(name); worked {
			d.p.t.Errorf("it owns nothing and reports %+v", got)
		}
	}
}

// Work: the end of a shard's work is told when the page under way is over, and no page that begins after sees the shard.
func TestAPageUnderWayHoldsTheHandOverUp(t *testing.T) {
	p := newPlane(t)
	begun, end := make(chan struct{}), make(chan struct{})
	w := p.sweep(broken{p.all(), func(context.Context, string) ([]store.AbandonedRun, string, error) {
		close(begun)
		<-end
		return nil, "", nil
	}}, sweep.Config{})
	ticked := make(chan struct{})
	go func() { defer close(ticked); w.Tick(context.Background()) }()
	<-begun
	over := w.Quit([]int{1, 2})
	select {
	case <-over:
		t.Error("over while the page is under way")
	case <-time.After(10 * time.Millisecond):
	}
	close(end)
	<-over
	<-ticked
	<-w.Quit([]int{3}) // nothing is under way
}

// shards.md section 5, SW-33, SH-24: of two sweepers and one shard the second owns nothing: it works the plane-wide passes, none of the others, is ready for as long as
// that lasts, and takes over when the owner dies, looking at once.
func TestAStandByIsReadyAndTakesOver(t *testing.T) {
	p := newPlaneOf(t, 1)
	first := p.join("a")
	p.within(time.Second, "that the first has the shard", func() bool { return len(first.owned()) == 1 })
	second := p.join("b")
	ready := func() bool { return second.Worker.Ready() == nil && second.member.Ready() == nil }
	p.within(time.Second, "that the second is ready", ready)
	looked := false
	for range 240 { // a minute
		p.settle()
		p.clock.Advance(250 * time.Millisecond)
		for len(second.reports) > 0 {
			r := <-second.reports
			second.nothingOfShards(r)
			_, unmet := r.Pass(sweep.Unmet)
			if looked = looked || unmet; !ready() || len(r.Attention) > 0 {
				t.Fatalf("ready %t, a stand-by reports %+v", ready(), r)
			}
		}
	}
	if !looked {
		t.Error("a stand-by looks for no unmet pairs")
	}
	left := p.abandon("run", 20)
	first.kill()
	took := p.within(5*time.Second, "that it ends the leases", func() bool { return p.reclaimed(left, []int{0}) })
	t.Logf("taken over within %s", took)
	must(t, second.Worker.Ready())
}

// scoped is a store whose passes see a handle's shards.
type scoped struct {
	sweep.Store
	sweep.Shards
}

// believing is a handle that takes every shard for its own.
type believing struct{ sweep.Shards }

func (believing) IsCurrentOwner(int) bool { return true }

// seen is the store as the owner of those shards sees it, whoever else owns them.
func (p *plane) seen(shards ...int) Store {
	p.t.Helper()
	h, err := p.store.PoolHandle(store.PoolSweep, shard.Incarnation("pod"))
	must(p.t, err)
	must(p.t, h.SetOwnedShards(shards))
	return scoped{p.store, believing{h}}
}

// SW-17, SH-20: sweepers that divide the shards do each row once, and each those of its own shards and no other's; two that see the same shards do each row once, too.
func TestSweepersOfDisjointAndOfEqualShardsDoNothingTwice(t *testing.T) {
	var even, odd, all []int
	for s := range rendezvous.DefaultShards {
		all = append(all, s)
		if s%2 == 0 {
			even = append(even, s)
		} else {
			odd = append(odd, s)
		}
	}
	for name, scopes := range map[string][2][]int{"disjoint": {even, odd}, "equal": {all, all}} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			rows := map[string][]string{sweep.Parked: runs("parked", 400), sweep.Leases: runs("abandoned", 150), sweep.Woken: runs("called", 300)}
			for _, run := range rows[sweep.Parked] {
				p.park(run)
			}
			for _, run := range rows[sweep.Leases] {
				p.start(run)
				p.lease(run, 2*time.Second)
			}
			for _, run := range rows[sweep.Woken] {
				p.start(run)
			}
			p.clock.Advance(15 * time.Second)
			p.sender.take()
			meet := make(chan struct{}, 2)
			met := make(chan struct{})
			var pods [2]*sweeper
			for i := range pods {
				pods[i] = p.sweep(&meeting{Store: p.seen(scopes[i]...), here: meet, all: met}, sweep.Config{})
			}
			go func() { <-meet; <-meet; close(met) }()
			var reports [2]sweep.Report
			ended := make(chan struct{})
			go func() { defer close(ended); reports[0] = pods[0].Tick(context.Background()) }()
			reports[1] = pods[1].Tick(context.Background())
			<-ended
			p.onceEach(rows)
			for pass, of := range rows {
				sum := 0
				for i, r := range reports {
					got, _ := r.Pass(pass)
					sum += got.Done
					if want := inShards(p, of, scopes[i]); name == "disjoint" && (got.Done < want || pass != sweep.Woken && got.Done > want) {
						t.Errorf("%s of pod %d: %+v, want %d done", pass, i, got, want)
					}
				}
				if sum < len(of) || pass != sweep.Woken && sum > len(of) {
					t.Errorf("%s: %d done of %d", pass, sum, len(of))
				}
			}
		})
	}
}

// onceEach fails the test unless each row of the passes was done once.
func (p *plane) onceEach(rows map[string][]string) {
	p.t.Helper()
	called := map[string]int{}
	for _, r := range p.sender.take().Resume {
		if r.Cause == rendezvous.CauseStarted {
			called[r.RunID]++
		}
	}
	for _, run := range rows[sweep.Parked] {
		if n := p.answers(run); n != 1 {
			p.t.Fatalf("%s is answered %d times", run, n)
		}
	}
	for _, run := range rows[sweep.Leases] {
		w, err := p.tenant.DescribeWorkflow(p.t.Context(), store.WorkflowRef{RunID: run})
		must(p.t, err)
		if w.Reclaims != 1 {
			p.t.Fatalf("%s is reclaimed %d times", run, w.Reclaims)
		}
	}
	for _, run := range rows[sweep.Woken] {
		if called[run] != 1 {
			p.t.Fatalf("%s is called for %d times", run, called[run])
		}
	}
}

// inShards counts the runs of some shards.
func inShards(p *plane, of []string, shards []int) (n int) {
	for _, run := range of {
		if slices.Contains(shards, rendezvous.Shard("acme", "w-"+run, p.store.Shards())) {
			n++
		}
	}
	return n
}

// meeting hands leases that ran out to nobody before both sweepers have seen them.
type meeting struct {
	Store
	here chan<- struct{}
	all  <-chan struct{}
	once bool
}

func (m *meeting) DueLeases(ctx context.Context, limit int, cursor string) ([]store.AbandonedRun, string, error) {
	rows, next, err := m.Store.DueLeases(ctx, limit, cursor)
	if !m.once {
		m.once = true
		m.here <- struct{}{}
		<-m.all
	}
	return rows, next, err
}

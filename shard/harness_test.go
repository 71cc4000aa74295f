package shard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/shard"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tick is how far the clock of a world goes at a time.
const tick = 50 * time.Millisecond

// world is a store in memory and the pods of a pool, all on one clock that moves when it is told to.
type world struct {
	t      *testing.T
	clock  *clock.Manual
	store  store.Store
	faults *fault.Backend
	pods   []*pod
	meter  metric.Meter
	deaf   bool     // no notice comes through
	moves  []string // every adoption and every end of work
	born   int
}

func newWorld(t *testing.T, shards int) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), meter: metricnoop.Meter{}}
	w.faults = fault.Wrap(memory.Open(w.clock, shards))
	var err error
	w.store, err = engine.New(w.faults, engine.Options{Clock: w.clock})
	must(t, err)
	t.Cleanup(func() { must(t, w.store.Close()) })
	return w
}

// pod is a member and what it works on.
type pod struct {
	*shard.Member
	w      *world
	name   string
	handle store.PoolHandle
	work   map[int]int64 // shards adopted, to their epochs
	page   chan struct{} // under way, if not nil
	dead   bool          // makes no turn any more
	cut    bool          // the store does not hear it
	refuse func(shard int) error
	slow   func() // before each publishing, if not nil

	mu    sync.Mutex
	log   []string // calls of leases and work
	calls int      // of the store
}

func (p *pod) said(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, text)
}

// join adds pods and lets them make their first round.
func (w *world) join(n int) []*pod {
	w.t.Helper()
	var pods []*pod
	for range n {
		w.born++
		pods = append(pods, w.joinAs(fmt.Sprint("pod", w.born)))
	}
	return pods
}

func (w *world) joinAs(member string) *pod {
	w.t.Helper()
	p := &pod{w: w, name: shard.Incarnation(member), work: map[int]int64{}}
	var err error
	p.handle, err = w.store.PoolHandle(store.PoolTimer, p.name)
	must(w.t, err)
	p.Member, err = shard.New(shard.Deps{
		Leases: leases{p}, Pool: store.PoolTimer, Incarnation: p.name, Work: work{p}, Changed: p.changed, Clock: w.clock, Log: slog.New(slog.DiscardHandler),
		Meter: w.meter,
	}, shard.Config{Address: "host of " + member})
	must(w.t, err)
	must(w.t, p.Start())
	w.pods = append(w.pods, p)
	return p
}

// changed is the notice: the others have a round.
func (p *pod) changed(context.Context) {
	for _, o := range p.w.pods {
		if o != p && !p.w.deaf {
			o.Kick()
		}
	}
}

// run lets d pass, and every pod make its rounds. At no instant do two pods believe in one shard that both work on.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	for range int(d / tick) {
		w.clock.Advance(tick)
		w.turns()
	}
}

// turns lets every pod make the rounds that are due now.
func (w *world) turns() {
	w.t.Helper()
	for _, p := range slices.Clone(w.pods) {
		if !p.dead && p.Turn(w.t.Context()) {
			p.dead = true
			w.pods = slices.DeleteFunc(w.pods, func(o *pod) bool { return o == p })
		}
	}
	owner := map[int]*pod{}
	for _, p := range w.pods {
		for s := range p.work {
			if !p.dead && p.handle.IsCurrentOwner(s) {
				if owner[s] != nil {
					w.t.Fatalf("%s and %s both work on shard %d", owner[s].name, p.name, s)
				}
				owner[s] = p
			}
		}
	}
}

// until runs until it holds, and answers how long that took; longer than most fails the test.
func (w *world) until(most time.Duration, what string, holds func() bool) time.Duration {
	w.t.Helper()
	for d := time.Duration(0); ; d += tick {
		if holds() {
			return d
		}
		if d >= most {
			w.t.Fatalf("not within %s: %s; loads %v", most, what, w.loads())
		}
		w.run(tick)
	}
}

// kill ends a pod without a word.
func (w *world) kill(p *pod) {
	p.dead = true
	w.pods = slices.DeleteFunc(w.pods, func(o *pod) bool { return o == p })
}

// loads are how many shards each pod works on.
func (w *world) loads() []int {
	var loads []int
	for _, p := range w.pods {
		loads = append(loads, len(p.working()))
	}
	return loads
}

// working are the shards that the pod works on and believes in.
func (p *pod) working() []int {
	var shards []int
	for s := range p.work {
		if p.handle.IsCurrentOwner(s) {
			shards = append(shards, s)
		}
	}
	slices.Sort(shards)
	return shards
}

// balanced reports whether every shard is worked on, and loads differ by at most one.
func (w *world) balanced() bool {
	loads := w.loads()
	sum := 0
	for _, n := range loads {
		sum += n
	}
	return sum == w.store.Shards() && slices.Max(loads)-slices.Min(loads) <= 1
}

// quiet fails the test if anything moves for d.
func (w *world) quiet(d time.Duration) {
	w.t.Helper()
	w.moves = nil
	w.run(d)
	if len(w.moves) > 0 {
		w.t.Fatalf("moves with steady membership: %v", w.moves)
	}
	for _, p := range w.pods { // what was lost is not worked on still, and only waits for its fence
		if n := len(p.working()); n != len(p.work) {
			w.t.Fatalf("%s was left with %d shards of which it owns %d", p.name, len(p.work), n)
		}
	}
}

// work notes what a pod is given to work on.
type work struct{ p *pod }

func (k work) Subscribe(_ context.Context, s int) error {
	k.p.said(fmt.Sprint("subscribe ", s))
	if k.p.refuse != nil {
		return k.p.refuse(s)
	}
	return nil
}

func (k work) Adopt(shards []store.ShardEpoch) {
	for _, s := range shards {
		k.p.work[s.Shard] = s.Epoch
		k.p.w.moves = append(k.p.w.moves, fmt.Sprint(k.p.name, " adopts ", s.Shard))
	}
	k.p.said(fmt.Sprint("adopt ", len(shards)))
}

func (k work) Quit(shards []int) <-chan struct{} {
	for _, s := range shards {
		if _, known := k.p.work[s]; known {
			delete(k.p.work, s)
			k.p.w.moves = append(k.p.w.moves, fmt.Sprint(k.p.name, " quits ", s))
		}
	}
	k.p.said(fmt.Sprint("quit ", shards))
	if k.p.page != nil {
		return k.p.page
	}
	over := make(chan struct{})
	close(over)
	return over
}

// leases notes what a pod asks of the store, and loses it where the pod is cut off.
type leases struct{ p *pod }

var errCut = errors.New("no way to the store")

func (l leases) note(format string, args ...any) error {
	l.p.said(fmt.Sprintf(format, args...))
	l.p.mu.Lock()
	l.p.calls++
	l.p.mu.Unlock()
	if l.p.cut {
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "cut off").Because(errCut)
	}
	return nil
}

func (l leases) SetOwnedShards(shards []int) error { return l.p.handle.SetOwnedShards(shards) }

func (l leases) ExtendOwnedShards(shards []int) error {
	l.p.said(fmt.Sprint("extend ", shards))
	return l.p.handle.ExtendOwnedShards(shards)
}

func (l leases) IsCurrentOwner(s int) bool {
	l.p.said(fmt.Sprint("believe ", s))
	return l.p.handle.IsCurrentOwner(s)
}

func (l leases) AcquireOwnedShards(ctx context.Context, shards []int, ttl time.Duration) (store.Acquisition, error) {
	if err := l.note("acquire %v", shards); err != nil {
		return store.Acquisition{}, err
	}
	return l.p.handle.AcquireOwnedShards(ctx, shards, ttl)
}

func (l leases) PublishShardOwner(ctx context.Context, s int, epoch int64, address string) error {
	if err := l.note("publish %d", s); err != nil {
		return err
	}
	if l.p.slow != nil {
		l.p.slow()
	}
	return l.p.handle.PublishShardOwner(ctx, s, epoch, address)
}

func (l leases) RenewOwnedShards(ctx context.Context, shards []store.ShardEpoch, ttl time.Duration, m store.Member) (store.Renewal, error) {
	if err := l.note("renew %v", m.Draining); err != nil {
		return store.Renewal{}, err
	}
	return l.p.handle.RenewOwnedShards(ctx, shards, ttl, m)
}

func (l leases) ReleaseOwnedShards(ctx context.Context, shards []store.ShardEpoch) error {
	if err := l.note("release %v", shards); err != nil {
		return err
	}
	return l.p.handle.ReleaseOwnedShards(ctx, shards)
}

func (l leases) Leave(ctx context.Context) error {
	if err := l.note("leave"); err != nil {
		return err
	}
	return l.p.handle.Leave(ctx)
}

func (w *world) directory() store.Directory {
	w.t.Helper()
	d, err := w.store.ShardDirectory(w.t.Context(), store.PoolTimer)
	must(w.t, err)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

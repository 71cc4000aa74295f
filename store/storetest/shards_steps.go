package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// shardTTL is how long the cases own shards, unless they say otherwise: long enough that no slow machine ends a belief.
const shardTTL = store.MaxShardTTL

// Pod is a pod of the pool of timer-workers under test. Its own verbs fail the test when the store refuses; the handle's, which take a context, leave errors
// to the case.
type Pod struct {
	store.PoolHandle
	T    testing.TB
	H    *Harness
	Name string // its incarnation
}

// Pod is a pod that nobody knows yet.
func (h *Harness) Pod(t testing.TB) *Pod { t.Helper(); return h.PodAs(t, ID("pod")+"/1") }

// PodAs is a pod of that incarnation.
func (h *Harness) PodAs(t testing.TB, incarnation string) *Pod {
	t.Helper()
	return &Pod{must(h.Store.PoolHandle(store.PoolTimer, incarnation))(t, "take a pool's handle"), t, h, incarnation}
}

// podOn is a pod whose process has a clock of its own.
func (h *Harness) podOn(t testing.TB, c clock.Clock) *Pod {
	t.Helper()
	s := must(engine.New(h.Faults, engine.Options{Clock: c}))(t, "open the store in another pod")
	name := ID("pod") + "/1"
	return &Pod{must(s.PoolHandle(store.PoolTimer, name))(t, "take a pool's handle"), t, h, name}
}

// Acquire acquires shards, all of them, and answers the epochs.
func (p *Pod) Acquire(shards ...int) []store.ShardEpoch {
	p.T.Helper()
	a := must(p.AcquireOwnedShards(ctx, shards, shardTTL))(p.T, "acquire shards")
	eq(p.T, "shards lost", a.Lost, nil)
	return epochs(a.Won)
}

// Renew renews shards and the pod's place in the pool.
func (p *Pod) Renew(shards ...store.ShardEpoch) store.Renewal {
	p.T.Helper()
	return must(p.RenewOwnedShards(ctx, shards, shardTTL, store.Member{Address: "host of " + p.Name}))(p.T, "renew shards")
}

// Release releases shards.
func (p *Pod) Release(shards ...store.ShardEpoch) {
	p.T.Helper()
	done(p.T, "release shards", p.ReleaseOwnedShards(ctx, shards))
}

// Sees are the workflows that the pod's enumerations show, by name.
func (p *Pod) Sees() []string {
	p.T.Helper()
	return namesOf(must(p.ListWorkflowIDs(ctx, store.Scope{}, nil, 0))(p.T, "list workflows"))
}

func epochs(leases []store.ShardLease) []store.ShardEpoch {
	var out []store.ShardEpoch
	for _, l := range leases {
		out = append(out, store.ShardEpoch{Shard: l.Shard, Epoch: l.Epoch})
	}
	return out
}

func numbers(leases []store.ShardLease) []int {
	var out []int
	for _, l := range leases {
		out = append(out, l.Shard)
	}
	return out
}

func namesOf(rows []store.WorkflowPosition) []string {
	var names []string
	for _, r := range rows {
		names = append(names, r.Tenant+" "+r.WorkflowID)
	}
	slices.Sort(names)
	return names
}

// Directory is who owns what.
func (h *Harness) Directory(t testing.TB) store.Directory {
	t.Helper()
	return must(h.Store.ShardDirectory(ctx, store.PoolTimer))(t, "ask for the directory")
}

// Shard is a shard's lease.
func (h *Harness) Shard(t testing.TB, shard int) store.ShardLease {
	t.Helper()
	return h.Directory(t).Shards[shard]
}

// unmovedShards fails the test unless call is refused with that code and details, and no lease, no member and no history changed.
func (h *Harness) unmovedShards(t testing.TB, what string, want rendezvous.Code, call func() error, details ...any) {
	t.Helper()
	before := h.Directory(t)
	h.Counting.Reset()
	code(t, what, call(), want, details...)
	eq(t, "writes of "+what, h.Counting.Counts().Writes, int64(0))
	eq(t, "the directory after "+what, h.Directory(t), before)
}

// spread starts a workflow in each of those shards and answers their names, by shard.
func (f *Fix) spread(shards ...int) []string {
	f.T.Helper()
	names := make([]string, len(shards))
	for i, s := range shards {
		names[i] = f.Name() + " " + f.startIn(s).WorkflowID
	}
	return names
}

// startIn starts a workflow whose shard is that one.
func (f *Fix) startIn(shard int) *Flow {
	f.T.Helper()
	for {
		if id := ID("workflow"); rendezvous.Shard(f.Name(), id, f.H.Store.Shards()) == shard {
			return f.StartAs(store.Start{WorkflowID: id, RunID: ID("run"), Type: "order"})
		}
	}
}

// sorted is a list in order.
func sorted(names ...[]string) []string {
	all := slices.Concat(names...)
	slices.Sort(all)
	return all
}

// leaseOf is a shard's lease as its owner is answered it.
func leaseOf(p *Pod, shard int, epoch int64, at time.Time, ttl time.Duration) store.ShardLease {
	return store.ShardLease{Shard: shard, Owner: p.Name, Epoch: epoch, Remaining: ttl, ExpiresAt: at.Add(ttl)}
}

// arm arms an author's timer of the run.
func (r *Flow) arm(timer string, at time.Time) store.Armed {
	r.F.T.Helper()
	return must(r.F.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: timer, FireAt: at, BatchID: ID("batch")}, now))(r.F.T, "arm "+timer)
}

// fires counts how often the workflow's timers fired.
func (r *Flow) fires() int {
	r.F.T.Helper()
	n := 0
	for _, k := range r.Kinds() {
		if k == rendezvous.TimerFired {
			n++
		}
	}
	return n
}

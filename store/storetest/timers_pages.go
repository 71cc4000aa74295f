package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

func flood(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	var flows []*Flow
	most := min(100*h.Rounds(t), 100_000)
	total := 0
	for total < most {
		for _, f := range h.Two(t) {
			r := f.Start()
			r.AppendFree(r.arms("t", 250, h.Now(t))...)
			total += 250
			flows = append(flows, r)
		}
	}
	seen, served := 0, map[int]int{}
	for pages := 0; ; pages++ {
		page := p.Page(t, 100)
		if len(page.Fires) > 100 {
			t.Fatalf("a page of %d", len(page.Fires))
		}
		for _, x := range page.Fires {
			eq(t, "outcome", x.Outcome, store.FireFired)
			served[x.Shard]++
		}
		seen += len(page.Fires)
		eq(t, "more is due", page.Full, seen < total)
		if !page.Full {
			break
		}
	}
	eq(t, "fires", seen, total)
	for _, r := range flows {
		eq(t, "live timers", r.Describe().LiveTimers, 0)
		fired := map[string]int{}
		for _, rec := range r.History() {
			if rec.Kind == rendezvous.TimerFired {
				var d rendezvous.TimerFiredData
				done(t, "decode", rendezvous.DecodeData(rec, &d))
				fired[d.TimerID]++
			}
		}
		eq(t, "timers fired", len(fired), 250)
		eq(t, "head", r.Head(), int64(1+250+250))
	}
	h.noRows(t)
}

func pagesByRows(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	long := f.Start()
	for range 3 {
		long.AppendFree(long.arms("over", 250, h.Now(t))...)
		p.Fire(t)
	}
	long.Arm("future", endOfTime)
	due := f.Start()
	due.ArmIn("due", 0)
	p.Own(t)
	h.Counting.Reset()
	page := must(p.FireDueTimers(ctx, p.Owned, 0))(t, "fire")
	one(t, "page", page.Fires, store.FireFired)
	got := h.Counting.Counts()
	eq(t, "histories read", got.Histories, int64(0))
	quiet := h.Steps(t, "", func() { must(p.FireDueTimers(ctx, p.Owned, 0))(t, "fire") })
	for range 4 {
		more := f.Start()
		more.AppendFree(more.arms("more", 100, endOfTime)...)
	}
	eq(t, "steps of a page with nothing due", h.Steps(t, "", func() { must(p.FireDueTimers(ctx, p.Owned, 0))(t, "fire") }), quiet)
	steps := func(n int) int {
		for range n {
			s := f.Start()
			s.ArmIn("a", 0)
			s.WaitsUntil(h.In(t, time.Microsecond), "w", "paid", K("order", s.ID))
		}
		h.Advance(time.Second)
		return h.Steps(t, "fire_due_timers", func() {
			eq(t, "fires", len(must(p.FireDueTimers(ctx, p.Owned, 0))(t, "fire").Fires), 2*n)
		})
	}
	small := steps(3)
	if large := steps(40); large > small {
		t.Errorf("a page of 6 takes %d steps, one of 80 takes %d: want a fixed handful", small, large)
	}
	h.Counting.Reset()
	eq(t, "a quiet page", len(must(p.FireDueTimers(ctx, p.Owned, 0))(t, "fire").Fires), 0)
	eq(t, "writes of a quiet page", h.Counting.Counts().Writes, int64(0))
}

func firedInOrder(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	start := h.Now(t)
	sec := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	r.AppendFree(r.TimedAt("z", sec(1)), r.TimedAt("c", sec(2)), r.TimedAt("b", sec(2)), r.TimedAt("d", sec(3)), r.TimedAt("a", sec(2)))
	r.WaitsUntil(sec(2), "w", "paid", K("order", "1"))
	r.Arm("e", sec(1))
	r.Arm("c", sec(2)) // anew: behind all that were armed for this instant before
	h.Advance(time.Minute)
	eq(t, "order", idsOf(p.Fire(t)), []string{"z", "e", "b", "a", rendezvous.WaitTimerID(r.ID, "w"), "c", "d"})
	var got []string
	for _, rec := range r.History() {
		switch rec.Kind {
		case rendezvous.WaitTimedOut:
			got = append(got, rec.Effect)
		case rendezvous.TimerFired:
			var d rendezvous.TimerFiredData
			done(t, "decode", rendezvous.DecodeData(rec, &d))
			got = append(got, d.TimerID)
		}
	}
	eq(t, "records", got, []string{"z", "e", "b", "a", "w", "c", "d"})
}

func firedWithinFence(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	var flows []*Flow
	for len(flows) < 3 {
		r := f.Start()
		if !slices.ContainsFunc(flows, func(o *Flow) bool { return p.shardOf(o)[0] == p.shardOf(r)[0] }) {
			flows = append(flows, r)
			r.ArmIn("t", 0)
		}
	}
	h.Advance(time.Second)
	mine, stale, invented := p.epochs(flows[0])[0], p.epochs(flows[1])[0], p.epochs(flows[2])[0]
	done(t, "release", p.ReleaseOwnedShards(ctx, []store.ShardEpoch{stale}))
	other := must(h.Store.PoolHandle(store.PoolTimer, ID("pod")+"/1"))(t, "take another handle")
	must(other.AcquireOwnedShard(ctx, stale.Shard, store.MaxShardTTL))(t, "take over")
	invented.Epoch += 7
	page := must(p.FireDueTimers(ctx, []store.ShardEpoch{mine, stale, invented, mine}, 0))(t, "fire")
	x := one(t, "the shard that passes", page.Fires, store.FireFired)
	eq(t, "its run", x.WorkflowID, flows[0].WorkflowID)
	want := []int{stale.Shard, invented.Shard}
	slices.Sort(want)
	eq(t, "lost", page.Lost, want)
	for _, r := range flows[1:] {
		eq(t, "firings", len(r.fired("t")), 0)
		eq(t, "row", r.Timer("t") != nil, true)
	}
	for what, shards := range map[string][]store.ShardEpoch{
		"only lost ones": {stale, invented}, "epoch 0": {{Shard: mine.Shard}}, "a negative epoch": {{Shard: mine.Shard, Epoch: -1}},
	} {
		_, err := p.FireDueTimers(ctx, shards, 0)
		code(t, what, err, rendezvous.CodeFenced)
		_, err = p.ClaimDueTimers(ctx, shards, 0, 0)
		code(t, what+" to claim", err, rendezvous.CodeFenced)
		_, err = p.ReconcileTimers(ctx, shards, true, nil, 0)
		code(t, what+" to reconcile", err, rendezvous.CodeFenced)
	}
	for what, shards := range map[string][]store.ShardEpoch{
		"none": nil, "below 0": {{Shard: -1, Epoch: 1}}, "beyond N": {mine, {Shard: rendezvous.DefaultShards, Epoch: 1}},
	} {
		_, err := p.FireDueTimers(ctx, shards, 0)
		code(t, "shards: "+what, err, rendezvous.CodeInvalid)
	}
	flows[0].ArmIn("u", 0)
	sweep := must(h.Store.PoolHandle(store.PoolSweep, ID("pod")+"/1"))(t, "take a handle of the sweepers")
	lease := must(sweep.AcquireOwnedShard(ctx, mine.Shard, store.MaxShardTTL))(t, "acquire in the other pool")
	_, err := sweep.FireDueTimers(ctx, []store.ShardEpoch{{Shard: mine.Shard, Epoch: lease.Epoch}}, 0)
	code(t, "another pool's handle", err, rendezvous.CodeInvalid)
	h.Advance(store.MaxShardTTL) // and so ends every lease
	_, err = p.FireDueTimers(ctx, []store.ShardEpoch{mine}, 0)
	code(t, "an expired lease", err, rendezvous.CodeFenced)
	eq(t, "firings", len(flows[0].fired("u")), 0)
}

func twoPods(t *testing.T, h *Harness) {
	p, q := h.TimerPod(t), h.TimerPod(t)
	eq(t, "shards of the second", len(q.Owned), 0)
	var flows []*Flow
	for _, f := range h.Two(t) {
		for range 20 {
			r := f.Start()
			r.ArmIn("t", 0)
			flows = append(flows, r)
		}
	}
	_, err := q.FireDueTimers(ctx, p.Owned, 0) // it thinks that it owns them
	code(t, "the one that does not own them", err, rendezvous.CodeFenced)
	half := p.Owned[:len(p.Owned)/2]
	done(t, "release half", p.ReleaseOwnedShards(ctx, half))
	for _, s := range half {
		l := must(q.AcquireOwnedShard(ctx, s.Shard, store.MaxShardTTL))(t, "acquire")
		q.Owned = append(q.Owned, store.ShardEpoch{Shard: s.Shard, Epoch: l.Epoch})
	}
	var first, second store.FiredPage
	var errs [2]error
	Race(t,
		func() { first, errs[0] = p.FireDueTimers(ctx, p.Owned, 0) },
		func() { second, errs[1] = q.FireDueTimers(ctx, q.Owned, 0) },
	)
	done(t, "the first pod's page", errs[0])
	done(t, "the second pod's page", errs[1])
	eq(t, "fires of both", len(first.Fires)+len(second.Fires), len(flows))
	for _, x := range first.Fires {
		if slices.ContainsFunc(half, func(s store.ShardEpoch) bool { return s.Shard == x.Shard }) {
			t.Errorf("the first pod fired in shard %d, which it gave up", x.Shard)
		}
	}
	for _, r := range flows {
		eq(t, "firings", len(r.fired("t")), 1)
	}
}

func nextDue(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	shard := p.shardOf(r)[0]
	next := func() time.Time {
		t.Helper()
		got := must(p.NextDue(ctx, []int{shard}))(t, "next due")
		eq(t, "the store's now", got.Now, h.Now(t))
		return got.NextDue[shard]
	}
	eq(t, "of an empty shard", next(), time.Time{})
	late, soon := h.In(t, time.Hour), h.In(t, time.Minute)
	r.Arm("late", late)
	eq(t, "one", next(), late)
	r.Arm("soon", soon)
	eq(t, "the earlier one", next(), soon)
	other := f.Start()
	for p.shardOf(other)[0] == shard {
		other = f.Start()
	}
	last := h.In(t, 2*time.Hour)
	other.Arm("o", last)
	eq(t, "of all shards", must(p.NextDue(ctx, nil))(t, "next due").NextDue, map[int]time.Time{shard: soon, p.shardOf(other)[0]: last})
	eq(t, "of the store", must(h.Store.NextDue(ctx, []int{shard, shard}))(t, "next due").NextDue, map[int]time.Time{shard: soon})
	r.Arm("soon", late.Add(time.Hour))
	eq(t, "after a re-arming", next(), late)
	r.Arm("soon", soon)
	h.Advance(2 * time.Minute)
	eq(t, "of what is due already", next(), soon)
	p.Own(t)
	held := p.Hold(t, 0)
	eq(t, "held", len(held), 1)
	eq(t, "the end of a hold", next(), held[0].HeldUntil)
	done(t, "release", p.ReleaseTimers(ctx, []int64{held[0].Token}))
	eq(t, "of one given back", next(), soon)
	d := r.Drive()
	one(t, "parked", p.FireOnly(t, r), store.FireParked)
	eq(t, "of a parked one", next(), h.In(t, 25*time.Millisecond))
	d.Suspend()
	eq(t, "when it fired", next(), late)
	_, err := p.NextDue(ctx, []int{rendezvous.DefaultShards})
	code(t, "a shard that is none", err, rendezvous.CodeInvalid)
	done(t, "own one", p.SetOwnedShards(p.shardOf(other)))
	eq(t, "of all that is owned", must(p.NextDue(ctx, nil))(t, "next due").NextDue, map[int]time.Time{p.shardOf(other)[0]: last})
	done(t, "own nothing", p.SetOwnedShards([]int{}))
	eq(t, "of nothing owned", len(must(p.NextDue(ctx, nil))(t, "next due").NextDue), 0)
	_, err = p.NextDue(ctx, []int{shard})
	code(t, "a shard outside the scope", err, rendezvous.CodeFenced)
}

func firedLinks(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	trace := rendezvous.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "a=b"}
	must(f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: h.In(t, time.Second), BatchID: ID("batch"), Trace: trace}, now))(t, "arm")
	h.Advance(time.Second)
	page := p.Page(t, 0)
	x := one(t, "page", page.Fires, store.FireFired)
	eq(t, "context of the arming", x.Trace, trace)
	eq(t, "links of the notice", r.resumeOf(page.Notices.Resume).Links, []rendezvous.Trace{trace})
	w := r.Until(h.In(t, time.Second), "w", "paid", K("order", "1"))
	w.Trace = trace
	r.Register(w)
	h.Advance(time.Second)
	x = one(t, "page", p.Page(t, 0).Fires, store.FireFired)
	eq(t, "context of the registration", x.Trace, trace)
}

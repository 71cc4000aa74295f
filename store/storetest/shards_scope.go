package storetest

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// shardsScope is shards.md section 6, slices and scopes.
var shardsScope = []Case{
	{Name: "SH-1 the shard function gives the fixed vectors, and a workflow stays in its shard", Run: shardVectors},
	{Name: "SH-3 own-all is the start value, a scope limits every enumeration, none restores own-all, an empty list owns nothing", Run: scopes},
	{Name: "SH-3 a scope limits what workers are handed: parked waits, woken and abandoned runs", Run: scopedWork},
	{Name: "SH-4 extending adds and never narrows, and changes nothing on own-all", Run: extensions},
	{Name: "SH-5 client reads, queries and appends ignore the scope", Run: clientsIgnoreScopes},
	{Name: "SH-12 a shard lost in a renewal leaves the scope before the verb returns", Run: lostLeavesScope},
	{Name: "SH-13 a release shrinks the scope first, also when the store is away", Run: releaseShrinksScope},
	{Name: "HI-28 a narrowing shard outside the scope is fenced, one out of range invalid", Run: narrowed},
	{Name: "SH-20 two pods with disjoint scopes handle every due row once", Run: disjointScopes},
	{Name: "SH-20 of two pods with equal scopes the fence lets one work", Run: equalScopes},
	{Name: "SH-28 a single process owns all and starts without waiting", Run: singleProcess},
	{Name: "SH-30 writes back to back on a shard delay none of its owner's renewals", Run: renewalsBetweenPages},
	{Name: "SH-30 a takeover waits for the write under way", Run: takeoverWaits},
}

func shardVectors(t *testing.T, h *Harness) {
	for _, v := range []struct {
		tenant, id string
		want       int
	}{{"default", "order-4711", 58}, {"default", "order-4712", 7}, {"acme", "order-4711", 53}, {"default", "größe/1", 3}} {
		eq(t, "shard of "+v.tenant+" "+v.id, rendezvous.Shard(v.tenant, v.id, 64), v.want)
		if h.Store.Shards() != 64 {
			t.Fatalf("the store has %d shards, the vectors are for 64", h.Store.Shards())
		}
		f := h.FixOf(t, v.tenant)
		r := f.StartAs(store.Start{WorkflowID: v.id, RunID: ID("run"), Type: "order"})
		r = r.Continue()
		r.Waits("w", "paid", K("order", "1"))
		r.arm("t", h.Now(t).Add(time.Hour))
		want := store.WorkflowHead{
			WorkflowPosition: store.WorkflowPosition{Shard: v.want, Tenant: v.tenant, WorkflowID: v.id}, Head: r.Head(), Status: rendezvous.StatusRunning,
		}
		eq(t, "the workflow's head", must(h.Store.StreamHeads(ctx, store.Scope{Shards: []int{v.want}}, nil, 0))(t, "stream heads"), []store.WorkflowHead{want})
		var shards []int
		for _, timer := range must(h.Store.ExpiredTimers(ctx, h.Now(t).Add(time.Hour), store.Scope{Shards: []int{v.want}, Tenant: v.tenant}, nil, 0))(t, "list timers") {
			eq(t, "workflow of the timer", timer.WorkflowID, v.id)
			shards = append(shards, timer.Shard)
		}
		eq(t, "shards of the timers", shards, []int{v.want})
	}
}

func disjointScopes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const count = 8
	var flows []*Flow
	for s := range count {
		for range 3 {
			flows = append(flows, f.startIn(s))
		}
	}
	var pods [2]*Pod
	var owned [2][]store.ShardEpoch
	for i := range pods {
		pods[i] = h.Pod(t)
		var half []int
		for s := i; s < count; s += 2 {
			half = append(half, s)
		}
		done(t, "own a half", pods[i].SetOwnedShards(half))
		owned[i] = pods[i].Acquire(half...)
	}
	rounds := max(h.Rounds(t)/10, 5)
	for round := range rounds {
		for _, r := range flows {
			r.arm(fmt.Sprint("t", round), h.Now(t))
		}
		var errs [2]error
		fired := [2]int{}
		var fns []func()
		for i, p := range pods {
			fns = append(fns, func() {
				for fired[i] < len(flows)/2 && errs[i] == nil {
					var page store.FiredPage
					page, errs[i] = p.FireDueTimers(ctx, owned[i], 5)
					fired[i] += len(page.Fires)
				}
			})
		}
		Race(t, fns...)
		done(t, "fire", cmp.Or(errs[0], errs[1]))
		eq(t, "fired by each", fired, [2]int{len(flows) / 2, len(flows) / 2})
	}
	for _, r := range flows {
		eq(t, "fires of "+r.WorkflowID, r.fires(), rounds)
	}
}

// walks are the enumerations of workflows, each as the names it shows under a scope.
func (p *Pod) walks(s store.Scope) map[string]func() ([]string, error) {
	heads := func(fn func(store.Scope) ([]store.WorkflowHead, error)) func() ([]string, error) {
		return func() ([]string, error) {
			rows, err := fn(s)
			var names []store.WorkflowPosition
			for _, r := range rows {
				names = append(names, r.WorkflowPosition)
			}
			return namesOf(names), err
		}
	}
	return map[string]func() ([]string, error){
		"ListWorkflowIDs": func() ([]string, error) { rows, err := p.ListWorkflowIDs(ctx, s, nil, 0); return namesOf(rows), err },
		"StreamHeads":     heads(func(s store.Scope) ([]store.WorkflowHead, error) { return p.StreamHeads(ctx, s, nil, 0) }),
		"ListActive":      heads(func(s store.Scope) ([]store.WorkflowHead, error) { return p.ListActive(ctx, s, nil, 0) }),
	}
}

// wantSeen fails the test unless every enumeration shows exactly those running workflows.
func (p *Pod) wantSeen(what string, want []string) {
	p.T.Helper()
	for verb, walk := range p.walks(store.Scope{}) {
		eq(p.T, verb+" "+what, must(walk())(p.T, verb), sorted(want))
	}
}

func scopes(t *testing.T, h *Harness) {
	names := h.Fix(t).spread(1, 2, 3)
	a, other := h.Pod(t), h.Pod(t)
	a.wantSeen("at the start", names)
	done(t, "own 1 and 3", a.SetOwnedShards([]int{3, 1, 3}))
	a.wantSeen("of 1 and 3", []string{names[0], names[2]})
	done(t, "own 2", a.SetOwnedShards([]int{2}))
	a.wantSeen("of 2", names[1:2])
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	a.wantSeen("of an empty list", nil)
	done(t, "own all", a.SetOwnedShards(nil))
	a.wantSeen("of none", names)
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	other.wantSeen("of another handle", names)
	h.Counting.Reset()
	done(t, "own 1", a.SetOwnedShards([]int{1}))
	done(t, "own 2 too", a.ExtendOwnedShards([]int{2}))
	eq(t, "I/O of setting a scope", h.Counting.Counts(), Counts{})
	eq(t, "leases", h.Directory(t).Shards[1], store.ShardLease{Shard: 1})
}

func scopedWork(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var flows [4]*Flow
	for s := range flows {
		flows[s] = f.startIn(s)
		flows[s].Waits("free", "paid", K("free", flows[s].ID))
		f.Send(EventOf("paid", K("free", flows[s].ID)))
		left := f.startIn(s)
		left.Drive().Parked("parked")
	}
	h.Advance(leaseEnd)
	a := h.Pod(t)
	shardsOf := func(of string, ids []string) []int {
		var shards []int
		for _, id := range ids {
			shards = append(shards, rendezvous.Shard(of, id, h.Store.Shards()))
		}
		slices.Sort(shards)
		return shards
	}
	handed := func() (got [4][]int) {
		t.Helper()
		var ids [4][]string
		rows, next, err := a.AbandonedRuns(ctx, 0, "")
		done(t, "list abandoned runs", err)
		eq(t, "cursor", next, "")
		for _, r := range rows {
			ids[0] = append(ids[0], r.WorkflowID)
		}
		rows, next, err = a.DueLeases(ctx, 0, "")
		done(t, "list leases that ran out", err)
		eq(t, "cursor", next, "")
		for _, r := range rows {
			ids[1] = append(ids[1], r.WorkflowID)
		}
		for _, r := range must(a.TakeParked(ctx, 0, time.Hour/20))(t, "take parked waits").Rows {
			ids[2] = append(ids[2], r.WorkflowID)
		}
		for _, r := range must(a.TakeWoken(ctx, 0))(t, "take woken runs").Rows {
			ids[3] = append(ids[3], r.WorkflowID)
		}
		for i := range ids {
			got[i] = shardsOf(f.Name(), ids[i])
		}
		return got
	}
	each := func(shards ...int) [4][]int { return [4][]int{shards, shards, shards, shards} }
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	eq(t, "handed to a pod that owns nothing", handed(), each())
	done(t, "own 2", a.SetOwnedShards([]int{2}))
	eq(t, "handed to the owner of 2", handed(), each(2))
	done(t, "own 3, too", a.ExtendOwnedShards([]int{3}))
	eq(t, "handed to the owner of 2 and 3", handed(), [4][]int{{2, 3}, {2, 3}, {3}, {3}}) // what was taken is in somebody's hands
	done(t, "own all", a.SetOwnedShards(nil))
	eq(t, "handed to who owns all", handed(), [4][]int{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1}, {0, 1}})
}

func extensions(t *testing.T, h *Harness) {
	names := h.Fix(t).spread(1, 2, 3)
	a := h.Pod(t)
	done(t, "extend own-all", a.ExtendOwnedShards([]int{1}))
	a.wantSeen("of own-all", names)
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	done(t, "extend by nothing", a.ExtendOwnedShards(nil))
	a.wantSeen("of an empty list, extended by nothing", nil)
	done(t, "extend", a.ExtendOwnedShards([]int{2, 2}))
	a.wantSeen("of 2", names[1:2])
	done(t, "extend", a.ExtendOwnedShards([]int{1, 2, 1}))
	a.wantSeen("of 1 and 2", names[:2])
	done(t, "extend by nothing", a.ExtendOwnedShards([]int{}))
	for _, bad := range []int{-1, h.Store.Shards()} {
		code(t, "extend out of range", a.ExtendOwnedShards([]int{3, bad}), rendezvous.CodeInvalid, "field", "shard", "value", bad)
		code(t, "own out of range", a.SetOwnedShards([]int{3, bad}), rendezvous.CodeInvalid, "field", "shard", "value", bad)
	}
	a.wantSeen("of 1 and 2", names[:2])
}

func clientsIgnoreScopes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	a := h.Pod(t)
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	r := f.startIn(5)
	r.AppendFree(r.Noted("n"))
	r.Waits("w", "paid", K("order", "1"))
	e := EventOf("paid", K("order", "1"))
	f.Send(e)
	r.WantAnswer("w", e)
	eq(t, "listed", len(f.query(store.WorkflowFilter{}, 0)), 1)
	eq(t, "described", r.Describe().Head, int64(4))
	eq(t, "seen by the pod", a.Sees(), nil)
	eq(t, "seen plane-wide", len(must(h.Store.ListWorkflowIDs(ctx, store.Scope{}, nil, 0))(t, "list workflows")), 1)
}

func lostLeavesScope(t *testing.T, h *Harness) {
	names := h.Fix(t).spread(1, 2, 3)
	a, b := h.Pod(t), h.Pod(t)
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	owned := a.Acquire(1, 2, 3)
	done(t, "extend", a.ExtendOwnedShards([]int{1, 2, 3}))
	a.wantSeen("of what it acquired", names)
	h.Advance(shardTTL)
	b.Acquire(2)
	a.Acquire(3)
	a.wantSeen("before it knows", names) // a scope may be wrong, a fence is not
	a.Renew(owned[0], owned[1], store.ShardEpoch{Shard: 3, Epoch: 2})
	a.wantSeen("of what it still owns", names[2:])

	all := h.Pod(t)
	all.Renew(owned...)
	all.wantSeen("of own-all", names)
}

func releaseShrinksScope(t *testing.T, h *Harness) {
	names := h.Fix(t).spread(1, 2)
	a := h.Pod(t)
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	owned := a.Acquire(1, 2)
	done(t, "extend", a.ExtendOwnedShards([]int{1, 2}))
	h.Faults.Arm(fault.Failure{Verb: "release_shards", Point: fault.BeforeCommit})
	if a.ReleaseOwnedShards(ctx, owned[:1]) == nil {
		t.Fatal("the release went through")
	}
	a.wantSeen("after a release that failed", names[1:])
	eq(t, "owner of what was not released", h.Shard(t, 1).Owner, a.Name)
	a.Release(owned...)
	a.wantSeen("after a release", nil)
}

func narrowed(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	names := f.spread(1, 2, 3)
	theirs := g.spread(2)
	a := h.Pod(t)
	for _, c := range []struct {
		owned, asked []int
		tenant       string
		want         []string
	}{
		{nil, []int{2}, "", []string{names[1], theirs[0]}},
		{nil, []int{2, 1, 2}, "acme", names[:2]},
		{nil, nil, "globex", theirs},
		{nil, []int{}, "", nil},
		{[]int{1, 2}, []int{2}, "", []string{names[1], theirs[0]}},
		{[]int{1, 2}, []int{1, 2}, "acme", names[:2]},
		{[]int{1, 2}, nil, "acme", names[:2]},
		{[]int{1, 2}, []int{}, "", nil},
		{[]int{}, nil, "", nil},
		{[]int{}, []int{}, "", nil},
		{nil, []int{9}, "", nil},
		{nil, nil, "nobody", nil},
	} {
		done(t, "own", a.SetOwnedShards(c.owned))
		for verb, walk := range a.walks(store.Scope{Shards: c.asked, Tenant: c.tenant}) {
			eq(t, fmt.Sprintf("%s of %v %s under %v", verb, c.asked, c.tenant, c.owned), must(walk())(t, verb), sorted(c.want))
		}
	}
	done(t, "own 1 and 2", a.SetOwnedShards([]int{1, 2}))
	refused := func(what string, shards []int, want rendezvous.Code, details ...any) {
		t.Helper()
		s := store.Scope{Shards: shards}
		for verb, walk := range a.walks(s) {
			_, err := walk()
			code(t, verb+" of "+what, err, want, details...)
		}
		_, err := a.ListPaused(ctx, s, nil, 0)
		code(t, "ListPaused of "+what, err, want, details...)
		_, err = a.ExpiredTimers(ctx, h.Now(t), s, nil, 0)
		code(t, "ExpiredTimers of "+what, err, want, details...)
		_, err = a.NextDue(ctx, shards)
		code(t, "NextDue of "+what, err, want, details...)
	}
	refused("a shard outside the scope", []int{1, 3}, rendezvous.CodeFenced, "shard", 3)
	for _, bad := range []int{-1, h.Store.Shards()} {
		refused("a shard there is not", []int{1, bad}, rendezvous.CodeInvalid, "field", "shard", "value", bad)
	}
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	refused("a shard under an empty scope", []int{1}, rendezvous.CodeFenced, "shard", 1)
	_, err := a.ListActive(ctx, store.Scope{Tenant: "no tenant"}, nil, 0)
	code(t, "no tenant's name", err, rendezvous.CodeInvalid, "field", "tenant")
	_, err = a.ListActive(ctx, store.Scope{}, &store.WorkflowPosition{Shard: -1, Tenant: "acme", WorkflowID: "w"}, 0)
	code(t, "a position there is not", err, rendezvous.CodeInvalid, "field", "shard")
}

func equalScopes(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	for _, p := range []*Pod{a, b} {
		done(t, "own 1", p.SetOwnedShards([]int{1}))
	}
	r := h.Fix(t).startIn(1)
	r.arm("t", h.Now(t))
	s := a.Acquire(1)[0]
	for _, p := range []*Pod{a, b} {
		eq(t, "due timers that it sees", len(must(p.ExpiredTimers(ctx, h.Now(t), store.Scope{}, nil, 0))(t, "list timers")), 1)
		eq(t, "when it sees them due", must(p.NextDue(ctx, nil))(t, "ask when").NextDue, map[int]time.Time{1: h.Now(t)})
	}
	for verb, call := range b.fencedVerbs(s) {
		code(t, verb+" by the other", call(), rendezvous.CodeFenced, "shard", 1, "epoch", s.Epoch)
	}
	eq(t, "fired by the other", r.fires(), 0)
	eq(t, "fired by the owner", len(must(a.FireDueTimers(ctx, []store.ShardEpoch{s}, 0))(t, "fire").Fires), 1)
	eq(t, "fired in all", r.fires(), 1)
}

func singleProcess(t *testing.T, h *Harness) {
	names := h.Fix(t).spread(0, 1, h.Store.Shards()-1)
	a := h.Pod(t)
	a.wantSeen("without any acquire", names)
	var all []int
	for s := range h.Store.Shards() {
		all = append(all, s)
	}
	eq(t, "shards that one process takes at once", len(a.Acquire(all...)), h.Store.Shards())
	eq(t, "believes in the last", a.IsCurrentOwner(h.Store.Shards()-1), true)
}

func renewalsBetweenPages(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.startIn(1)
	a := h.Pod(t)
	s := a.Acquire(1)
	for i := range 500 {
		r.arm(fmt.Sprint("t", i), h.Now(t))
	}
	var stop atomic.Bool
	var failed error
	Race(t, func() {
		for !stop.Load() && failed == nil {
			_, failed = a.FireDueTimers(ctx, s, 1)
		}
	}, func() {
		defer stop.Store(true)
		for round := range 10 + h.Rounds(t) {
			r, err := a.RenewOwnedShards(ctx, s, shardTTL, store.Member{})
			if err != nil || len(r.Held) != 1 || r.Held[0].Remaining != shardTTL {
				t.Errorf("renewal %d: %+v, %v", round, r.Held, err)
			}
		}
	})
	done(t, "a page", failed)
	eq(t, "the lease", h.Shard(t, 1).Epoch, s[0].Epoch)
}

func takeoverWaits(t *testing.T, h *Harness) {
	for verb, write := range map[string]func(p *Pod, s store.ShardEpoch) error{
		"publish_shard":   func(p *Pod, s store.ShardEpoch) error { return p.fencedVerbs(s)["publishing"]() },
		"fire_due_timers": func(p *Pod, s store.ShardEpoch) error { return p.fencedVerbs(s)["firing"]() },
	} {
		h.Fix(t).startIn(1).arm("t", h.Now(t))
		a, b := h.Pod(t), h.Pod(t)
		s := must(a.AcquireOwnedShard(ctx, 1, time.Second))(t, "acquire")
		var asks, over atomic.Bool
		inside, leave := make(chan struct{}), make(chan struct{})
		h.Faults.Arm(fault.Failure{Verb: verb, Point: fault.BeforeCommit, Do: func(context.Context) error {
			h.Advance(time.Second) // the lease ends under the write, which had passed its fence
			close(inside)
			<-leave
			return nil
		}})
		h.Faults.Arm(fault.Failure{Verb: "acquire_shards", Point: fault.AtCall, Call: 1, Do: func(context.Context) error { asks.Store(true); return nil }})
		var writeErr, acquireErr error
		var early bool
		Race(t, func() {
			writeErr = write(a, store.ShardEpoch{Shard: 1, Epoch: s.Epoch})
		}, func() {
			<-inside
			_, acquireErr = b.AcquireOwnedShard(ctx, 1, time.Second)
			early = !over.Load()
		}, func() {
			<-inside
			for i := 0; i < 100_000 && !asks.Load(); i++ { // a store with one writer does not let it ask before
				runtime.Gosched()
			}
			for range 10_000 {
				runtime.Gosched()
			}
			over.Store(true)
			close(leave)
		})
		done(t, verb, writeErr)
		done(t, "acquire", acquireErr)
		eq(t, "the takeover came in the middle of "+verb, early, false)
		eq(t, "owner and address", fmt.Sprint(h.Shard(t, 1).Owner, h.Shard(t, 1).Address), fmt.Sprint(b.Name, ""))
		h.Faults.Disarm()
		h.Advance(time.Second)
	}
}

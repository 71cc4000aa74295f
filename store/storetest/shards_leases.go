package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// shardsLeases is shards.md section 6, leases, fences and beliefs.
var shardsLeases = []Case{
	{Name: "SH-6 the first epoch of a shard is 1, each later one is one higher, whoever acquires", Run: shardEpochsRise},
	{Name: "SH-7 a live lease is not taken, up to its last microsecond", Run: liveShardIsHeld},
	{Name: "SH-8 an expired lease is taken, and its former owner's renewal names the new one", Run: expiredShard},
	{Name: "SH-9 the same incarnation gets the same epoch again, another life of the member does not", Run: acquireShardAgain},
	{Name: "SH-9 an acquisition whose reply was lost is asked for again", Run: acquireShardUnknown},
	{Name: "SH-10 of many shards only those held elsewhere are lost, with their owners", Run: acquireMany},
	{Name: "SH-11 a ttl outside its bounds is refused and consumes no epoch", Run: shardTTLBounds},
	{Name: "SH-12 a renewal keeps the epoch, extends only own live leases, and revives none", Run: shardRenewals},
	{Name: "SH-13 a release, also a second or a late one, frees only the releaser's lease", Run: shardReleases},
	{Name: "SH-14 a stale, an invented, an expired and a released epoch are fenced and write nothing", Run: shardFences},
	{Name: "SH-15 a pod believes from the start of its last acquisition or renewal, for the ttl less 300 ms", Run: beliefs},
	{Name: "SH-15 the belief ends with a release, a fence and a lost renewal", Run: beliefsEnd},
	{Name: "SH-16 the directory names who published, for every pod; again is nothing; deposed is fenced", Run: publishes},
	{Name: "SH-18 deposed at acquire or publish: the scope stays as it was, other shards go on", Run: deposed},
	{Name: "SH-25 a pod that the store does not hear stops believing before the lease ends", Run: partitioned},
	{Name: "SH-6 of acquirers at once exactly one wins, of a new shard and of an expired one", Run: shardAcquirersAtOnce},
	{Name: "SH-28 names, addresses, pools and shards at the door", Run: shardDoors},
	{Name: "SH-28 members come with their first renewal, and go by silence and by leaving", Run: members},
	{Name: "SH-22 a member that drains acquires nothing any more", Run: drainingMember},
}

func shardEpochsRise(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	eq(t, "epoch of a shard that nobody had", h.Shard(t, 5).Epoch, int64(0))
	for i, step := range []struct {
		by  *Pod
		end func(store.ShardEpoch)
	}{
		{a, func(s store.ShardEpoch) { a.Release(s) }},
		{b, func(s store.ShardEpoch) { b.Release(s) }},
		{b, func(store.ShardEpoch) { h.Advance(shardTTL) }},
		{b, func(store.ShardEpoch) { h.Advance(shardTTL) }},
		{a, func(store.ShardEpoch) { h.Advance(shardTTL) }},
		{h.Pod(t), func(store.ShardEpoch) {}},
	} {
		now := h.Now(t)
		l := must(step.by.AcquireOwnedShard(ctx, 5, shardTTL))(t, "acquire")
		eq(t, "the lease", l, leaseOf(step.by, 5, int64(i+1), now, shardTTL))
		eq(t, "the directory's", h.Shard(t, 5), l)
		step.end(store.ShardEpoch{Shard: 5, Epoch: l.Epoch})
		eq(t, "epoch afterwards", h.Shard(t, 5).Epoch, l.Epoch)
	}
	eq(t, "first epoch of another shard", a.Acquire(6), []store.ShardEpoch{{Shard: 6, Epoch: 1}})
	sweeper := must(h.Store.PoolHandle(store.PoolSweep, a.Name))(t, "take the other pool's handle")
	eq(t, "first epoch in the other pool", must(sweeper.AcquireOwnedShard(ctx, 5, shardTTL))(t, "acquire").Epoch, int64(1))
	eq(t, "epoch in the pool", h.Shard(t, 5).Epoch, int64(6))
}

func liveShardIsHeld(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	a.Acquire(0)
	for left := shardTTL; left > 0; left -= 20 * time.Second {
		h.unmovedShards(t, "a live lease", rendezvous.CodeLeaseHeld, func() error { _, err := b.AcquireOwnedShard(ctx, 0, shardTTL); return err },
			"shard", 0, "owner", a.Name, "remaining_ms", left.Milliseconds())
		h.Advance(20 * time.Second)
	}
	h.Advance(-time.Microsecond)
	h.unmovedShards(t, "its last microsecond", rendezvous.CodeLeaseHeld, func() error { _, err := b.AcquireOwnedShard(ctx, 0, shardTTL); return err }, "owner", a.Name)
	h.Advance(time.Microsecond)
	eq(t, "epoch of the next", b.Acquire(0), []store.ShardEpoch{{Shard: 0, Epoch: 2}})
}

func expiredShard(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	owned := a.Acquire(3, 4)
	h.Advance(shardTTL)
	taken := b.Acquire(3)
	r := a.Renew(owned...)
	eq(t, "held", r.Held, nil)
	eq(t, "lost", numbers(r.Lost), []int{3, 4})
	eq(t, "the new owner", r.Lost[0], h.Shard(t, 3))
	eq(t, "its name and epoch", fmt.Sprint(r.Lost[0].Owner, r.Lost[0].Epoch), fmt.Sprint(b.Name, taken[0].Epoch))
	eq(t, "time left of what nobody took", r.Lost[1].Remaining, time.Duration(0))
}

func acquireShardAgain(t *testing.T, h *Harness) {
	member := ID("pod")
	a, reborn := h.PodAs(t, member+"/1"), h.PodAs(t, member+"/2")
	first := must(a.AcquireOwnedShard(ctx, 7, 20*time.Second))(t, "acquire")
	done(t, "publish", a.PublishShardOwner(ctx, 7, 1, "host"))
	h.Advance(10 * time.Second)
	again := must(a.AcquireOwnedShard(ctx, 7, 20*time.Second))(t, "acquire again")
	want := leaseOf(a, 7, first.Epoch, h.Now(t), 20*time.Second)
	want.Serving, want.Address = true, "host"
	eq(t, "the repeat", again, want)
	eq(t, "a repeat for less", must(a.AcquireOwnedShard(ctx, 7, time.Second))(t, "acquire again"), want) // it extends, and never shortens
	h.unmovedShards(t, "another life of the member", rendezvous.CodeLeaseHeld, func() error { _, err := reborn.AcquireOwnedShard(ctx, 7, shardTTL); return err },
		"owner", a.Name)
	h.Advance(20 * time.Second)
	late := must(a.AcquireOwnedShard(ctx, 7, 20*time.Second))(t, "acquire after the end")
	eq(t, "after its end", late, leaseOf(a, 7, 2, h.Now(t), 20*time.Second)) // anew, and so not published
}

func acquireShardUnknown(t *testing.T, h *Harness) {
	a := h.Pod(t)
	h.Faults.Arm(fault.Failure{Verb: "acquire_shards", Point: fault.AfterCommit})
	_, err := a.AcquireOwnedShard(ctx, 1, shardTTL)
	code(t, "the lost reply", err, rendezvous.CodeCommitUnknown)
	eq(t, "believes", a.IsCurrentOwner(1), false)
	eq(t, "epoch of the repeat", a.Acquire(1), []store.ShardEpoch{{Shard: 1, Epoch: 1}})
	eq(t, "believes", a.IsCurrentOwner(1), true)
	h.Faults.Arm(fault.Failure{Verb: "acquire_shards", Point: fault.BeforeCommit})
	_, err = a.AcquireOwnedShard(ctx, 2, shardTTL)
	code(t, "the store away", err, rendezvous.CodeUnavailable)
	eq(t, "believes", a.IsCurrentOwner(2), false)
	eq(t, "epoch of the repeat", a.Acquire(2), []store.ShardEpoch{{Shard: 2, Epoch: 1}})
}

func acquireMany(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	a.Acquire(2)
	h.Advance(time.Second)
	got := must(b.AcquireOwnedShards(ctx, []int{9, 2, 1, 9, 0}, shardTTL))(t, "acquire")
	eq(t, "won", epochs(got.Won), []store.ShardEpoch{{Shard: 0, Epoch: 1}, {Shard: 1, Epoch: 1}, {Shard: 9, Epoch: 1}})
	eq(t, "lost", got.Lost, []store.ShardLease{h.Shard(t, 2)})
	eq(t, "owner of the lost one, and its time", fmt.Sprint(got.Lost[0].Owner, got.Lost[0].Remaining), fmt.Sprint(a.Name, shardTTL-time.Second))
	eq(t, "nothing", must(b.AcquireOwnedShards(ctx, nil, shardTTL))(t, "acquire nothing"), store.Acquisition{})
	eq(t, "the scope", b.Sees(), nil)
	h.Fix(t).spread(5)
	eq(t, "the scope", len(b.Sees()), 1) // own-all: an acquisition changes no scope
}

func shardTTLBounds(t *testing.T, h *Harness) {
	a := h.Pod(t)
	for i, good := range []time.Duration{store.MinShardTTL, store.DefaultShardTTL, store.MaxShardTTL} {
		for _, ttl := range []time.Duration{time.Second - 1, 0, -1, -time.Minute, time.Minute + 1, time.Hour} {
			h.unmovedShards(t, fmt.Sprintf("a ttl of %s", ttl), rendezvous.CodeInvalid, func() error { _, err := a.AcquireOwnedShard(ctx, 8, ttl); return err }, "field", "ttl")
			h.unmovedShards(t, fmt.Sprintf("a renewal for %s", ttl), rendezvous.CodeInvalid, func() error {
				_, err := a.RenewOwnedShards(ctx, nil, ttl, store.Member{})
				return err
			}, "field", "ttl")
		}
		l := must(a.AcquireOwnedShard(ctx, 8, good))(t, "acquire")
		eq(t, "the lease", l, leaseOf(a, 8, int64(i+1), h.Now(t), good)) // none was consumed
		h.Advance(good)
	}
}

func shardRenewals(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	owned := a.Acquire(1, 2, 3, 4)
	gone := a.Acquire(5)[0]
	a.Release(gone)
	other := b.Acquire(6)[0]
	h.Advance(10 * time.Second)
	short := must(a.RenewOwnedShards(ctx, owned[:1], time.Second, store.Member{}))(t, "renew for less") // it extends, and never shortens
	eq(t, "time left", short.Held[0].Remaining, shardTTL-10*time.Second)

	asked := []store.ShardEpoch{owned[1], owned[0], owned[1], {Shard: 3, Epoch: owned[2].Epoch + 1}, {Shard: 4, Epoch: 0}, gone, other, {Shard: 7, Epoch: 1}}
	r := a.Renew(asked...)
	now := h.Now(t)
	eq(t, "held", r.Held, []store.ShardLease{leaseOf(a, 1, 1, now, shardTTL), leaseOf(a, 2, 1, now, shardTTL)})
	eq(t, "lost", numbers(r.Lost), []int{3, 4, 5, 6, 7})
	eq(t, "owners of the lost", []string{r.Lost[0].Owner, r.Lost[2].Owner, r.Lost[3].Owner, r.Lost[4].Owner}, []string{a.Name, "", b.Name, ""})
	eq(t, "the store's now", r.Now, now)
	eq(t, "the directory", r.Directory, h.Directory(t))
	for shard, left := range map[int]time.Duration{2: shardTTL, 3: shardTTL - 10*time.Second, 4: shardTTL - 10*time.Second, 5: 0, 6: shardTTL - 10*time.Second, 7: 0} {
		eq(t, fmt.Sprintf("time left of shard %d", shard), h.Shard(t, shard).Remaining, left)
	}
	h.Advance(shardTTL - time.Microsecond)
	eq(t, "held in the last microsecond", numbers(a.Renew(owned[0]).Held), []int{1})
	h.Advance(time.Microsecond)
	late := a.Renew(owned[:2]...)
	eq(t, "held", numbers(late.Held), []int{1})
	eq(t, "lost", numbers(late.Lost), []int{2})
	eq(t, "time left of what ran out", h.Shard(t, 2).Remaining, time.Duration(0))
}

func shardReleases(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	owned := a.Acquire(1, 2)
	a.Release(owned[0])
	freed := h.Shard(t, 1)
	eq(t, "owner, epoch, time", fmt.Sprint(freed.Owner, freed.Epoch, freed.Remaining, freed.Serving), fmt.Sprint("", 1, time.Duration(0), false))
	before := h.Directory(t)
	a.Release(owned[0], owned[0])
	a.Release(store.ShardEpoch{Shard: 9, Epoch: 4}) // never held
	a.Release(store.ShardEpoch{Shard: 2, Epoch: 2}) // another epoch
	b.Release(owned[1])                             // another owner
	eq(t, "the directory", h.Directory(t), before)
	taken := b.Acquire(1) // at once
	eq(t, "epoch of the next", taken[0].Epoch, int64(2))
	before = h.Directory(t)
	a.Release(owned[0])
	eq(t, "the directory after a late release", h.Directory(t), before)
	eq(t, "held", numbers(b.Renew(taken...).Held), []int{1})
	b.Release(taken...)
	eq(t, "epoch of the first owner again", a.Acquire(1)[0].Epoch, int64(3))
}

// fencedVerbs are the write verbs that take a shard with an epoch.
func (p *Pod) fencedVerbs(s store.ShardEpoch) map[string]func() error {
	only := []store.ShardEpoch{s}
	return map[string]func() error{
		"publishing":  func() error { return p.PublishShardOwner(ctx, s.Shard, s.Epoch, "elsewhere") },
		"firing":      func() error { _, err := p.FireDueTimers(ctx, only, 0); return err },
		"claiming":    func() error { _, err := p.ClaimDueTimers(ctx, only, 0, 0); return err },
		"reconciling": func() error { _, err := p.ReconcileTimers(ctx, only, true, nil, 0); return err },
	}
}

func shardFences(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	r := h.Fix(t).startIn(1)
	wantFenced := func(what string, p *Pod, s store.ShardEpoch, current int64) {
		t.Helper()
		for verb, call := range p.fencedVerbs(s) {
			h.unmovedShards(t, verb+" under "+what, rendezvous.CodeFenced, call, "shard", s.Shard, "epoch", current)
		}
		r.WantKinds(rendezvous.TimerStarted)
	}
	r.arm("t", h.Now(t))
	wantFenced("an epoch of a shard that nobody had", a, store.ShardEpoch{Shard: 1, Epoch: 1}, 0)
	wantFenced("no epoch", a, store.ShardEpoch{Shard: 1}, 0)
	first := a.Acquire(1)[0]
	done(t, "a verb under a good epoch", a.fencedVerbs(first)["publishing"]())
	for _, epoch := range []int64{0, -1, 2, 1 << 40} {
		wantFenced("an invented epoch", a, store.ShardEpoch{Shard: 1, Epoch: epoch}, 1)
	}
	wantFenced("the epoch of another pod", b, first, 1)
	h.Advance(shardTTL)
	wantFenced("an expired lease", a, first, 1)
	second := b.Acquire(1)[0]
	wantFenced("a lease that another took over", a, first, 2)
	wantFenced("the epoch of the new owner", a, second, 2)
	b.Release(second)
	wantFenced("a released lease", b, second, 2)
	third := b.Acquire(1)[0]
	wantFenced("a released lease that its owner took again", b, second, 3)
	page := must(b.FireDueTimers(ctx, []store.ShardEpoch{second, third, {Shard: 2, Epoch: 1}}, 0))(t, "fire under good and bad epochs")
	eq(t, "shards lost", page.Lost, []int{2})
	r.WantKinds(rendezvous.TimerStarted, rendezvous.TimerFired)
	for verb, call := range b.fencedVerbs(third) {
		done(t, verb+" under a good epoch", call())
	}
	code(t, "firing in no shard", func() error { _, err := b.FireDueTimers(ctx, nil, 0); return err }(), rendezvous.CodeInvalid, "field", "shards")
}

func beliefs(t *testing.T, h *Harness) {
	c := clock.NewManual(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)) // the pod's, which is nothing to the store's
	a := h.podOn(t, c)
	eq(t, "believes before an acquire", a.IsCurrentOwner(1), false)
	believes := func(what string, want bool) { t.Helper(); eq(t, "believes "+what, a.IsCurrentOwner(1), want) }
	slow := func(verb string, d time.Duration) {
		h.Faults.Arm(fault.Failure{Verb: verb, Point: fault.BeforeCommit, Do: func(context.Context) error { c.Advance(d); return nil }})
	}
	slow("acquire_shards", time.Second)
	owned := store.ShardEpoch{Shard: 1, Epoch: must(a.AcquireOwnedShard(ctx, 1, 10*time.Second))(t, "acquire").Epoch}
	believes("after an acquire", true)
	eq(t, "believes in another shard", a.IsCurrentOwner(2), false)
	eq(t, "believes in a shard there is not", a.IsCurrentOwner(-1), false)
	c.Advance(8700*time.Millisecond - 1)
	believes("in the last nanosecond", true)
	c.Advance(1)
	believes("9.7 s after the acquire began", false)

	slow("renew_shards", 2*time.Second)
	eq(t, "held", len(must(a.RenewOwnedShards(ctx, []store.ShardEpoch{owned}, 10*time.Second, store.Member{}))(t, "renew").Held), 1)
	believes("after a renewal", true)
	must(a.RenewOwnedShards(ctx, []store.ShardEpoch{owned}, time.Second, store.Member{}))(t, "renew for less")
	c.Advance(7700*time.Millisecond - 1)
	believes("in the last nanosecond", true)
	must(a.RenewOwnedShards(ctx, []store.ShardEpoch{owned}, time.Second, store.Member{}))(t, "renew for less")
	c.Advance(1)
	believes("for what the latest renewal gave", true)
	c.Advance(700*time.Millisecond - 1)
	believes("9.7 s after the renewal began", false)
	must(a.AcquireOwnedShard(ctx, 1, 10*time.Second))(t, "acquire again")
	believes("after an acquire that was repeated", true)
	c.Advance(-time.Hour)
	h.Faults.Arm(fault.Failure{Verb: "renew_shards", Point: fault.BeforeCommit})
	if _, err := a.RenewOwnedShards(ctx, []store.ShardEpoch{owned}, 60*time.Second, store.Member{}); err == nil {
		t.Fatal("the renewal went through")
	}
	c.Advance(time.Hour + 9700*time.Millisecond)
	believes("by a renewal that failed", false)
}

func beliefsEnd(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	owned := a.Acquire(1, 2, 3, 4)
	believed := func() (in []int) {
		for s := range 6 {
			if a.IsCurrentOwner(s) {
				in = append(in, s)
			}
		}
		return in
	}
	eq(t, "believed", believed(), []int{1, 2, 3, 4})
	h.Faults.Arm(fault.Failure{Verb: "release_shards", Point: fault.BeforeCommit})
	if a.ReleaseOwnedShards(ctx, owned[:1]) == nil {
		t.Fatal("the release went through")
	}
	eq(t, "believed after a release, even one that failed", believed(), []int{2, 3, 4})
	a.Renew(owned...)
	eq(t, "believed after the renewal of what was released", believed(), []int{2, 3, 4})
	for verb, call := range a.fencedVerbs(store.ShardEpoch{Shard: 2, Epoch: 9}) {
		a.Acquire(2)
		eq(t, "believed after asking again", believed(), []int{2, 3, 4})
		code(t, verb, call(), rendezvous.CodeFenced)
		eq(t, "believed after "+verb+" was fenced", believed(), []int{3, 4})
	}
	a.Renew(owned...)
	eq(t, "believed after a renewal", believed(), []int{3, 4})
	h.Advance(shardTTL)
	b.Acquire(3)
	a.Renew(owned...)
	eq(t, "believed after a renewal that lost all", believed(), nil)
	a.Acquire(4)
	eq(t, "believed after taking one anew", believed(), []int{4})
	eq(t, "the other believes", b.IsCurrentOwner(3), true)
}

func publishes(t *testing.T, h *Harness) {
	a, b, third := h.Pod(t), h.Pod(t), h.Pod(t)
	s := a.Acquire(1)[0]
	eq(t, "serving before", h.Shard(t, 1).Serving, false)
	done(t, "publish", a.PublishShardOwner(ctx, 1, s.Epoch, "host:1"))
	want := leaseOf(a, 1, 1, h.Now(t), shardTTL)
	want.Serving, want.Address = true, "host:1"
	eq(t, "the directory of a third pod", must(third.RenewOwnedShards(ctx, nil, shardTTL, store.Member{}))(t, "renew").Shards[1], want)
	h.Counting.Reset()
	done(t, "publish again", a.PublishShardOwner(ctx, 1, s.Epoch, "host:1"))
	eq(t, "writes", h.Counting.Counts().Writes, int64(0))
	h.Advance(time.Second)
	a.Renew(s)
	want.ExpiresAt = h.Now(t).Add(shardTTL)
	eq(t, "the directory after a renewal", h.Shard(t, 1), want)
	done(t, "publish elsewhere", a.PublishShardOwner(ctx, 1, s.Epoch, "host:2"))
	want.Address = "host:2"
	eq(t, "the directory", h.Shard(t, 1), want)
	h.Advance(shardTTL)
	eq(t, "the next owner", b.Acquire(1)[0].Epoch, int64(2))
	eq(t, "what the former one published", fmt.Sprint(h.Shard(t, 1).Serving, h.Shard(t, 1).Address), fmt.Sprint(false, ""))
	h.unmovedShards(t, "publishing by the deposed", rendezvous.CodeFenced, func() error { return a.PublishShardOwner(ctx, 1, s.Epoch, "host:2") }, "epoch", 2)
}

func deposed(t *testing.T, h *Harness) {
	f := h.Fix(t)
	names := f.spread(1, 2, 3)
	a, b := h.Pod(t), h.Pod(t)
	done(t, "own nothing", a.SetOwnedShards([]int{}))
	b.Acquire(1)
	got := must(a.AcquireOwnedShards(ctx, []int{1, 2, 3}, time.Second))(t, "acquire")
	eq(t, "won", numbers(got.Won), []int{2, 3})
	eq(t, "the scope after losing at acquire", a.Sees(), nil)
	h.Advance(time.Second)
	b.Acquire(2)
	second := must(a.AcquireOwnedShards(ctx, []int{3}, shardTTL))(t, "acquire what ran out").Won[0]
	code(t, "publishing the lost one", a.PublishShardOwner(ctx, 2, 1, ""), rendezvous.CodeFenced)
	eq(t, "the scope after losing at publish", a.Sees(), nil)
	done(t, "publish the other", a.PublishShardOwner(ctx, 3, second.Epoch, ""))
	eq(t, "believes", []bool{a.IsCurrentOwner(1), a.IsCurrentOwner(2), a.IsCurrentOwner(3)}, []bool{false, false, true})
	done(t, "extend", a.ExtendOwnedShards([]int{3}))
	eq(t, "the scope", a.Sees(), names[2:])
}

func partitioned(t *testing.T, h *Harness) {
	c := clock.NewManual(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	a, b := h.podOn(t, c), h.Pod(t)
	must(a.AcquireOwnedShard(ctx, 1, store.DefaultShardTTL))(t, "acquire")
	for step := time.Duration(0); ; step += 50 * time.Millisecond { // both clocks go on, and no renewal comes through
		_, err := b.AcquireOwnedShard(ctx, 1, store.DefaultShardTTL)
		if believes := a.IsCurrentOwner(1); believes && (err == nil || step >= 2700*time.Millisecond) {
			t.Fatalf("after %s it believes, and another's acquire answers %v", step, err)
		}
		if err == nil {
			eq(t, "when another adopts", step, store.DefaultShardTTL)
			return
		}
		h.Advance(50 * time.Millisecond)
		c.Advance(50 * time.Millisecond)
	}
}

func shardAcquirersAtOnce(t *testing.T, h *Harness) {
	const pods = 4
	for round := range h.Rounds(t) {
		shards := []int{round % h.Store.Shards(), (round + 7) % h.Store.Shards()}
		before := h.Directory(t)
		var got [pods]store.Acquisition
		var errs [pods]error
		var fns []func()
		all := make([]*Pod, pods)
		for i := range pods {
			all[i] = h.Pod(t)
			fns = append(fns, func() { got[i], errs[i] = all[i].AcquireOwnedShards(ctx, shards, shardTTL) })
		}
		Race(t, fns...)
		for _, s := range shards {
			var winner *Pod
			for i, p := range all {
				done(t, "acquire", errs[i])
				for _, l := range got[i].Won {
					if l.Shard == s && winner != nil {
						t.Fatalf("%s and %s both won shard %d", winner.Name, p.Name, s)
					}
					if l.Shard == s {
						winner = p
						eq(t, "epoch", l.Epoch, before.Shards[s].Epoch+1)
					}
				}
			}
			if winner == nil {
				t.Fatalf("nobody won shard %d: %+v", s, got)
			}
			eq(t, "owner", h.Shard(t, s).Owner, winner.Name)
			eq(t, "epoch", h.Shard(t, s).Epoch, before.Shards[s].Epoch+1)
		}
		h.Advance(shardTTL)
	}
}

func shardDoors(t *testing.T, h *Harness) {
	for what, bad := range map[string]string{
		"none": "", "no id": "pod", "an empty id": "pod/", "no name": "/1", "control": "po\x01d/1", "long": strings.Repeat("a", 511) + "/1",
	} {
		_, err := h.Store.PoolHandle(store.PoolTimer, bad)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeTooLarge {
			t.Errorf("incarnation %s: %v, want it refused", what, err)
		}
	}
	for _, pool := range []store.Pool{"", "Timer", "push"} {
		_, err := h.Store.PoolHandle(pool, "pod/1")
		code(t, "an unknown pool's handle", err, rendezvous.CodeInvalid, "field", "pool")
		_, err = h.Store.ShardDirectory(ctx, pool)
		code(t, "an unknown pool's directory", err, rendezvous.CodeInvalid, "field", "pool")
	}
	a, n := h.Pod(t), h.Store.Shards()
	a.Acquire(0, n-1)
	for _, bad := range []int{-1, n, 1 << 40} {
		for verb, call := range map[string]func() error{
			"set":     func() error { return a.SetOwnedShards([]int{0, bad}) },
			"extend":  func() error { return a.ExtendOwnedShards([]int{bad}) },
			"acquire": func() error { _, err := a.AcquireOwnedShards(ctx, []int{1, bad}, shardTTL); return err },
			"publish": func() error { return a.PublishShardOwner(ctx, bad, 1, "") },
			"renew": func() error {
				_, err := a.RenewOwnedShards(ctx, []store.ShardEpoch{{Shard: 0, Epoch: 1}, {Shard: bad, Epoch: 1}}, shardTTL, store.Member{})
				return err
			},
			"release": func() error {
				return a.ReleaseOwnedShards(ctx, []store.ShardEpoch{{Shard: 0, Epoch: 1}, {Shard: bad, Epoch: 1}})
			},
		} {
			h.unmovedShards(t, fmt.Sprintf("%s shard %d", verb, bad), rendezvous.CodeInvalid, call, "field", "shard", "value", bad)
		}
		eq(t, "believes", a.IsCurrentOwner(bad), false)
	}
	eq(t, "believes in what a refused release named", a.IsCurrentOwner(0), true)
	h.unmovedShards(t, "an address with a control character", rendezvous.CodeInvalid, func() error { return a.PublishShardOwner(ctx, 0, 1, "a\nb") }, "field", "address")
	h.unmovedShards(t, "another's heartbeat", rendezvous.CodeInvalid, func() error {
		_, err := a.RenewOwnedShards(ctx, nil, shardTTL, store.Member{Incarnation: "pod/1"})
		return err
	}, "field", "incarnation")
}

func members(t *testing.T, h *Harness) {
	a, b := h.PodAs(t, "a/1"), h.PodAs(t, "b/1")
	a.Acquire(1)
	eq(t, "members before the first renewal", h.Directory(t).Members, nil)
	began := h.Now(t)
	r := must(a.RenewOwnedShards(ctx, nil, 10*time.Second, store.Member{Address: "host"}))(t, "renew")
	first := store.Member{Incarnation: "a/1", Address: "host", StartedAt: began, ExpiresAt: began.Add(10 * time.Second)}
	eq(t, "members", r.Members, []store.Member{first})
	h.Advance(5 * time.Second)
	second := store.Member{Incarnation: "b/1", StartedAt: began.Add(-time.Hour), ExpiresAt: h.Now(t).Add(10 * time.Second)}
	r = must(b.RenewOwnedShards(ctx, nil, 10*time.Second, store.Member{Incarnation: "b/1", StartedAt: second.StartedAt}))(t, "renew")
	eq(t, "members", r.Members, []store.Member{first, second})
	eq(t, "members of the other pool", must(h.Store.ShardDirectory(ctx, store.PoolSweep))(t, "ask for the directory").Members, nil)
	h.Advance(5 * time.Second)
	eq(t, "members that live", h.Directory(t).Members, []store.Member{second})
	r = must(a.RenewOwnedShards(ctx, nil, 10*time.Second, store.Member{}))(t, "renew after silence")
	eq(t, "when the member started", r.Members[0].StartedAt, began)
	h.Advance(10 * time.Second)
	eq(t, "members", h.Directory(t).Members, nil)
	h.Advance(time.Hour)
	c := h.PodAs(t, "c/1")
	c.Renew()
	h.Advance(time.Second)
	eq(t, "members", len(c.Renew().Members), 1)
	if rows := h.Rows(t); strings.Contains(rows, "a/1") && !strings.Contains(rows, `"Owner":"a/1"`) {
		t.Errorf("a member stays for ever: %s", rows)
	}
	done(t, "leave", c.Leave(ctx))
	done(t, "leave again", c.Leave(ctx))
	eq(t, "members", h.Directory(t).Members, nil)
}

func drainingMember(t *testing.T, h *Harness) {
	a, b := h.Pod(t), h.Pod(t)
	owned := a.Acquire(1)
	b.Renew()
	r := must(a.RenewOwnedShards(ctx, owned, shardTTL, store.Member{Draining: true}))(t, "drain")
	eq(t, "held", numbers(r.Held), []int{1})
	for _, m := range r.Members {
		eq(t, "draining", m.Draining, m.Incarnation == a.Name)
	}
	acquire := func(p *Pod) func() error {
		return func() error { _, err := p.AcquireOwnedShard(ctx, 2, shardTTL); return err }
	}
	h.unmovedShards(t, "an acquire while draining", rendezvous.CodeConflict, acquire(a), "what", "draining")
	h.unmovedShards(t, "an acquire by another handle of it", rendezvous.CodeConflict, acquire(h.PodAs(t, a.Name)), "what", "draining")
	must(a.RenewOwnedShards(ctx, owned, shardTTL, store.Member{}))(t, "renew as if it did not drain")
	h.unmovedShards(t, "an acquire after that", rendezvous.CodeConflict, acquire(a), "what", "draining")
	a.Release(owned...)
	done(t, "leave", a.Leave(ctx))
	h.unmovedShards(t, "an acquire after leaving", rendezvous.CodeConflict, acquire(a), "what", "draining")
	eq(t, "the other takes it", b.Acquire(1)[0].Epoch, int64(2))
}

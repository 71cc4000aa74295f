package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersHolding is timers.md section 4: due timers handed out with holds.
var timersHolding = []Case{
	{Name: "TM-27 any number of held rows in front hides no free one", Run: heldHideNothing},
	{Name: "TM-27 rows that do not decode hide no free one", Run: corruptHideNothing},
	{Name: "TM-30 two concurrent pages, and two concurrent claims, are disjoint and complete", Run: disjointPages},
	{Name: "TM-31 a held row is not claimable until its hold lapses or is given back", Run: heldUntil},
	{Name: "TM-31 a hold is void when its shard has a newer epoch", Run: holdVoid},
	{Name: "TM-31 a claim writes no record, and FireTimer writes what a page would", Run: firesHeld},
	{Name: "TM-31 firing a held timer says what became of it instead", Run: firesHeldNot},
	{Name: "TM-31 arming, cancelling and sealing ignore holds", Run: heldOverruled},
	{Name: "TM-31 holds outside their bounds are refused", Run: holdBounds},
}

func heldHideNothing(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	shard := -1
	total := min(100*h.Rounds(t), 10_000)
	for left := total; left > 0; left -= 500 {
		r := f.startBeside(&shard)
		r.AppendFree(r.arms("held", min(left, 500), h.Now(t))...)
	}
	free := f.startBeside(&shard)
	h.Advance(time.Second)
	held := 0
	for held < total {
		page := must(p.ClaimDueTimers(ctx, p.epochs(free), 300*time.Second, 2000))(t, "claim")
		if len(page) == 0 {
			break
		}
		held += len(page)
	}
	eq(t, "held", held, total)
	a := free.Arm("free", h.Now(t)) // due later than all of them
	got := must(p.ClaimDueTimers(ctx, p.epochs(free), time.Second, 1))(t, "claim the free one")
	eq(t, "claimed", len(got), 1)
	eq(t, "the free one", got[0].TimerID, "free")
	done(t, "release", p.ReleaseTimers(ctx, []int64{got[0].Token}))
	page := must(p.FireDueTimers(ctx, p.epochs(free), 1))(t, "fire")
	one(t, "page", page.Fires, store.FireFired)
	free.WantFired("free", a)
	eq(t, "more that can be taken", page.Full, false)
	eq(t, "timers that are due by the depths", must(h.Store.Depths(ctx))(t, "depths").DueTimers > 0, true)
}

func corruptHideNothing(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	shard := -1
	for range 3 {
		r := f.startBeside(&shard)
		r.Arm("bad", h.Now(t))
		done(t, "damage", h.Damage.Timer(f.Name(), r.WorkflowID, "bad"))
	}
	h.Advance(time.Second)
	free := f.startBeside(&shard)
	free.Arm("free", h.Now(t)) // due later than all of them
	h.Advance(time.Second)
	var got []store.HeldTimer
	for calls := 0; len(got) == 0; calls++ {
		if calls == 4 {
			t.Fatal("the free one is not handed out")
		}
		got = must(p.ClaimDueTimers(ctx, p.epochs(free), 10*time.Second, 1))(t, "claim")
	}
	eq(t, "the free one", got[0].TimerID, "free")
}

func disjointPages(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	f := h.Fix(t)
	for range h.Rounds(t) {
		var flows []*Flow
		for range 4 {
			r := f.Start()
			r.AppendFree(r.TimedIn("a", 0), r.TimedIn("b", 0), r.TimedIn("c", 0))
			flows = append(flows, r)
		}
		h.Advance(time.Millisecond)
		p.Own(t)
		var claims [2][]store.HeldTimer
		var errs [2]error
		claim := func(i int) func() {
			return func() { claims[i], errs[i] = p.ClaimDueTimers(ctx, p.Owned, time.Minute, 0) }
		}
		Race(t, claim(0), claim(1))
		done(t, "the one claim", errs[0])
		done(t, "the other claim", errs[1])
		var tokens []int64
		names := map[string]int{}
		for _, x := range slices.Concat(claims[0], claims[1]) {
			tokens = append(tokens, x.Token)
			names[x.WorkflowID+x.TimerID]++
		}
		eq(t, "claimed, each once", fmt.Sprint(len(tokens), len(names)), "12 12")
		done(t, "release", p.ReleaseTimers(ctx, tokens))

		var pages [2]store.FiredPage
		page := func(i int) func() {
			return func() { pages[i], errs[i] = p.FireDueTimers(ctx, p.Owned, 0) }
		}
		Race(t, page(0), page(1))
		done(t, "the one page", errs[0])
		done(t, "the other page", errs[1])
		names = map[string]int{}
		for _, x := range slices.Concat(pages[0].Fires, pages[1].Fires) {
			eq(t, "outcome", x.Outcome, store.FireFired)
			names[x.WorkflowID+x.TimerID]++
		}
		for len(names) < 12 { // what both found busy is for the next page
			more := p.Page(t, 0)
			if len(more.Fires) == 0 {
				t.Fatalf("two pages over 12 due timers fired %d, and a third one none", len(names))
			}
			for _, x := range more.Fires {
				names[x.WorkflowID+x.TimerID]++
			}
		}
		for name, n := range names {
			if n != 1 {
				t.Fatalf("%s was fired by %d pages", name, n)
			}
		}
		for _, r := range flows {
			eq(t, "history", len(r.Kinds()), 1+3+3)
		}
	}
	h.noRows(t)
}

func heldUntil(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	a := r.ArmIn("t", 0)
	held := must(p.ClaimDueTimers(ctx, p.Owned, 40*time.Second, 0))(t, "claim")
	eq(t, "claimed", len(held), 1)
	x := held[0]
	eq(t, "row", fmt.Sprint(x.Arming, x.DueAt, x.HeldUntil, x.Token != 0, x.Class), fmt.Sprint(a, a.FireAt, h.In(t, 40*time.Second), true, rendezvous.TimerAuthor))
	for range 4 {
		eq(t, "claimed again", len(p.Hold(t, 0)), 0)
		page := p.Page(t, 0)
		eq(t, "fired by a page", len(page.Fires), 0)
		eq(t, "next due", page.NextDue[x.Shard], x.HeldUntil)
		h.Advance(10*time.Second - time.Microsecond)
	}
	h.Advance(4 * time.Microsecond)
	again := p.Hold(t, 0)
	eq(t, "claimed when it lapsed", len(again), 1)
	eq(t, "another token", again[0].Token != x.Token, true)
	lost, _, err := p.FireTimer(ctx, x)
	done(t, "fire under the old token", err)
	eq(t, "the old token", lost.Outcome, store.FireLost)
	done(t, "release the old token", p.ReleaseTimers(ctx, []int64{x.Token, 0, -1, 1 << 60}))
	eq(t, "claimed although only others were given back", len(p.Hold(t, 0)), 0)
	done(t, "release", p.ReleaseTimers(ctx, []int64{again[0].Token}))
	done(t, "release again", p.ReleaseTimers(ctx, []int64{again[0].Token}))
	row := r.WantArmed("t", a)
	eq(t, "no hold is shown", row.Holder, "")
	page := p.Page(t, 0)
	one(t, "at once", page.Fires, store.FireFired)
	r.WantFired("t", a)
	done(t, "release what is gone", p.ReleaseTimers(ctx, []int64{again[0].Token}))
	done(t, "release nothing", p.ReleaseTimers(ctx, nil))
	code(t, "too many", p.ReleaseTimers(ctx, make([]int64, 2001)), rendezvous.CodeTooLarge)
}

func holdVoid(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	a := r.ArmIn("t", 0)
	b := r.ArmIn("u", 0)
	held := p.Hold(t, 0)
	eq(t, "claimed", len(held), 2)
	shard := p.epochs(r)
	done(t, "give the shard up", p.ReleaseOwnedShards(ctx, shard))
	other := &TimerPod{PoolHandle: must(h.Store.PoolHandle(store.PoolTimer, ID("pod")+"/1"))(t, "take another handle"), T: t}
	l := must(other.AcquireOwnedShard(ctx, shard[0].Shard, store.MaxShardTTL))(t, "take it over")
	other.Owned = []store.ShardEpoch{{Shard: l.Shard, Epoch: l.Epoch}}
	due := must(other.NextDue(ctx, []int{l.Shard}))(t, "next due")
	eq(t, "due now", due.NextDue[l.Shard].After(due.Now), false)
	for _, x := range h.allTimers(t) {
		eq(t, "no hold is shown", x.Holder, "")
	}
	lost, _, err := p.FireTimer(ctx, held[0])
	done(t, "fire under a void hold", err)
	eq(t, "the former owner", lost.Outcome, store.FireLost)
	again := must(other.ClaimDueTimers(ctx, other.Owned, 0, 1))(t, "claim")
	eq(t, "claimed by the new owner", len(again), 1)
	fire, _, err := other.FireTimer(ctx, again[0])
	done(t, "fire", err)
	eq(t, "by the new owner", fire.Outcome, store.FireFired)
	page := must(other.FireDueTimers(ctx, other.Owned, 0))(t, "fire the rest")
	one(t, "a page over void holds", page.Fires, store.FireFired)
	r.WantFired("t", a)
	r.WantFired("u", b)
	done(t, "release void tokens", p.ReleaseTimers(ctx, []int64{held[0].Token, held[1].Token}))
}

func firesHeld(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	due := h.In(t, time.Second)
	s := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: due})
	s.Drive().Suspend()
	a := s.Arm("t", due)
	w := s.WaitsUntil(due, "w", "paid", K("order", "1"))
	s.WaitsUntil(due, "v", "paid", K("order", "2"))
	e := f.PutNew("paid", K("order", "2"))
	h.Advance(time.Second)
	head := s.Head()
	held := p.Hold(t, 0)
	eq(t, "claimed", len(held), 4)
	eq(t, "head after a claim", s.Head(), head)
	byID := map[string]store.HeldTimer{}
	for _, x := range held {
		byID[x.TimerID] = x
	}
	fire := func(id string, want store.FireOutcome) (store.Fire, store.Notices) {
		t.Helper()
		got, notices, err := p.FireTimer(ctx, byID[id])
		done(t, "fire "+id, err)
		eq(t, "outcome of "+id, got.Outcome, want)
		return got, notices
	}
	got, notices := fire("t", store.FireFired)
	s.WantFired("t", a)
	s.wantNotice(notices.Resume, rendezvous.CauseTimer, got.Seq)
	again, notices := fire("t", store.FireAlready)
	eq(t, "seq of one that fired already", again.Seq, got.Seq)
	eq(t, "its notices", notices.Empty(), true)
	got, _ = fire(rendezvous.WaitTimerID(s.ID, "w"), store.FireFired)
	s.WantTimedOut("w", w.Deadline)
	again, _ = fire(rendezvous.WaitTimerID(s.ID, "w"), store.FireAlready)
	eq(t, "seq of one that timed out already", again.Seq, got.Seq)
	fire(rendezvous.WaitTimerID(s.ID, "v"), store.FireAnswered)
	s.WantAnswered("v", e)
	fire(rendezvous.WaitTimerID(s.ID, "v"), store.FireSuperseded)
	got, _ = fire(rendezvous.RunTimerID(s.ID), store.FireFired)
	eq(t, "status", s.Describe().Status, rendezvous.StatusTimedOut)
	again, _ = fire(rendezvous.RunTimerID(s.ID), store.FireAlready)
	eq(t, "seq of the run's end", again.Seq, got.Seq)
	h.noRows(t)
}

func firesHeldNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	claim := func(r *Flow) store.HeldTimer {
		t.Helper()
		p.Own(t)
		held := must(p.ClaimDueTimers(ctx, p.epochs(r), time.Minute, 0))(t, "claim")
		eq(t, "claimed", len(held), 1)
		return held[0]
	}
	fire := func(x store.HeldTimer, want store.FireOutcome) store.Fire {
		t.Helper()
		got, _, err := p.FireTimer(ctx, x)
		done(t, "fire", err)
		eq(t, "outcome", got.Outcome, want)
		return got
	}
	r := f.Start()
	r.ArmIn("t", 0)
	x := claim(r)
	r.Arm("t", endOfTime)
	fire(x, store.FireSuperseded)
	r.CancelArmed("t")
	fire(x, store.FireSuperseded)
	r.ArmIn("t", 0)
	x = claim(r)
	other := x
	other.Token++
	fire(other, store.FireLost)
	other = x
	other.Token = 0
	fire(other, store.FireLost)
	d := r.DriveFor(time.Hour)
	got := fire(x, store.FireParked)
	eq(t, "remaining of the lease", got.Remaining, time.Hour)
	fire(x, store.FireLost) // parking ended the hold
	d.Suspend()
	fire(x, store.FireAlready)
	d.Release()

	b := r.ArmIn("t", time.Hour)
	h.Advance(time.Hour)
	x = claim(r)
	h.Advance(-30 * time.Second) // a store's clock set back
	got = fire(x, store.FireNotDue)
	eq(t, "remaining", got.Remaining, 30*time.Second)
	eq(t, "the hold stays", r.Timer("t").HeldUntil, b.FireAt.Add(time.Minute))
	h.Advance(30 * time.Second)
	fire(x, store.FireFired)

	s := f.Start()
	s.ArmIn("t", 0)
	x = claim(s)
	restore, err := h.Damage.KeepTimer(f.Name(), s.WorkflowID, "t")
	done(t, "keep", err)
	s.Conclude(rendezvous.StatusCompleted)
	fire(x, store.FireSuperseded)
	done(t, "restore", restore())
	fire(x, store.FireDropped)
	h.noRows(t)

	u := f.Start()
	w := u.WaitsUntil(h.In(t, time.Second), "w", "paid", K("order", "1"))
	older := f.Start()
	_ = w
	older.ArmIn("x", 0)
	x = claim(older)
	for what, change := range map[string]func(x *store.HeldTimer){
		"no tenant": func(x *store.HeldTimer) { x.Tenant = "" }, "no workflow": func(x *store.HeldTimer) { x.WorkflowID = "" },
		"no id": func(x *store.HeldTimer) { x.TimerID = "" }, "no instant": func(x *store.HeldTimer) { x.FireAt = time.Time{} },
		"a negative seq": func(x *store.HeldTimer) { x.ArmedSeq = -1 },
	} {
		bad := x
		change(&bad)
		_, _, err := p.FireTimer(ctx, bad)
		code(t, "fire with "+what, err, rendezvous.CodeInvalid)
	}
	stranger := x
	stranger.Tenant = "globex"
	fire(stranger, store.FireSuperseded)
	stranger = x
	stranger.Shard = (x.Shard + 1) % rendezvous.DefaultShards // what the row says counts
	if got, _, err := p.FireTimer(ctx, stranger); err == nil && got.Outcome == store.FireFired {
		t.Fatal("a token was good in another shard")
	}
	fire(x, store.FireFired)
}

func heldOverruled(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	for what, over := range map[string]func(){
		"re-armed":  func() { a := r.Arm("t", endOfTime); eq(t, "hold of a re-arming", r.WantArmed("t", a).Holder, "") },
		"cancelled": func() { eq(t, "cancel", r.CancelArmed("t").Outcome, store.TimerCancelled) },
		"fired by its driver": func() {
			d := r.Drive()
			d.Append(r.FiredAs("t", r.Timer("t").ArmedSeq))
			d.Release()
		},
		"sealed": func() {
			eq(t, "timers retired", r.Conclude(rendezvous.StatusFailed).Retired.Timers, 1)
			must(f.ReopenRun(ctx, store.Reopening{RunID: r.ID, BatchID: ID("batch"), Reason: "again"}, now))(t, "reopen")
		},
	} {
		if r.Timer("t") != nil {
			r.CancelArmed("t")
		}
		r.ArmIn("t", 0)
		held := must(p.ClaimDueTimers(ctx, p.epochs(r), time.Minute, 0))(t, "claim")
		eq(t, "claimed before it is "+what, len(held), 1)
		over()
		got, _, err := p.FireTimer(ctx, held[0])
		done(t, "fire", err)
		if got.Outcome != store.FireSuperseded && got.Outcome != store.FireAlready {
			t.Fatalf("the token of one that was %s: %s", what, got.Outcome)
		}
	}
}

func holdBounds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	r.ArmIn("t", 0)
	for _, hold := range []time.Duration{-time.Second, time.Nanosecond, time.Second - 1, 300*time.Second + 1, time.Hour, 1<<63 - 1, -1 << 63} {
		_, err := p.ClaimDueTimers(ctx, p.Owned, hold, 0)
		code(t, fmt.Sprint("a hold of ", hold), err, rendezvous.CodeInvalid)
	}
	for hold, want := range map[time.Duration]time.Duration{0: time.Minute, time.Second: time.Second, 300 * time.Second: 300 * time.Second} {
		held := must(p.ClaimDueTimers(ctx, p.Owned, hold, 0))(t, "claim")
		eq(t, "claimed", len(held), 1)
		eq(t, fmt.Sprint("held for ", hold), held[0].HeldUntil, h.In(t, want))
		done(t, "release", p.ReleaseTimers(ctx, []int64{held[0].Token}))
	}
	stranger := h.TimerPod(t)
	held := p.Hold(t, 0)
	done(t, "release by a pod that does not hold it", stranger.ReleaseTimers(ctx, []int64{held[0].Token}))
	eq(t, "claimed", len(p.Hold(t, 0)), 0)
}

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// timersFiring is timers.md section 4: pages of due timers. What a lease does to them is in timers_leased.go, holds are in timers_holding.go.
var timersFiring = []Case{
	{Name: "TM-22 a timer due while its run is paused is recorded once, and no RESUME goes out until it is resumed", Run: firedPaused},
	{Name: "TM-23 a due timer fires once", Run: firedOnce},
	{Name: "TM-24 a row without a live arming behind it is dropped, counted, and records nothing", Run: droppedRows},
	{Name: "TM-25 the recorded instant is the due one, however late", Run: firedLate},
	{Name: "TM-26 before the instant nothing fires, and the answer says when", Run: firedEarly},
	{Name: "TM-28 a corrupt row fails alone, backs off, and is listed as failing", Run: corruptRow},
	{Name: "TM-28 a row that spoils its page is met alone", Run: spoiledPage},
	{Name: "TM-33 a page that failed leaves rows and histories as they were", Run: pageBroken},
	{Name: "TM-33 a page whose answer was lost carries what it did", Run: pageUnknown},
	{Name: "TM-33 a page behind which nobody can say what is due next is a page all the same", Run: pageUnread},
	{Name: "TM-34 one tenant's flood delays another's timer by a page", Run: floodedTenant},
	{Name: "TM-36 two timers of one run both wake it, and no lease is left behind", Run: bothWake},
	{Name: "TM-47 a flood fires each once, no page over its limit", Run: flood},
	{Name: "TM-48 pages read no history, and nothing of what is over", Run: pagesByRows},
	{Name: "timers.md 4: a run's timers are recorded by instant, arming and id", Run: firedInOrder},
	{Name: "timers.md 4: a page works the shards that pass the fence and answers the others", Run: firedWithinFence},
	{Name: "SH-20 two pods that think they own the same fire each timer once", Run: twoPods},
	{Name: "timers.md 4: next_due is the earliest instant a row can be taken, shard by shard", Run: nextDue},
	{Name: "timers.md 1: a fire is linked to what armed its timer", Run: firedLinks},
}

func firedPaused(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Drive().Release()
		h.Advance(time.Hour)
		h.SweepWoken(t)
		a := r.ArmIn("t", time.Minute)
		r.Pause()
		h.Advance(time.Minute)
		page := p.Page(t, 0)
		one(t, "page", page.Fires, store.FireFired)
		eq(t, "notices of the page", page.Notices.Resume, nil)
		eq(t, "a second page", len(p.Page(t, 0).Fires), 0)
		r.WantFired("t", a)
		h.Advance(24 * time.Hour)
		h.wantNoNotice(f, "while paused")
		resumed := r.Resume()
		eq(t, "notices of the resume", len(resumed.Notices.Resume), 1)
		r.WantFired("t", a)
		r.Finish()
	}
}

func firedOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	r.Drive().Suspend()
	a := r.ArmIn("t", time.Minute)
	h.Advance(time.Minute)
	page := p.Page(t, 0)
	fire := one(t, "page", page.Fires, store.FireFired)
	eq(t, "outcome", fire, store.Fire{
		Timer: store.Timer{
			Tenant: f.Name(), WorkflowRef: store.WorkflowRef{WorkflowID: r.WorkflowID, RunID: r.ID}, TimerID: "t", Class: rendezvous.TimerAuthor,
			Shard: rendezvous.Shard(f.Name(), r.WorkflowID, rendezvous.DefaultShards), Arming: a, DueAt: a.FireAt,
		},
		Outcome: store.FireFired, Seq: a.ArmedSeq + 1, Queue: rendezvous.DefaultQueue,
	})
	eq(t, "more is due", page.Full, false)
	eq(t, "busy", page.Busy, 0)
	eq(t, "lost", page.Lost, nil)
	r.wantNotice(page.Notices.Resume, rendezvous.CauseTimer, fire.Seq)
	r.WantFired("t", a)
	r.WantTimers()
	r.WantKinds(rendezvous.TimerStarted, rendezvous.TimerFired)
	eq(t, "run", r.Describe().Status, rendezvous.StatusRunning)
	h.noRows(t)
	for range 3 {
		h.Advance(time.Hour)
		again := p.Page(t, 0)
		eq(t, "a later page", len(again.Fires), 0)
		eq(t, "its notices", again.Notices.Empty(), true)
	}
	eq(t, "head", r.Head(), fire.Seq)
	eq(t, "woken", len(h.SweepWoken(t)), 1)
}

func droppedRows(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	keep := func(r *Flow, id string) func() {
		restore, err := h.Damage.KeepTimer(f.Name(), r.WorkflowID, id)
		done(t, "keep "+id, err)
		return func() { t.Helper(); done(t, "restore "+id, restore()) }
	}
	sealed := f.Start()
	sealed.ArmIn("t", 0)
	restoreSealed := keep(sealed, "t")
	sealed.Conclude(rendezvous.StatusCompleted)
	restoreSealed()
	prior := f.Start()
	prior.ArmIn("t", 0)
	restorePrior := keep(prior, "t")
	next := prior.Continue()
	mine := next.Arm("u", endOfTime)
	restorePrior()
	stray := f.Start()
	stray.ArmIn("t", 0)
	done(t, "stray", h.Damage.StrayTimer(f.Name(), stray.WorkflowID, "t", "nowhere"))
	gone := f.Start()
	w := gone.WaitsUntil(h.In(t, time.Second), "w", "paid", K("order", "1"))
	id := rendezvous.WaitTimerID(gone.ID, "w")
	restoreWait := keep(gone, id)
	must(f.Unsubscribe(ctx, gone.WaitID("w"), 0, "", now))(t, "withdraw")
	gone.Arm("u", endOfTime)
	restoreWait()
	ended := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: w.Deadline})
	restoreEnded := keep(ended, rendezvous.RunTimerID(ended.ID))
	ended.Conclude(rendezvous.StatusCompleted)
	restoreEnded()
	good := f.Start()
	a := good.ArmIn("good", time.Second)
	h.Advance(time.Second)
	flows := []*Flow{sealed, next, stray, gone, ended}
	heads := map[*Flow]int64{}
	for _, r := range flows {
		heads[r] = r.Head()
	}
	page := p.Page(t, 0)
	counts := map[store.FireOutcome]int{}
	for _, x := range page.Fires {
		counts[x.Outcome]++
	}
	eq(t, "outcomes", counts, map[store.FireOutcome]int{store.FireDropped: 5, store.FireFired: 1})
	for _, r := range flows {
		eq(t, "head of "+r.WorkflowID, r.Head(), heads[r])
	}
	good.WantFired("good", a)
	next.WantArmed("u", mine)
	next.WantTimers("u")
	gone.WantTimers("u") // what the history says is counted, and it says nothing new
	eq(t, "rows", len(h.allTimers(t)), 2)
	eq(t, "dropped again", len(p.Page(t, 0).Fires), 0)
}

func firedLate(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, 3*time.Minute)})
	a := r.ArmIn("t", time.Minute)
	w := r.WaitsUntil(h.In(t, 2*time.Minute), "w", "paid", K("order", "1"))
	h.Advance(time.Hour)
	fires := h.TimerPod(t).Fire(t)
	eq(t, "fires", len(fires), 3)
	r.WantFired("t", a)
	r.WantTimedOut("w", w.Deadline)
	records := r.History()
	for _, rec := range records[len(records)-3:] {
		eq(t, "recorded at", rec.RecordedAt, h.Now(t))
	}
	last := records[len(records)-1]
	eq(t, "the run's end", fmt.Sprint(last.Kind, string(last.Data)),
		fmt.Sprint(rendezvous.RunTimedOut, string(rendezvous.EncodeData(rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(a.FireAt.Add(2 * time.Minute))}))))
}

func firedEarly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, 2*time.Hour)})
	shard := rendezvous.Shard(f.Name(), r.WorkflowID, rendezvous.DefaultShards)
	a := r.ArmIn("t", time.Hour)
	r.WaitsUntil(a.FireAt, "w", "paid", K("order", "1"))
	for _, left := range []time.Duration{time.Hour, time.Minute, time.Second, time.Microsecond} {
		h.Advance(a.FireAt.Add(-left).Sub(h.Now(t)))
		page := p.Page(t, 0)
		eq(t, "page", page, store.FiredPage{NextDue: map[int]time.Time{shard: a.FireAt}, Now: h.Now(t)})
		eq(t, "held", len(p.Hold(t, 0)), 0)
	}
	r.WantKinds(rendezvous.TimerStarted, rendezvous.WaitRegistered)
	h.Advance(time.Microsecond)
	page := p.Page(t, 0)
	eq(t, "at the instant", len(page.Fires), 2)
	eq(t, "and then the run's", page.NextDue, map[int]time.Time{shard: a.FireAt.Add(time.Hour)})
	h.Advance(-time.Hour) // a store's clock set back: late, never early
	b := r.ArmIn("t", 0)
	h.Advance(-time.Second)
	eq(t, "before the instant again", len(p.Page(t, 0).Fires), 0)
	r.WantArmed("t", b)
}

func corruptRow(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	start := h.Now(t)
	var flows []*Flow
	for i := range 9 {
		r := f.Start()
		r.Arm("t", start.Add(time.Duration(i)*time.Microsecond))
		flows = append(flows, r)
	}
	bad := flows[4]
	bad.Arm("good", start.Add(4*time.Microsecond)) // of the same run
	done(t, "damage", h.Damage.Timer(f.Name(), bad.WorkflowID, "t"))
	locked := f.Start()
	locked.Arm("t", start.Add(5*time.Microsecond))
	done(t, "damage", h.Damage.Lease(f.Name(), locked.WorkflowID))
	h.Advance(time.Second)
	fires := p.Page(t, 0).Fires
	failed := slices.DeleteFunc(slices.Clone(fires), func(x store.Fire) bool { return x.Outcome == store.FireFired })
	eq(t, "fired", len(fires)-len(failed), 9)
	eq(t, "failed", len(failed), 2)
	for _, x := range failed {
		eq(t, "outcome", x.Outcome, store.FireFailed)
		eq(t, "identity", x.Tenant+x.TimerID, f.Name()+"t")
		code(t, "why", x.Err, rendezvous.CodeCorrupt)
		eq(t, "stuck", x.Stuck, false)
	}
	eq(t, "the other timer of its run", len(bad.fired("good")), 1)
	eq(t, "at once again", len(p.Page(t, 0).Fires), 0)
	// It backs off, and from 16 failures on it is told of; it is never given up.
	var longest time.Duration
	for n := 2; n <= 20; n++ {
		due := must(p.NextDue(ctx, nil))(t, "next due")
		row := h.expired(t, h.Store, endOfTime, store.Scope{Shards: p.shardOf(bad)}, 0)[0]
		eq(t, "listed", fmt.Sprint(row.TimerID, row.WorkflowID, row.FireAt), fmt.Sprint("t", bad.WorkflowID, start.Add(4*time.Microsecond)))
		code(t, "listed as corrupt", row.Corrupt, rendezvous.CodeCorrupt)
		next := due.NextDue[p.shardOf(bad)[0]]
		pause := next.Sub(due.Now)
		if pause <= 0 || pause > 5*time.Minute {
			t.Fatalf("failure %d: due again in %s", n, pause)
		}
		longest = max(longest, pause)
		h.Advance(pause)
		p.Own(t)
		x := one(t, "again", p.FireOnly(t, bad), store.FireFailed)
		eq(t, fmt.Sprintf("stuck at failure %d", n), x.Stuck, n >= 16)
	}
	if longest < 10*time.Second {
		t.Errorf("the longest pause was %s: it does not grow", longest)
	}
	counts := must(f.CountTimers(ctx))(t, "count")
	failing := 0
	for _, n := range counts {
		failing += n.Failing
	}
	eq(t, "failing", failing, 2)
	// Arming it again writes the row whole; an end takes away any row.
	_, err := f.CancelTimer(ctx, bad.ID, 0, "t", ID("batch"), "", now)
	code(t, "cancelling it", err, rendezvous.CodeCorrupt)
	a := bad.Arm("t", h.Now(t))
	eq(t, "failures of the new arming", bad.WantArmed("t", a).Attempts, 0)
	p.Own(t)
	one(t, "the new arming", p.FireOnly(t, bad), store.FireFired)
	bad.Arm("u", endOfTime)
	done(t, "damage", h.Damage.Timer(f.Name(), bad.WorkflowID, "u"))
	eq(t, "timers retired", bad.Conclude(rendezvous.StatusCompleted).Retired.Timers, 1)
	bad.WantTimers()
}

// shardOf is the run's shard, as a scope.
func (p *TimerPod) shardOf(r *Flow) []int {
	return []int{rendezvous.Shard(r.F.Name(), r.WorkflowID, rendezvous.DefaultShards)}
}

func spoiledPage(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	var flows []*Flow
	start := h.Now(t)
	for i := range 5 {
		r := f.Start()
		r.Arm("t", start.Add(time.Duration(i)*time.Microsecond))
		flows = append(flows, r)
	}
	h.Advance(time.Second)
	broken := rendezvous.Errorf(rendezvous.CodeCorrupt, "a record that no store takes")
	armed := h.Faults.Arm(fault.Failure{Verb: "fire_due_timers", Point: fault.BeforeCommit, Times: -1, Err: broken})
	page := p.Page(t, 0)
	x := one(t, "a page of which each row spoils its transaction", page.Fires, store.FireFailed)
	eq(t, "the first of them", x.WorkflowID, flows[0].WorkflowID)
	eq(t, "more is due", page.Full, true)
	code(t, "why", x.Err, rendezvous.CodeCorrupt)
	row := flows[0].Timer("t")
	eq(t, "counted", fmt.Sprint(row.Attempts, row.LastError != "", row.FireAt), fmt.Sprint(1, true, start))
	armed.Disarm()
	eq(t, "the others", len(p.Page(t, 0).Fires), 4)
	h.Advance(time.Second)
	one(t, "and it again", p.Page(t, 0).Fires, store.FireFired)
	for _, r := range flows {
		eq(t, "firings", len(r.fired("t")), 1)
	}
}

// dueScene is a run with all classes of timers due at once.
type dueScene struct {
	r      *Flow
	a, b   store.Arming
	w      rendezvous.Wait
	answer rendezvous.Event
}

func (f *Fix) dueScene() dueScene {
	f.T.Helper()
	due := f.H.In(f.T, time.Minute)
	s := dueScene{r: f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: due})}
	s.a, s.b = s.r.Arm("a", due), s.r.Arm("b", due)
	s.w = s.r.WaitsUntil(due, "w", "paid", K("order", s.r.ID))
	s.r.WaitsUntil(due, "v", "paid", K("bill", s.r.ID))
	s.answer = f.PutNew("paid", K("bill", s.r.ID)) // in time, and never offered
	return s
}

// untouched fails the test unless nothing of the scene was recorded.
func (s dueScene) untouched() {
	s.r.F.T.Helper()
	s.r.WantKinds(rendezvous.TimerStarted, rendezvous.TimerStarted, rendezvous.WaitRegistered, rendezvous.WaitRegistered)
	s.r.WantArmed("a", s.a)
	s.r.WantArmed("b", s.b)
	eq(s.r.F.T, "timers", len(s.r.Timers()), 5)
	eq(s.r.F.T, "waits", len(s.r.Rows()), 2)
	s.r.F.WantLive(s.answer)
}

// over fails the test unless all of the scene was recorded, once.
func (s dueScene) over() {
	s.r.F.T.Helper()
	t := s.r.F.T
	eq(t, "history", len(s.r.Kinds()), 1+4+4+1)
	s.r.WantFired("a", s.a)
	s.r.WantFired("b", s.b)
	s.r.WantTimedOut("w", s.w.Deadline)
	s.r.WantAnswered("v", s.answer)
	eq(t, "status", s.r.Describe().Status, rendezvous.StatusTimedOut)
	s.r.WantTimers()
}

func pageBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	h.Break(t, "fire_due_timers", func() (func() error, func(error, bool)) {
		s := f.dueScene()
		h.Advance(time.Minute)
		p.Own(t)
		attempt := func() error {
			_, err := p.FireDueTimers(ctx, p.Owned, 0)
			return err
		}
		return attempt, func(_ error, committed bool) {
			if !committed && s.r.Head() == 5 { // a step whose failure one page survived by meeting rows alone counts as a failure of these
				s.untouched()
			}
			h.Advance(10 * time.Second)
			p.Fire(t)
			s.over()
		}
	})
	h.noRows(t)
}

func pageUnknown(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	s := f.dueScene()
	other := f.Start()
	other.Drive().Suspend()
	other.ArmIn("t", time.Minute)
	h.Advance(time.Minute)
	p.Own(t)
	h.Faults.Arm(fault.Failure{Verb: "fire_due_timers", Point: fault.AfterCommit})
	page, err := p.FireDueTimers(ctx, p.Owned, 0)
	code(t, "a page whose answer was lost", err, rendezvous.CodeCommitUnknown)
	eq(t, "attempted outcomes", len(page.Fires), 6)
	eq(t, "their notices", len(page.Notices.Resume), 1)
	other.wantNotice(page.Notices.Resume, rendezvous.CauseTimer, other.Head())
	eq(t, "the same call again", len(p.Page(t, 0).Fires), 0)
	s.over()
}

func pageUnread(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	r.Drive().Suspend()
	r.ArmIn("t", time.Minute)
	h.Advance(time.Minute)
	p.Own(t)
	h.Faults.Arm(fault.Failure{Verb: "next_due", Point: fault.AtCall, Call: 1})
	page := must(p.FireDueTimers(ctx, p.Owned, 0))(t, "a page")
	x := one(t, "page", page.Fires, store.FireFired)
	r.wantNotice(page.Notices.Resume, rendezvous.CauseTimer, x.Seq)
	eq(t, "when the next is due is not said", page.NextDue == nil, true)
	eq(t, "and of an empty page it is", p.Page(t, 0).NextDue != nil, true)
}

func floodedTenant(t *testing.T, h *Harness) {
	a, b := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	p := h.TimerPod(t)
	flood := min(50*h.Rounds(t), 50_000)
	limit := min(max(flood/20, 10), 500)
	shard := -1
	at := h.In(t, time.Second)
	for left := flood; left > 0; {
		r := a.startBeside(&shard)
		for i := range 2 {
			n := min(left, 500)
			r.AppendFree(r.arms(fmt.Sprintf("flood%d", i), n, at)...)
			left -= n
		}
	}
	r := b.startBeside(&shard)
	h.Advance(2 * time.Second)
	eq(t, "a page of the flood", len(p.Page(t, limit).Fires), limit)
	mine := r.Arm("mine", h.Now(t)) // due later than all of them
	for pages := 1; len(r.fired("mine")) == 0; pages++ {
		page := p.Page(t, limit)
		eq(t, "limit", len(page.Fires) <= limit, true)
		eq(t, "more is due", page.Full, true)
		if pages > 2 {
			t.Fatalf("another tenant's timer did not fire within two pages of %d", limit)
		}
	}
	r.WantFired("mine", mine)
}

// startBeside starts a run whose workflow is in that shard, or in any one, which it names then.
func (f *Fix) startBeside(shard *int) *Flow {
	f.T.Helper()
	for {
		id := ID("workflow")
		if s := rendezvous.Shard(f.Name(), id, rendezvous.DefaultShards); *shard < 0 || s == *shard {
			*shard = s
			return f.StartAs(store.Start{WorkflowID: id, RunID: ID("run"), Type: "order"})
		}
	}
}

func bothWake(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	d := r.Drive()
	a, b := d.ArmIn("a", time.Minute), d.ArmIn("b", 2*time.Minute)
	eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended)
	for _, id := range []string{"a", "b"} {
		h.Advance(time.Minute)
		page := p.Page(t, 0)
		x := one(t, "page", page.Fires, store.FireFired)
		eq(t, "timer", x.TimerID, id)
		r.wantNotice(page.Notices.Resume, rendezvous.CauseTimer, x.Seq)
		r.WantFree()
		d = r.Drive()
		eq(t, "head for the driver", d.Seen, x.Seq)
		eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended)
	}
	r.WantFired("a", a)
	r.WantFired("b", b)
	// Both in one page: one notice.
	r.AppendFree(r.TimedIn("a", time.Minute), r.TimedIn("b", time.Minute))
	h.Advance(time.Minute)
	page := p.Page(t, 0)
	eq(t, "fires", len(page.Fires), 2)
	eq(t, "notices", len(page.Notices.Resume), 1)
	r.WantFree()
}

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
	other.Arm("o", h.In(t, 2*time.Hour))
	eq(t, "of all shards", must(p.NextDue(ctx, nil))(t, "next due").NextDue, map[int]time.Time{shard: soon, p.shardOf(other)[0]: h.In(t, 2*time.Hour)})
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

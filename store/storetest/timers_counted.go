package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

func timersCounted(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	p := h.TimerPod(t)
	start := h.Now(t)
	workflow := ID("workflow")
	equal := store.Start{WorkflowID: workflow, RunID: ID("run"), Type: "order", Deadline: start.Add(time.Hour)}
	mine, yours := f.StartAs(equal), g.StartAs(equal)
	a, b := mine.Arm("t", start.Add(time.Minute)), yours.Arm("t", start.Add(time.Minute))
	eq(t, "equal armings", a, b)
	mine.WaitsUntil(start.Add(time.Minute), "w", "paid", K("order", "1"))
	eq(t, "counts of the one", must(f.CountTimers(ctx))(t, "count"), map[rendezvous.TimerClass]store.TimerCounts{
		rendezvous.TimerAuthor: {Pending: 1}, rendezvous.TimerWait: {Pending: 1}, rendezvous.TimerRun: {Pending: 1},
	})
	eq(t, "counts of the other", must(g.CountTimers(ctx))(t, "count"), map[rendezvous.TimerClass]store.TimerCounts{
		rendezvous.TimerAuthor: {Pending: 1}, rendezvous.TimerRun: {Pending: 1},
	})
	eq(t, "counts of a third", len(must(h.FixOf(t, "initech").CountTimers(ctx))(t, "count")), 0)
	eq(t, "retire of the one", mine.Retire("t", a), store.ScheduleRetired)
	yours.WantArmed("t", b)
	eq(t, "schedule of the one", mine.Schedule("t", a), store.ScheduleArmed)
	mine.CancelArmed("t")
	yours.WantTimers("t", rendezvous.RunTimerID(yours.ID))

	// Due, parked and failing ones, by themselves and together.
	r := f.Start()
	r.AppendFree(r.TimedIn("p1", 0), r.TimedIn("p2", 0), r.TimedAt("later", endOfTime))
	d := r.Drive()
	bad := f.Start()
	bad.ArmIn("bad", 0)
	done(t, "damage", h.Damage.Timer(f.Name(), bad.WorkflowID, "bad"))
	h.Advance(time.Second)
	eq(t, "outcomes", outcomes(p.Fire(t)), map[string]store.FireOutcome{"p1": store.FireParked, "p2": store.FireParked, "bad": store.FireFailed})
	r2 := f.Start()
	r2.ArmIn("due", -0)
	counts := must(f.CountTimers(ctx))(t, "count")
	n := counts[rendezvous.TimerAuthor]
	total := 0
	for _, c := range counts {
		total += c.Pending + c.Due
	}
	eq(t, "all of the tenant", total, len(h.expired(t, h.Store, endOfTime, store.Scope{Tenant: f.Name()}, 0)))
	eq(t, "parked", n.Parked, 2)
	eq(t, "due now", n.Due, 1)
	eq(t, "due since", n.OldestDue, h.Now(t))
	h.Advance(10 * time.Second)
	counts = must(f.CountTimers(ctx))(t, "count")
	n = counts[rendezvous.TimerAuthor]
	eq(t, "due, the parked ones too", n.Due >= 3, true)
	failing := 0
	for _, c := range counts {
		failing += c.Failing
	}
	eq(t, "failing", failing, 1)
	p.Fire(t)
	d.Release()
	eq(t, "counts of the other", must(g.CountTimers(ctx))(t, "count")[rendezvous.TimerAuthor], store.TimerCounts{Pending: 1})
}

func timersListed(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, 3*time.Second)})
	at := h.In(t, time.Second)
	var batch []rendezvous.Record
	for _, i := range rand.Perm(250) {
		batch = append(batch, r.TimedAt(fmt.Sprintf("t%03d", i), at.Add(time.Duration(i%5)*time.Second)))
	}
	r.AppendFree(batch...)
	for i := range 5 {
		r.WaitsUntil(at.Add(time.Duration(i)*time.Second), fmt.Sprintf("w%d", i), "paid", K("order", "1"))
	}
	f.Start().Arm("other", at)
	ref := store.WorkflowRef{WorkflowID: r.WorkflowID}
	all := r.timersOf(ref, "")
	eq(t, "timers", len(all), 256)
	if !slices.IsSortedFunc(all, compareRows) {
		t.Fatalf("timers out of their order: %+v", all)
	}
	for _, limit := range []int{1, 3, 100, 256, 1000} {
		var walked []store.Timer
		for cursor := ""; ; {
			page := must(f.ListTimers(ctx, ref, "", limit, cursor))(t, "list timers")
			if len(page.Timers) > limit {
				t.Fatalf("a page of %d, limit %d", len(page.Timers), limit)
			}
			walked = append(walked, page.Timers...)
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		eq(t, fmt.Sprintf("walk by %d", limit), walked, all)
	}
	for _, class := range []rendezvous.TimerClass{rendezvous.TimerAuthor, rendezvous.TimerWait, rendezvous.TimerRun} {
		want := slices.DeleteFunc(slices.Clone(all), func(x store.Timer) bool { return x.Class != class })
		eq(t, "of class "+string(class), r.timersOf(ref, class), want)
		eq(t, "of class "+string(class)+", by run", r.timersOf(store.WorkflowRef{RunID: r.ID}, class), want)
	}
	waits := r.timersOf(ref, rendezvous.TimerWait)
	for i, x := range waits {
		eq(t, "effect", x.Effect, fmt.Sprintf("w%d", i))
		eq(t, "id", x.TimerID, rendezvous.WaitTimerID(r.ID, x.Effect))
	}
	for _, ref := range []store.WorkflowRef{{WorkflowID: ID("workflow")}, {RunID: ID("run")}} {
		eq(t, "of something unknown", must(f.ListTimers(ctx, ref, "", 0, ""))(t, "list"), store.TimerPage{})
	}
	page := must(f.ListTimers(ctx, ref, "", 10, ""))(t, "list")
	for what, call := range map[string]func() error{
		"a cursor of another list": func() error {
			_, err := f.ListTimers(ctx, ref, rendezvous.TimerAuthor, 10, page.NextCursor)
			return err
		},
		"a cursor of another tenant": func() error { _, err := h.FixOf(t, "globex").ListTimers(ctx, ref, "", 10, page.NextCursor); return err },
		"half a cursor":              func() error { _, err := f.ListTimers(ctx, ref, "", 10, page.NextCursor[:9]); return err },
		"no class":                   func() error { _, err := f.ListTimers(ctx, ref, "tick", 10, ""); return err },
		"neither workflow nor run":   func() error { _, err := f.ListTimers(ctx, store.WorkflowRef{}, "", 10, ""); return err },
	} {
		code(t, what, call(), rendezvous.CodeInvalid)
	}
	next := r.Continue()
	next.Arm("n", at)
	eq(t, "of a run that ended", must(f.ListTimers(ctx, store.WorkflowRef{RunID: r.ID}, "", 0, ""))(t, "list").Timers, nil)
	eq(t, "of the next", len(r.timersOf(store.WorkflowRef{RunID: next.ID}, "")), 1)
}

func timerPageLimits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.ArmIn("t", 0)
	p := h.TimerPod(t)
	for verb, v := range map[string]struct {
		most int
		call func(limit int) error
	}{
		"ExpiredTimers":   {10_000, func(n int) error { _, err := h.Store.ExpiredTimers(ctx, endOfTime, store.Scope{}, nil, n); return err }},
		"ListTimers":      {1000, func(n int) error { _, err := f.ListTimers(ctx, store.WorkflowRef{RunID: r.ID}, "", n, ""); return err }},
		"FireDueTimers":   {2000, func(n int) error { _, err := p.FireDueTimers(ctx, p.Owned, n); return err }},
		"ClaimDueTimers":  {2000, func(n int) error { _, err := p.ClaimDueTimers(ctx, p.Owned, 0, n); return err }},
		"ReconcileTimers": {5000, func(n int) error { _, err := p.ReconcileTimers(ctx, p.Owned, false, nil, n); return err }},
	} {
		for _, n := range []int{-1, -1 << 62} {
			code(t, verb+" with a negative limit", v.call(n), rendezvous.CodeInvalid)
		}
		code(t, verb+" over its maximum", v.call(v.most+1), rendezvous.CodeTooLarge, "limit", v.most, "value", v.most+1)
		for _, n := range []int{0, 1, v.most} {
			done(t, verb, v.call(n))
		}
	}
}

func timersReadOnly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, time.Hour)})
	r.ArmIn("t", 0)
	r.WaitsUntil(h.In(t, time.Hour), "w", "paid")
	p := h.TimerPod(t)
	p.Hold(t, 0)
	h.Counting.Reset()
	h.allTimers(t)
	r.timersOf(store.WorkflowRef{RunID: r.ID}, "")
	must(f.CountTimers(ctx))(t, "count")
	must(p.NextDue(ctx, nil))(t, "next due")
	must(h.Store.Depths(ctx))(t, "depths")
	got := h.Counting.Counts()
	eq(t, "what was asked", Counts{Updates: got.Updates, Locks: got.Locks, Histories: got.Histories, Writes: got.Writes}, Counts{})
}

func timerDepths(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	depths := func() (int, int, time.Time) {
		t.Helper()
		d := must(h.Store.Depths(ctx))(t, "depths")
		return d.Timers, d.DueTimers, d.OldestDueTimer
	}
	want := func(what string, timers, due int, oldest time.Time) {
		t.Helper()
		n, m, at := depths()
		eq(t, "timers "+what, fmt.Sprint(n, m, at), fmt.Sprint(timers, due, oldest))
	}
	want("of an empty store", 0, 0, time.Time{})
	a, b := h.FixOf(t, "acme").StartUntil(h.In(t, time.Hour)), h.FixOf(t, "globex").Start()
	a.WaitsUntil(h.In(t, time.Minute), "w", "paid")
	first := b.ArmIn("t", time.Second)
	want("that lie ahead", 3, 0, time.Time{})
	h.Advance(time.Second)
	want("of which one is due", 3, 1, first.FireAt)
	h.Advance(time.Minute)
	want("of which two are due", 3, 2, first.FireAt)
	p.Own(t)
	eq(t, "held", len(must(p.ClaimDueTimers(ctx, p.Owned, 10*time.Second, 1))(t, "hold")), 1)
	n, m, _ := depths()
	eq(t, "held ones are due all the same", fmt.Sprint(n, m), "3 2")
	h.Advance(time.Minute)
	p.Fire(t)
	want("when they fired", 1, 0, time.Time{})
}

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersReconciling is ReconcileTimers (timers.md section 4).
var timersReconciling = []Case{
	{Name: "TM-49 a lost row is written again and fires, counted as missing", Run: lostRows},
	{Name: "TM-50 an orphan row is dropped and counted, and stops no pass", Run: orphanRows},
	{Name: "TM-50 rows of equal number, but not the same, are found by a deep pass", Run: swappedRows},
	{Name: "TM-51 sound data is left alone, closed workflows are not opened, an unreadable history is reported and skipped", Run: soundRows},
	{Name: "TM-51 a pass pages through the workflows of its shards", Run: reconciledPages},
}

func lostRows(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	for _, f := range h.Two(t) {
		r := f.StartUntil(h.In(t, time.Hour))
		r.Arm("replaced", h.In(t, time.Hour))
		a := r.Arm("t", h.In(t, time.Minute))
		b := r.Arm("replaced", h.In(t, 30*time.Minute))
		w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", K("order", r.ID))
		rows := r.Timers()
		for _, x := range rows {
			eq(t, "retire "+x.TimerID, r.Retire(x.TimerID, x.Arming), store.ScheduleRetired)
		}
		eq(t, "repairs", h.reconcile(t, p, false), store.TimerRepairs{Missing: 4})
		eq(t, "rows", r.Timers(), rows)
		eq(t, "live timers", r.Describe().LiveTimers, 4)
		eq(t, "repairs of a second pass", h.reconcile(t, p, true), store.TimerRepairs{})
		h.Advance(time.Minute)
		p.Fire(t)
		r.WantFired("t", a)
		r.WantTimedOut("w", w.Deadline)
		h.Advance(29 * time.Minute)
		p.Fire(t)
		r.WantFired("replaced", b)
		h.Advance(30 * time.Minute)
		p.Fire(t)
		eq(t, "status", r.Describe().Status, rendezvous.StatusTimedOut)
		h.Advance(store.MaxShardTTL)
		p.Own(t)
	}
	// After a reopening, and while paused.
	f := h.Fix(t)
	r := f.StartUntil(h.In(t, time.Hour))
	r.ArmIn("t", time.Hour)
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	r.Pause()
	rows := r.Timers()
	for _, x := range rows {
		r.Retire(x.TimerID, x.Arming)
	}
	eq(t, "repairs", h.reconcile(t, p, false), store.TimerRepairs{Missing: 2})
	eq(t, "rows", r.Timers(), rows)
}

// keepTimer remembers a timer's row.
func (r *Flow) keepTimer(id string) (restore func()) {
	r.F.T.Helper()
	back, err := r.F.H.Damage.KeepTimer(r.F.Name(), r.WorkflowID, id)
	done(r.F.T, "keep "+id, err)
	return func() { r.F.T.Helper(); done(r.F.T, "restore "+id, back()) }
}

func orphanRows(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	r.ArmIn("cancelled", time.Hour)
	cancelled := r.keepTimer("cancelled")
	r.CancelArmed("cancelled")
	r.WaitsUntil(h.In(t, time.Hour), "w", "paid", K("order", "1"))
	wait := r.keepTimer(rendezvous.WaitTimerID(r.ID, "w"))
	must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now))(t, "withdraw")
	prior := f.Start()
	prior.ArmIn("t", time.Hour)
	old := prior.keepTimer("t")
	next := prior.Continue()
	mine := next.ArmIn("u", time.Hour)
	good := f.Start()
	a := good.ArmIn("t", time.Minute)
	cancelled()
	wait()
	old()
	eq(t, "rows", len(h.allTimers(t)), 5)
	eq(t, "repairs", h.reconcile(t, p, false), store.TimerRepairs{Orphan: 3})
	next.WantArmed("u", mine)
	next.WantTimers("u")
	r.WantTimers()
	good.WantArmed("t", a)
	eq(t, "repairs of a second pass", h.reconcile(t, p, true), store.TimerRepairs{})
}

func swappedRows(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	r.ArmIn("a", time.Hour)
	stale := r.keepTimer("a")
	r.CancelArmed("a")
	b := r.ArmIn("b", time.Hour)
	r.Retire("b", b)
	stale()
	eq(t, "repairs of a pass that counts", h.reconcile(t, p, false), store.TimerRepairs{})
	eq(t, "repairs of a deep one", h.reconcile(t, p, true), store.TimerRepairs{Missing: 1, Orphan: 1})
	r.WantArmed("b", b)
	r.WantTimers("b")
	// A row of an arming that was replaced is written over.
	r.ArmIn("c", time.Hour)
	stale = r.keepTimer("c")
	c := r.ArmIn("c", 2*time.Hour)
	stale()
	did := h.reconcile(t, p, true)
	eq(t, "repaired", did.Missing+did.Orphan > 0, true)
	r.WantArmed("c", c)
	r.WantTimers("b", "c")
}

func soundRows(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	var closed *Flow
	for i := range 6 {
		r := f.StartUntil(h.In(t, time.Hour))
		r.ArmIn("t", time.Minute)
		r.WaitsUntil(h.In(t, time.Minute), "w", "paid", K("order", r.ID))
		switch i {
		case 0:
			restore := r.keepTimer("t")
			r.Conclude(rendezvous.StatusCompleted)
			restore() // and nobody looks
			closed = r
		case 1:
			r.Pause()
		case 2:
			r.Drive()
		}
	}
	before := h.Rows(t)
	for _, deep := range []bool{false, true} {
		h.Counting.Reset()
		eq(t, "repairs", h.reconcile(t, p, deep), store.TimerRepairs{})
		eq(t, "histories read", h.Counting.Counts().Histories, int64(0))
		eq(t, "writes", h.Counting.Counts().Writes, int64(0))
	}
	eq(t, "rows of the store", h.Rows(t) == before, true)
	eq(t, "the closed workflow's row", closed.Timer("t") != nil, true)

	bad, locked, lost := f.Start(), f.Start(), f.Start()
	bad.ArmIn("t", time.Hour)
	done(t, "damage", h.Damage.Record(f.Name(), bad.WorkflowID, 2))
	bad.Retire("t", bad.Timers()[0].Arming)
	locked.ArmIn("t", time.Hour)
	done(t, "damage", h.Damage.Lease(f.Name(), locked.WorkflowID))
	a := lost.ArmIn("t", time.Hour)
	lost.Retire("t", a)
	eq(t, "repairs beside what cannot be read", h.reconcile(t, p, false), store.TimerRepairs{Missing: 1, Unreadable: 2})
	lost.WantArmed("t", a)
}

func reconciledPages(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	var flows []*Flow
	for i := range 40 {
		r := f.Start()
		a := r.ArmIn("t", time.Hour)
		r.Retire("t", a)
		if i%3 == 0 {
			r.Pause()
		}
		flows = append(flows, r)
	}
	total, pages := store.TimerRepairs{}, 0
	looked := 0
	for after := (*store.WorkflowPosition)(nil); ; pages++ {
		got := must(p.ReconcileTimers(ctx, p.Owned, false, after, 7))(t, "reconcile a page")
		if got.Looked > 7 {
			t.Fatalf("a page looked at %d workflows", got.Looked)
		}
		looked += got.Looked
		total.Missing += got.Repairs.Missing
		if after = got.Next; after == nil {
			break
		}
	}
	eq(t, "looked at, mended", fmt.Sprint(looked, total.Missing), "40 40")
	eq(t, "pages", pages >= 5, true)
	for _, r := range flows {
		r.WantTimers("t")
	}
	// Only within the shards that pass the fence.
	r := flows[0]
	r.Retire("t", r.Timers()[0].Arming)
	stale := p.epochs(r)
	stale[0].Epoch++
	other := p.Owned[:1]
	if other[0].Shard == stale[0].Shard {
		other = p.Owned[1:2]
	}
	got := must(p.ReconcileTimers(ctx, []store.ShardEpoch{stale[0], other[0]}, true, nil, 0))(t, "reconcile with a lost shard")
	eq(t, "lost", got.Lost, []int{stale[0].Shard})
	eq(t, "the lost shard's", len(r.Timers()), 0)
}

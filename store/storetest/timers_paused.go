package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

func pausedArming(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	a, b := r.Arm("a", h.In(t, time.Minute)), r.Arm("b", h.In(t, time.Minute))
	w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", K("order", "1"))
	r.Pause()
	r.refuses("timer.started", rendezvous.CodeConflict, func() error { return r.tryFree(r.TimedIn("c", time.Minute)) }, "what", "paused")
	r.refuses("a re-arming", rendezvous.CodeConflict, func() error { return r.tryFree(r.TimedIn("a", time.Minute)) }, "what", "paused")
	r.refuses("ArmTimer", rendezvous.CodeConflict, func() error {
		_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "c", FireAt: h.In(t, time.Minute), BatchID: ID("batch")}, now)
		return err
	}, "what", "paused")
	r.refuses("a wait with a deadline", rendezvous.CodeConflict, func() error {
		_, err := f.RegisterWait(ctx, store.Registration{Wait: r.Until(h.In(t, time.Minute), "v", "paid")}, now)
		return err
	})
	eq(t, "cancel while paused", r.CancelArmed("b").Seq > b.ArmedSeq, true)
	h.Advance(time.Minute)
	eq(t, "outcomes", outcomes(p.Fire(t)), map[string]store.FireOutcome{"a": store.FireFired, rendezvous.WaitTimerID(r.ID, "w"): store.FireFired})
	r.WantFired("a", a)
	r.WantTimedOut("w", w.Deadline)
	eq(t, "status", r.Describe().Status, rendezvous.StatusPaused)
	h.wantNoNotice(f, "while paused")
}

func pausingArming(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	a := d.ArmIn("a", time.Minute)
	eq(t, "pause of a leased run", r.Pause().Outcome, store.PauseRequested)
	r.refuses("arming in an append", rendezvous.CodeConflict, func() error { _, err := f.Append(ctx, d.Batch(r.TimedIn("b", time.Minute)), now); return err }, "what", "pausing")
	after := time.Minute
	r.refuses("ArmTimer", rendezvous.CodeConflict, func() error {
		_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, Epoch: d.Epoch, TimerID: "a", After: &after, BatchID: ID("batch")}, now)
		return err
	}, "what", "pausing")
	d.Append(r.CancelledAs("a", a.ArmedSeq))
	r.WantTimers()
}

func armedInOrder(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	at := h.In(t, time.Hour)
	seq := r.AppendFree(r.TimedAt("a", at), r.CancelledAs("a", 2)).Head
	r.WantTimers()
	seq = r.AppendFree(r.TimedAt("a", at), r.TimedAt("a", at.Add(time.Second)), r.TimedAt("b", at), r.CancelledAs("b", seq+3), r.TimedAt("b", at)).Head
	r.WantArmed("a", store.Arming{FireAt: at.Add(time.Second), ArmedSeq: seq - 3})
	r.WantArmed("b", store.Arming{FireAt: at, ArmedSeq: seq})
	r.WantTimers("b", "a")
	r.refuses("a cancel of the first of two", rendezvous.CodeConflict, func() error {
		return r.tryFree(r.TimedAt("c", at), r.TimedAt("c", at), r.CancelledAs("c", seq+1))
	}, "current", "rearmed", "armed_seq", seq+2)
	r.refuses("a cancel before its start", rendezvous.CodeConflict, func() error { return r.tryFree(r.CancelledAs("c", seq+2), r.TimedAt("c", at)) },
		"current", "never armed")
	r.refuses("two cancels", rendezvous.CodeConflict, func() error { return r.tryFree(r.CancelledAs("b", seq), r.CancelledAs("b", seq)) },
		"current", "cancelled", "seq", seq+1)
	r.AppendFree(r.CancelledAs("b", seq), r.TimedAt("c", at), r.CancelledAs("c", seq+2), r.CancelledAs("a", seq-3), r.TimedAt("a", at))
	r.WantTimers("a")
	r.AppendFree(r.TimedAt("d", at), r.Completed()) // armed by the batch that ends the run
	h.noRows(t)
	eq(t, "live timers of an ended run", r.Describe().LiveTimers, 0)
	next := f.Start()
	next.AppendFree(next.TimedAt("a", at), next.ContinuedTo("r2-"+next.ID), next.StartedAfter("r2-"+next.ID))
	h.noRows(t)
	eq(t, "live timers of the successor", next.Describe().LiveTimers, 0)
	fresh := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
	root := fresh.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "default"})
	begin := store.Append{WorkflowID: fresh.WorkflowID, RunID: fresh.ID, BatchID: ID("batch"), Records: recs(root, fresh.TimedAt("first", at))}
	must(f.Append(ctx, begin, now))(t, "begin a workflow with a timer")
	fresh.WantArmed("first", store.Arming{FireAt: at, ArmedSeq: 2})
	fresh.WantTimers("first")
}

func timerNotices(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	shard := rendezvous.Shard(f.Name(), r.WorkflowID, rendezvous.DefaultShards)
	arm := func(after time.Duration) []store.TimerRef {
		return must(f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: ID("timer"), After: &after, BatchID: ID("batch")}, now))(t, "arm").Notices.Timers
	}
	eq(t, "notice of a near instant", arm(9*time.Second), []store.TimerRef{{Shard: shard, FireAt: h.In(t, 9*time.Second)}})
	eq(t, "notice of a past one", arm(0), []store.TimerRef{{Shard: shard, FireAt: h.Now(t)}})
	eq(t, "notice of a far instant", arm(time.Minute), nil)
	batch := store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Records: recs(r.TimedIn("a", 8*time.Second), r.TimedIn("b", 2*time.Second), r.TimedIn("c", time.Hour))}
	eq(t, "notices of a batch", must(f.Append(ctx, batch, now))(t, "append").Notices.Timers, []store.TimerRef{{Shard: shard, FireAt: h.In(t, 2*time.Second)}})
	eq(t, "notices of its repeat", len(must(f.Append(ctx, batch, now))(t, "append again").Notices.Timers), 0)
	w := r.Register(r.Until(h.In(t, time.Second), "w", "paid", K("order", r.ID)))
	eq(t, "notice of a wait's deadline", w.Notices.Timers, []store.TimerRef{{Shard: shard, FireAt: h.In(t, time.Second)}})
	after := 3 * time.Second
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", DeadlineAfter: &after}
	eq(t, "notice of a run's deadline", must(f.StartRun(ctx, s, now))(t, "start").Notices.Timers,
		[]store.TimerRef{{Shard: rendezvous.Shard(f.Name(), s.WorkflowID, rendezvous.DefaultShards), FireAt: h.In(t, after)}})
}

func armingLeased(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	a := r.Arm("t", h.In(t, time.Hour))
	d := r.Drive()
	verbs := func(epoch int64) []named {
		after := time.Minute
		return []named{
			{"ArmTimer", func() error {
				_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, Epoch: epoch, TimerID: "u", After: &after, BatchID: ID("batch")}, now)
				return err
			}},
			{"CancelTimer", func() error { _, err := f.CancelTimer(ctx, r.ID, epoch, "t", ID("batch"), "", now); return err }},
			{"CancelTimer of nothing", func() error { _, err := f.CancelTimer(ctx, r.ID, epoch, "v", ID("batch"), "", now); return err }},
		}
	}
	for _, v := range verbs(0) {
		r.refuses(v.name+" without an epoch", rendezvous.CodeLeaseHeld, v.call, "owner", d.Owner)
	}
	for _, epoch := range []int64{d.Epoch + 1, d.Epoch + 1000} {
		for _, v := range verbs(epoch) {
			r.refuses(v.name+" under an invented epoch", rendezvous.CodeFenced, v.call)
		}
	}
	for _, v := range verbs(-1) {
		r.refuses(v.name+" under a negative epoch", rendezvous.CodeInvalid, v.call)
	}
	r.WantArmed("t", a)
	d.Append(r.Noted("n"), r.Noted("n")) // no head is asked for
	for _, v := range verbs(d.Epoch) {
		done(t, v.name+" under its epoch", v.call())
	}
	r.WantTimers("u")
	d.Seen = r.Head()
	eq(t, "woken by what its caller knows", h.marks(f), 0)
	eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended)
	r.ArmIn("w", time.Hour)
	r.CancelArmed("w")
	eq(t, "woken by a caller without lease", h.marks(f), 0) // RN-59
	for _, v := range verbs(d.Epoch) {
		r.refuses(v.name+" under an epoch given up", rendezvous.CodeFenced, v.call)
	}
	_, err := f.ArmTimer(ctx, store.Arm{RunID: ID("run"), TimerID: "t", FireAt: endOfTime, BatchID: ID("batch")}, now)
	code(t, "an unknown run", err, rendezvous.CodeNotFound)
	_, err = f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: endOfTime}, now)
	code(t, "no batch id", err, rendezvous.CodeInvalid)
	next := r.Continue()
	_, err = f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: endOfTime, BatchID: ID("batch")}, now)
	code(t, "a run that was continued", err, rendezvous.CodeSealed, "current_run", next.ID)
	h.noRows(t)
}

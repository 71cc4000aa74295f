package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsReopening is ReopenRun: runs.md section 5, history.md section 4 (G4, G8, G9), timers.md section 2.
var runsReopening = []Case{
	{Name: "RN-50 a failed and a cancelled run are reopened, and may fail and be reopened again", Run: reopenedRuns},
	{Name: "RN-50 HI-20 from anything else it is a conflict with the status", Run: notReopenedRuns},
	{Name: "RN-50 the same batch id again is the first answer", Run: reopenedAgain},
	{Name: "RN-50 a reopening is one commit", Run: reopeningBroken},
	{Name: "RN-50 reopening twice, and driving, at once: one reopening", Run: reopenedAtOnce},
	{Name: "HI-13 a reopened run is running, and its next terminal decides", Run: reopenedStatus},
	{Name: "HI-21 superseded are the finally failed effects not done later", Run: superseded},
	{Name: "HI-19 an effect that failed for good is tried again once a reopening lists it", Run: retriedEffects},
	{Name: "G9 effects left open are open again, and waits are registered as their next attempt", Run: openAfterReopening},
	{Name: "HI-25 a reopened run is active again, and described as running", Run: activeAgain},
	{Name: "TM-21 outstanding timers return with fresh records at their instants, past ones due at once", Run: timersReturn},
	{Name: "TM-21 the run's deadline returns, armed by the reopening", Run: deadlineReturns},
	{Name: "TM-21 a thousand timers return", Run: manyTimersReturn},
	{Name: "G4 what the seal released stays released", Run: releasedStays},
	{Name: "RN-6 a batch sent again across a reopening gets its first outcome", Run: batchAcrossReopening},
}

// Reopen reopens the run in kim's name.
func (r *Flow) Reopen() store.Reopened {
	r.F.T.Helper()
	return must(r.F.ReopenRun(ctx, store.Reopening{RunID: r.ID, BatchID: ID("batch"), Operator: kim, Reason: "try again"}, now))(r.F.T, "reopen "+r.ID)
}

func (r *Flow) reopening() store.Reopening { return store.Reopening{RunID: r.ID, BatchID: ID("batch")} }

func reopenedRuns(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for what, end := range map[string]func(r *Flow){
			"failed": func(r *Flow) { r.Conclude(rendezvous.StatusFailed) }, "cancelled": func(r *Flow) { r.Conclude(rendezvous.StatusCancelled) },
			"revoked": func(r *Flow) { r.Revoke() }, "failed by an append": func(r *Flow) { r.AppendFree(r.FailedAs("x")) },
			"failed while paused": func(r *Flow) { r.Pause(); r.Conclude(rendezvous.StatusFailed) },
			"cancelled by its driver": func(r *Flow) {
				r.AskCancel()
				d := r.Drive()
				d.Conclude(rendezvous.StatusCancelled)
			},
		} {
			r := f.Start()
			r.Drive().Release()
			for n := range 3 {
				end(r)
				epoch, head := r.Describe().LeaseEpoch, r.Head()
				h.Advance(time.Minute)
				got := r.Reopen()
				eq(t, "answer", fmt.Sprint(got.Seq, got.Timers, got.Again), fmt.Sprint(head+1, 0, false))
				r.wantNotice(got.Notices.Resume, rendezvous.CauseResumed, got.Seq)
				rec := r.History()[got.Seq-1]
				eq(t, "record", fmt.Sprint(rec.Kind, *rec.Operator, string(rec.Data)),
					fmt.Sprint(rendezvous.RunReopened, *kim, `{"reason":"try again","superseded":[]}`))
				row := r.Describe()
				eq(t, "row of a run that was "+what, fmt.Sprint(row.Status, row.ClosedAt.IsZero(), row.FailureCode, row.FailureReason, row.FailedEffect, row.LeaseOwner, len(row.Requests), row.Head),
					fmt.Sprint(rendezvous.StatusRunning, true, "", "", "", "", 0, got.Seq))
				chain := must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")
				eq(t, "run", fmt.Sprint(len(chain), chain[0].Status, chain[0].Outcome, chain[0].ClosedAt.IsZero(), chain[0].LastSeq),
					fmt.Sprint(1, rendezvous.StatusRunning, "", true, got.Seq))
				d := r.Drive()
				if d.Epoch <= epoch {
					t.Fatalf("epoch %d after a reopening, was %d: it rises for ever", d.Epoch, epoch)
				}
				d.Append(r.Noted(fmt.Sprint("life ", n)))
				d.Release()
			}
			r.Finish()
			eq(t, "status at the end", r.Describe().Status, rendezvous.StatusCompleted)
		}
	}
}

func notReopenedRuns(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	refused := func(what string, r *Flow, status rendezvous.Status) {
		t.Helper()
		r.unmoved(what, rendezvous.CodeConflict, func() error { _, err := f.ReopenRun(ctx, r.reopening(), now); return err }, "what", "status", "current", string(status))
	}
	r := f.Start()
	refused("running", r, rendezvous.StatusRunning)
	d := r.Drive()
	refused("leased", r, rendezvous.StatusRunning)
	d.Release()
	r.Pause()
	refused("paused", r, rendezvous.StatusPaused)
	r.Resume()
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	refused("reopened", r, rendezvous.StatusRunning)
	r.Conclude(rendezvous.StatusCompleted)
	refused("completed", r, rendezvous.StatusCompleted)
	late := f.StartUntil(h.In(t, time.Minute))
	h.Advance(time.Minute)
	p.Fire(t)
	refused("timed out", late, rendezvous.StatusTimedOut)
	first := f.Start()
	next := first.Continue()
	next.Conclude(rendezvous.StatusFailed)
	refused("continued", first, rendezvous.StatusContinued)
	next.Reopen()
	refused("continued, its successor reopened", first, rendezvous.StatusContinued)
	_, err := f.ReopenRun(ctx, store.Reopening{RunID: ID("run"), BatchID: ID("batch")}, now)
	code(t, "unknown", err, rendezvous.CodeNotFound)
	s := f.Start()
	s.Conclude(rendezvous.StatusFailed)
	_, err = h.FixOf(t, "globex").ReopenRun(ctx, s.reopening(), now)
	code(t, "another tenant's", err, rendezvous.CodeNotFound)
	for what, change := range map[string]func(x *store.Reopening){
		"no run": func(x *store.Reopening) { x.RunID = "" }, "no batch id": func(x *store.Reopening) { x.BatchID = "" },
		"a batch id too long": func(x *store.Reopening) { x.BatchID = strings.Repeat("x", rendezvous.MaxBatchID+1) },
		"a reason too long":   func(x *store.Reopening) { x.Reason = strings.Repeat("x", rendezvous.MaxReason+1) },
		"a broken reason":     func(x *store.Reopening) { x.Reason = "\xff" },
		"half an operator":    func(x *store.Reopening) { x.Operator = &rendezvous.Operator{Actor: "kim"} },
	} {
		x := s.reopening()
		change(&x)
		_, err := f.ReopenRun(ctx, x, now)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeTooLarge {
			t.Errorf("reopening with %s: %v", what, err)
		}
	}
	s.unwritten2("run.reopened in an append", rendezvous.CodeInvalid, s.record(rendezvous.RunReopened, "", rendezvous.RunReopenedData{}))
	eq(t, "status", s.Describe().Status, rendezvous.StatusFailed)
}

// unwritten2 is unwritten for one record of a run that may have ended.
func (r *Flow) unwritten2(what string, want rendezvous.Code, rec rendezvous.Record) {
	r.F.T.Helper()
	r.unmoved(what, want, func() error { return r.tryFree(rec) })
}

func reopenedAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.ArmIn("t", time.Hour)
	r.Conclude(rendezvous.StatusFailed)
	x := r.reopening()
	x.Reason = "again"
	first := must(f.ReopenRun(ctx, x, now))(t, "reopen")
	again := func(what string) {
		t.Helper()
		before := r.outlook()
		got := must(f.ReopenRun(ctx, x, now))(t, "reopen again "+what)
		eq(t, "answer "+what, fmt.Sprint(got.Seq, got.Timers, got.Again), fmt.Sprint(first.Seq, 1, true))
		eq(t, "the workflow "+what, r.outlook(), before)
	}
	again("at once")
	other := x
	other.Reason = "otherwise"
	_, err := f.ReopenRun(ctx, other, now)
	code(t, "with another reason", err, rendezvous.CodeConflict, "what", "batch_id")
	d := r.Drive()
	again("under a lease")
	d.Conclude(rendezvous.StatusFailed)
	again("when it failed again") // and does not reopen it
	eq(t, "status", r.Describe().Status, rendezvous.StatusFailed)
	r.Reopen()
	r.Conclude(rendezvous.StatusCompleted)
	again("at the end")
	a := store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: x.BatchID, Records: recs(r.Noted("n"))}
	_, err = f.Append(ctx, a, now)
	code(t, "the batch id for an append", err, rendezvous.CodeConflict, "what", "batch_id")
}

func reopeningBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "reopen_run", func() (func() error, func(error, bool)) {
		r := f.StartUntil(h.In(t, time.Hour))
		r.AppendFree(r.Begun("a"), r.Failed("a", false), r.Begun("b"), r.TimedIn("t", time.Hour), r.TimedIn("u", time.Minute))
		r.Conclude(rendezvous.StatusFailed)
		before := r.outlook()
		x := r.reopening()
		return func() error { _, err := f.ReopenRun(ctx, x, now); return err }, func(_ error, committed bool) {
			if !committed {
				eq(t, "the workflow", r.outlook(), before)
				eq(t, "timers", len(r.Timers()), 0)
			}
			got := must(f.ReopenRun(ctx, x, now))(t, "reopen again")
			eq(t, "again", fmt.Sprint(got.Seq, got.Timers), fmt.Sprint(before.Row.Head+1, 3))
			eq(t, "timers", len(r.Timers()), 3)
			eq(t, "records", r.Head(), before.Row.Head+3)
		}
	})
}

func reopenedAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		a := r.ArmIn("t", time.Hour)
		r.Conclude(rendezvous.StatusFailed)
		one, two := r.reopening(), r.reopening()
		var got [3]store.Reopened
		var errs [4]error
		Race(t,
			func() { got[0], errs[0] = f.ReopenRun(ctx, one, now) },
			func() { got[1], errs[1] = f.ReopenRun(ctx, two, now) },
			func() { got[2], errs[2] = f.ReopenRun(ctx, one, now) },
			func() { _, errs[3] = r.Acquire(ID("pod"), ID("acquire")) },
		)
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("of two reopenings: %v and %v, want one to go through", errs[0], errs[1])
		}
		eq(t, "the same one twice", fmt.Sprint(errs[0] == nil, got[0].Seq), fmt.Sprint(errs[2] == nil, got[2].Seq))
		for _, err := range errs[:3] {
			if err != nil {
				code(t, "the loser", err, rendezvous.CodeConflict, "current", string(rendezvous.StatusRunning))
			}
		}
		if errs[3] != nil {
			code(t, "a lease before it", errs[3], rendezvous.CodeSealed)
		}
		r.WantKinds(rendezvous.TimerStarted, rendezvous.RunFailed, rendezvous.RunReopened, rendezvous.TimerStarted)
		r.WantArmed("t", store.Arming{FireAt: a.FireAt, ArmedSeq: 5})
		r.WantTimers("t")
	}
}

func reopenedStatus(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for _, status := range []rendezvous.Status{rendezvous.StatusFailed, rendezvous.StatusCancelled, rendezvous.StatusFailed} {
		r.Conclude(status)
		eq(t, "status", r.Describe().Status, status)
		r.Reopen()
		eq(t, "status", r.Describe().Status, rendezvous.StatusRunning)
		r.AppendFree(r.Noted("n"), r.Begun(ID("effect")))
		eq(t, "status", r.Describe().Status, rendezvous.StatusRunning)
		r.Pause()
		eq(t, "status", r.Describe().Status, rendezvous.StatusPaused)
		r.Resume()
	}
	r.Conclude(rendezvous.StatusCompleted)
	eq(t, "status", r.Describe().Status, rendezvous.StatusCompleted)
	s := f.Start()
	s.Conclude(rendezvous.StatusFailed)
	s.Reopen()
	next := s.Continue() // a reopened run goes on as any other
	eq(t, "status of the next", next.Describe().Status, rendezvous.StatusRunning)
	next.WantTimers()
}

// supersededBy are the effects that the last reopening of the run lists.
func (r *Flow) supersededBy() []string {
	r.F.T.Helper()
	for _, rec := range slices.Backward(r.History()) {
		if rec.Kind == rendezvous.RunReopened {
			var d rendezvous.RunReopenedData
			done(r.F.T, "decode", rendezvous.DecodeData(rec, &d))
			return d.Superseded
		}
	}
	return nil
}

func superseded(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	attempt := func(rec rendezvous.Record, n int) rendezvous.Record { rec.Attempt = n; return rec }
	r.AppendFree(
		r.Begun("z"), r.Begun("ä"), r.Begun("a"), r.Failed("a", false), r.Failed("z", false), r.Failed("ä", false), // a fan-out, in the order of bytes
		r.Begun("retryable"), r.Failed("retryable", true),
		r.Begun("later failed"), r.Failed("later failed", true), attempt(r.Begun("later failed"), 2), attempt(r.Failed("later failed", false), 2),
		r.Begun("later done"), r.Failed("later done", true), attempt(r.Begun("later done"), 2), attempt(r.Done("later done"), 2),
		r.Begun("done"), r.Done("done"), r.Begun("open"),
		r.Waited(r.Wait("wait", "paid")), r.Waited(r.Wait("withdrawn", "paid")), r.Withdrawn("withdrawn"),
	)
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	want := []string{"a", "later failed", "z", "ä"}
	eq(t, "superseded", r.supersededBy(), want)
	// One of them is done in the next life, one fails again, one is left open, one is not touched.
	r.AppendFree(attempt(r.Begun("a"), 2), attempt(r.Done("a"), 2), attempt(r.Begun("z"), 2), attempt(r.Failed("z", false), 2), attempt(r.Begun("ä"), 2))
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	eq(t, "superseded by the second", r.supersededBy(), []string{"later failed", "z"})
	r.Conclude(rendezvous.StatusCancelled)
	r.Reopen()
	eq(t, "superseded after a cancel", r.supersededBy(), nil)
	s := f.Start()
	s.AppendFree(s.Begun("a"), s.Failed("a", false))
	s.Revoke()
	s.Reopen()
	eq(t, "superseded after a cancel now", s.supersededBy(), nil)
	// Effects of the run before mean nothing in the next.
	u := f.Start()
	u.AppendFree(u.Begun("a"), u.Failed("a", false))
	next := u.Continue()
	next.AppendFree(next.Begun("b"), next.Failed("b", false))
	next.Conclude(rendezvous.StatusFailed)
	next.Reopen()
	eq(t, "superseded of the second run", next.supersededBy(), []string{"b"})
	// Together they may pass what another record's data may hold.
	v := f.Start()
	var batch []rendezvous.Record
	for i := range 200 {
		name := fmt.Sprintf("%03d%s", i, strings.Repeat("x", rendezvous.MaxID-3))
		batch = append(batch, v.Begun(name), v.Failed(name, false))
	}
	v.AppendFree(batch...)
	v.Conclude(rendezvous.StatusFailed)
	v.Reopen()
	eq(t, "superseded of a hundred KiB", len(v.supersededBy()), 200)
}

func retriedEffects(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	attempt := func(rec rendezvous.Record, n int) rendezvous.Record { rec.Attempt = n; return rec }
	r.AppendFree(r.Begun("a"), r.Failed("a", false), r.Begun("b"), r.Failed("b", false))
	r.refuses("attempt 2 before a reopening", rendezvous.CodeConflict, func() error { return r.tryFree(attempt(r.Begun("a"), 2)) })
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	r.refuses("attempt 1 again", rendezvous.CodeDuplicate, func() error { return r.tryFree(r.Begun("a")) }, "seq", int64(2))
	r.refuses("attempt 3", rendezvous.CodeConflict, func() error { return r.tryFree(attempt(r.Begun("a"), 3)) })
	r.refuses("closing attempt 1 again", rendezvous.CodeConflict, func() error { return r.tryFree(r.Done("a")) })
	r.AppendFree(attempt(r.Begun("a"), 2), attempt(r.Failed("a", false), 2))
	r.refuses("attempt 3 of one that failed for good since", rendezvous.CodeConflict, func() error { return r.tryFree(attempt(r.Begun("a"), 3)) })
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	eq(t, "superseded", r.supersededBy(), []string{"a", "b"})
	r.AppendFree(attempt(r.Begun("a"), 3), attempt(r.Done("a"), 3), attempt(r.Begun("b"), 2))
	s := f.Start()
	s.AppendFree(s.Begun("a"), s.Failed("a", false))
	s.Conclude(rendezvous.StatusCancelled)
	s.Reopen()
	s.refuses("an effect that no reopening lists", rendezvous.CodeConflict, func() error { return s.tryFree(attempt(s.Begun("a"), 2)) })
}

func openAfterReopening(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	attempt := func(rec rendezvous.Record, n int) rendezvous.Record { rec.Attempt = n; return rec }
	key := K("order", "1")
	first := r.Waits("w", "paid", key)
	number := r.Row("w").Number
	r.AppendFree(r.Begun("open"), r.Begun("other"))
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	row := r.Describe()
	eq(t, "counts", fmt.Sprint(row.OpenEffects, row.OpenWaits), "2 0")
	eq(t, "rows of waits", len(r.Rows()), 0)
	r.refuses("an open effect opened again", rendezvous.CodeDuplicate, func() error { return r.tryFree(r.Begun("open")) })
	r.refuses("its next attempt", rendezvous.CodeConflict, func() error { return r.tryFree(attempt(r.Begun("open"), 2)) })
	r.refuses("continuing with an open effect", rendezvous.CodeConflict, func() error {
		_, err := f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch")}, now)
		return err
	}, "effect", "open")
	r.AppendFree(r.Done("open"), r.Failed("other", true), attempt(r.Begun("other"), 2), attempt(r.Done("other"), 2))
	eq(t, "open effects", r.Describe().OpenEffects, 0)

	e := f.PutNew("paid", key)
	r.refuses("the wait's first attempt", rendezvous.CodeDuplicate, func() error { _, err := f.RegisterWait(ctx, store.Registration{Wait: first}, now); return err })
	r.refuses("closing it", rendezvous.CodeConflict, func() error { return r.tryFree(r.Withdrawn("w")) })
	got := must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now))(t, "withdraw what ended")
	eq(t, "withdrawing it", got.Outcome, store.WithdrawEnded)
	second := first
	second.Attempt = 2
	reg := r.Register(second)
	eq(t, "its next attempt", reg.Outcome, store.RegisterAnswered)
	r.WantAnswered("w", e)
	third := first
	third.Attempt = 3
	r.refuses("an attempt behind an answer", rendezvous.CodeConflict, func() error { _, err := f.RegisterWait(ctx, store.Registration{Wait: third}, now); return err })
	w := r.Wait("v", "paid", key)
	r.Register(w)
	r.Conclude(rendezvous.StatusCancelled)
	r.Reopen()
	w.Attempt, w.Keys = 2, []rendezvous.Key{K("order", "2")} // what it waits for may be another thing now
	w.Deadline = h.In(t, time.Minute)
	eq(t, "an attempt with other keys", r.Register(w).Outcome, store.RegisterWaiting)
	if now := r.Row("v").Number; now <= number {
		t.Errorf("the wait's number is %d: a new one stands behind the old %d", now, number)
	}
	r.WantTimers(rendezvous.WaitTimerID(r.ID, "v"))
	h.Advance(time.Minute)
	h.TimerPod(t).Fire(t)
	r.WantTimedOut("v", w.Deadline)
}

func activeAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	active := func() (ids []string) {
		for _, w := range must(h.Store.ListActive(ctx, store.Scope{Tenant: f.Name()}, nil, 0))(t, "list active") {
			ids = append(ids, w.WorkflowID)
		}
		return ids
	}
	r := f.Start()
	eq(t, "active", active(), []string{r.WorkflowID})
	r.Conclude(rendezvous.StatusFailed)
	eq(t, "active when it failed", active(), nil)
	r.Reopen()
	eq(t, "active when it was reopened", active(), []string{r.WorkflowID})
	page := must(f.QueryWorkflows(ctx, store.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusRunning}}, 0, ""))(t, "query")
	eq(t, "queried", len(page.Workflows), 1)
	eq(t, "started at", page.Workflows[0].StartedAt, r.History()[0].RecordedAt)
	r.Pause()
	eq(t, "active when it was paused", active(), nil)
	paused := must(h.Store.ListPaused(ctx, store.Scope{Tenant: f.Name()}, nil, 0))(t, "list paused")
	eq(t, "paused", len(paused), 1)
}

func timersReturn(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		p := h.TimerPod(t)
		r := f.Start()
		fired := r.ArmIn("fired", time.Second)
		h.Advance(time.Second)
		p.Fire(t)
		past, future := r.ArmIn("past", time.Minute), r.ArmIn("future", time.Hour)
		r.ArmIn("rearmed", time.Minute)
		rearmed := r.ArmIn("rearmed", 2*time.Hour)
		r.ArmIn("cancelled", time.Hour)
		r.CancelArmed("cancelled")
		r.ArmIn("fired and cancelled", 0)
		p.Fire(t)
		r.CancelArmed("fired and cancelled")
		again := r.ArmIn("fired", 3*time.Hour)
		r.WaitsUntil(h.In(t, time.Hour), "w", "paid", K("order", r.ID))
		r.Conclude(rendezvous.StatusFailed)
		h.noRowsOf(t, f)
		h.Advance(10 * time.Minute)
		before := r.Head()
		got := r.Reopen()
		eq(t, "answer", fmt.Sprint(got.Seq, got.Timers), fmt.Sprint(before+1, 4))
		eq(t, "notice of the past one", len(got.Notices.Timers), 1)
		records := r.History()[before:]
		var names []string
		for _, rec := range records[1:] {
			eq(t, "kind behind the reopening", rec.Kind, rendezvous.TimerStarted)
			eq(t, "one batch", rec.Batch+fmt.Sprint(rec.RecordedAt), records[0].Batch+fmt.Sprint(records[0].RecordedAt))
			var d rendezvous.TimerStartedData
			done(t, "decode", rendezvous.DecodeData(rec, &d))
			names = append(names, d.TimerID)
		}
		eq(t, "in the order they were armed", names, []string{"past", "future", "rearmed", "fired"})
		for i, a := range []store.Arming{past, future, rearmed, again} {
			r.WantArmed(names[i], store.Arming{FireAt: a.FireAt, ArmedSeq: got.Seq + 1 + int64(i)})
		}
		r.WantTimers("past", "future", "rearmed", "fired")
		eq(t, "stale arming retired", r.Retire("future", future), store.ScheduleSuperseded)
		p.Fire(t) // at once
		r.WantFired("past", store.Arming{FireAt: past.FireAt, ArmedSeq: got.Seq + 1})
		r.WantFired("fired", fired)
		// And once more: what fired since does not return.
		r.Revoke()
		second := r.Reopen()
		eq(t, "returned the second time", second.Timers, 3)
		h.Advance(24 * time.Hour)
		p.Fire(t)
		eq(t, "firings of the past one", len(r.fired("past")), 1)
		eq(t, "firings of the rearmed one", len(r.fired("rearmed")), 1)
		eq(t, "firings of the cancelled one", len(r.fired("cancelled")), 0)
		eq(t, "firings of the one that fired and was armed again", len(r.fired("fired")), 2)
		r.WantTimers()
		done(t, "give the shards back", p.ReleaseOwnedShards(ctx, p.Owned))
	}
}

// noRowsOf fails the test if any row of a tenant's timers is left.
func (h *Harness) noRowsOf(t testing.TB, f *Fix) {
	t.Helper()
	eq(t, "rows of timers of "+f.Name(), h.expired(t, h.Store, endOfTime, store.Scope{Tenant: f.Name()}, 0), nil)
}

func deadlineReturns(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	deadline := h.In(t, time.Hour)
	r := f.StartUntil(deadline)
	id := rendezvous.RunTimerID(r.ID)
	r.Conclude(rendezvous.StatusFailed)
	r.WantTimers()
	got := r.Reopen()
	eq(t, "timers", got.Timers, 1)
	r.WantArmed(id, store.Arming{FireAt: deadline, ArmedSeq: got.Seq})
	r.WantTimers(id)
	eq(t, "schedule by the start's arming", must(f.ScheduleTimer(ctx, r.WorkflowID, id, store.Arming{FireAt: deadline, ArmedSeq: 1}))(t, "schedule"), store.ScheduleSuperseded)
	eq(t, "schedule by the reopening's", r.Schedule(id, store.Arming{FireAt: deadline, ArmedSeq: got.Seq}), store.ScheduleUnchanged)
	r.Conclude(rendezvous.StatusCancelled)
	h.Advance(2 * time.Hour)
	got = r.Reopen()
	r.WantArmed(id, store.Arming{FireAt: deadline, ArmedSeq: got.Seq})
	one(t, "a deadline that is over", p.Fire(t), store.FireFired)
	eq(t, "status", r.Describe().Status, rendezvous.StatusTimedOut)
	r.unmoved("reopening it now", rendezvous.CodeConflict, func() error { _, err := f.ReopenRun(ctx, r.reopening(), now); return err })
	// Of a successor it is the successor's own.
	s := f.StartUntil(h.In(t, time.Hour))
	minute := time.Minute
	out := must(f.ContinueAsNew(ctx, store.Continuation{RunID: s.ID, ExpectedSeq: 1, BatchID: ID("batch"), DeadlineAfter: &minute}, now))(t, "continue")
	next := &Flow{F: f, WorkflowID: s.WorkflowID, ID: out.RunID}
	due := h.In(t, minute)
	next.Conclude(rendezvous.StatusFailed)
	got = next.Reopen()
	next.WantArmed(rendezvous.RunTimerID(next.ID), store.Arming{FireAt: due, ArmedSeq: got.Seq})
	next.WantTimers(rendezvous.RunTimerID(next.ID))
}

func manyTimersReturn(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.StartUntil(h.In(t, 2*time.Hour))
	at := h.In(t, time.Hour)
	r.AppendFree(r.arms("a", 500, at)...)
	r.AppendFree(r.arms("b", 500, at)...)
	r.Conclude(rendezvous.StatusFailed)
	got := r.Reopen()
	eq(t, "timers", got.Timers, 1001)
	eq(t, "live timers", r.Describe().LiveTimers, 1001)
	eq(t, "rows", len(h.allTimers(t)), 1001)
	r.refuses("the 1,001st", rendezvous.CodeTooLarge, func() error { return r.tryFree(r.TimedAt("more", at)) })
	h.Advance(time.Hour)
	eq(t, "fires", len(h.TimerPod(t).Fire(t)), 1000)
}

func releasedStays(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, other := f.Start(), f.Start()
	d := r.Drive()
	held := d.Parked("held")
	d.Waits("aimed", "paid", K("order", "aimed"))
	aimed := EventOf("paid", K("order", "aimed"))
	r.Targeted("aimed", aimed)
	d.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	f.WantLive(held)
	f.WantDead(aimed.EventID, rendezvous.DeadAddresseeConcluded)
	eq(t, "rows of waits", len(r.Rows()), 0)
	eq(t, "the next waiter", other.Register(other.Wait("w", "paid", held.Keys...)).Outcome, store.RegisterAnswered)
	again := r.Wait("held", "paid", held.Keys...)
	again.Attempt = 2
	eq(t, "its own next attempt", r.Register(again).Outcome, store.RegisterWaiting)
}

func batchAcrossReopening(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	a := store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: "first", Records: recs(r.Noted("n"))}
	first := must(f.Append(ctx, a, now))(t, "append")
	c := r.Conclusion(rendezvous.StatusFailed)
	ended := must(f.Conclude(ctx, c, now))(t, "conclude")
	r.Reopen()
	got := must(f.Append(ctx, a, now))(t, "append again")
	eq(t, "append again", fmt.Sprint(got.FirstSeq, got.Again), fmt.Sprint(first.FirstSeq, true))
	again := must(f.Conclude(ctx, c, now))(t, "conclude again")
	eq(t, "conclude again", fmt.Sprint(again.Seq, again.Again), fmt.Sprint(ended.Seq, true))
	eq(t, "status", r.Describe().Status, rendezvous.StatusRunning) // its repeat ends nothing
	r.Conclude(rendezvous.StatusCompleted)
}

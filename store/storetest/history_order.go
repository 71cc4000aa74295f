package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// historyOrder is history.md section 12, kinds, legal order and status. Attributes are refused by name here; how timers and
// reopening stand in the order is in timers_arming.go and runs_reopening.go.
var historyOrder = []Case{
	{Name: "HI-9 every kind round-trips, with and without each optional field", Run: everyKind},
	{Name: "HI-9 kinds of timers, deadlines and reopening round-trip", Run: kindsOfTime},
	{Name: "HI-9 an unknown kind, version or member of the wrong type is refused on append", Run: unknownKind},
	{Name: "HI-9 kinds and fields of later builds are refused by name", Run: unbuiltKinds},
	{Name: "HI-9 what another build recorded is read back verbatim", Run: otherBuilds},
	{Name: "HI-10 a history begins with run.started, once", Run: beginsOnce},
	{Name: "HI-11 run.continued lands only with the run.started it names", Run: continuedWithStart},
	{Name: "HI-12 continue-as-new with an open effect is refused and leaves no terminal", Run: continuedWithEffect},
	{Name: "HI-13 only lifecycle records move status", Run: statusMoves},
	{Name: "HI-14 paused is not terminal; a terminal while paused wins", Run: pausedThenEnded},
	{Name: "HI-15 a pause needs a running run and a resume a paused one", Run: pauseOutOfPlace},
	{Name: "HI-16 while paused new work is refused and facts are accepted", Run: pausedWork},
	{Name: "HI-17 an attempt opens once, naming the first; the same key in another run is fine", Run: opensOnce},
	{Name: "HI-18 an attempt closes once, and only when it was opened", Run: closesOnce},
	{Name: "HI-19 only a retryable failure admits the next attempt", Run: nextAttempt},
}

// unwritten fails the test unless an append at the head is refused with that code and writes nothing.
func (r *Flow) unwritten(what string, want rendezvous.Code, records []rendezvous.Record, details ...any) {
	t := r.F.T
	t.Helper()
	before := r.Describe()
	_, err := r.F.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Records: records}, now)
	code(t, what, err, want, details...)
	eq(t, what+": the row after a refusal", r.Describe(), before)
}

func recs(r ...rendezvous.Record) []rendezvous.Record { return r }

func everyKind(t *testing.T, h *Harness) {
	f := h.Fix(t)
	data := func(rec rendezvous.Record, v any) rendezvous.Record { rec.Data = rendezvous.EncodeData(v); return rec }
	with := func(rec rendezvous.Record, payload string) rendezvous.Record {
		rec.Payload, rec.ContentType = []byte(payload), "text/plain"
		return rec
	}
	r := f.StartAs(store.Start{
		WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Queue: "slow", Input: []byte("in"), ContentType: "text/plain",
		Parent: "parent", CodeVersion: "v7",
	})
	started := r.History()[0]
	eq(t, "run.started", started.Data, rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: "slow", Parent: "parent", CodeVersion: "v7"}))
	SamePayload(t, started.Payload, []byte("in"))
	bare := f.Start()
	eq(t, "run.started, bare", bare.History()[0].Data, rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: "default"}))

	wait := r.Wait("w1", "paid", K("order", "1"))
	wait.From = "shop"
	batch := recs(
		with(r.Begun("a"), "arguments"), with(r.Failed("a", true), "detail"),
		r.Begun("b"), with(r.Done("b"), "outcome"), r.Begun("c"), r.Done("c"), r.Begun("d"), r.Failed("d", false),
		r.Waited(wait), r.Waited(r.Wait("w2", "paid")), data(r.Withdrawn("w1"), rendezvous.ReasonData{Reason: "no need\nany more"}), r.Withdrawn("w2"),
		with(r.Noted("n"), "any"), r.Noted("m"),
		data(r.Paused(), rendezvous.ReasonData{Reason: "lunch"}),
	)
	landed := r.AppendFree(batch...)
	batch = append(batch, data(r.Resumed(), rendezvous.ReasonData{Reason: "back"}))
	eq(t, "head", r.AppendFree(batch[len(batch)-1]).Head, landed.Head+1)
	for i, rec := range r.History()[1:] {
		want := batch[i]
		if want.Data == nil {
			want.Data = []byte("{}")
		}
		eq(t, fmt.Sprintf("%s at %d", want.Kind, rec.Seq), string(rec.Data), string(want.Data))
		eq(t, "content type", rec.ContentType, want.ContentType)
		SamePayload(t, rec.Payload, want.Payload)
	}

	for name, end := range map[string]func(r *Flow) rendezvous.Record{
		"completed with a result": func(r *Flow) rendezvous.Record { return with(r.Completed(), "result") },
		"completed":               (*Flow).Completed,
		"failed with all": func(r *Flow) rendezvous.Record {
			return with(data(r.FailedAs("x"), rendezvous.RunFailedData{Code: "x", Reason: "y", FailedEffect: "z"}), "detail")
		},
		"failed":                func(r *Flow) rendezvous.Record { return r.FailedAs("x") },
		"cancelled with reason": (*Flow).Cancelled,
		"cancelled":             func(r *Flow) rendezvous.Record { c := r.Cancelled(); c.Data = nil; return c },
	} {
		r := f.Start()
		rec := end(r)
		r.AppendFree(rec)
		last := r.History()[1]
		eq(t, name, last.Kind, rec.Kind)
		if rec.Data == nil {
			rec.Data = []byte("{}")
		}
		eq(t, name, string(last.Data), string(rec.Data))
		SamePayload(t, last.Payload, rec.Payload)
	}
}

func kindsOfTime(t *testing.T, h *Harness) {
	f := h.Fix(t)
	deadline := h.In(t, time.Hour)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: deadline})
	started := rendezvous.RunStartedData{Type: "order", Queue: "default", Deadline: rendezvous.FormatInstant(deadline)}
	eq(t, "run.started", string(r.History()[0].Data), string(rendezvous.EncodeData(started)))
	d := r.Drive()
	w := r.Waited(r.Wait("w", "paid"))
	past := rendezvous.FormatInstant(h.In(t, time.Second))
	w.Data = rendezvous.EncodeData(rendezvous.WaitRegisteredData{Type: "paid", Keys: []rendezvous.Key{}, Deadline: past})
	with := r.record(rendezvous.TimerCancelled, "", rendezvous.TimerCancelledData{TimerID: "a", ArmedSeq: 3, Reason: "no\nneed"})
	d.Append(w, r.TimedAt("a", deadline), with, r.TimedAt("a", deadline), r.CancelledAs("a", 5), r.TimedIn("b", time.Second))
	h.Advance(time.Second)
	d.Append(r.FiredAs("b", 7), r.TimedOut("w"), r.Cancelled())
	must(f.ReopenRun(ctx, store.Reopening{RunID: r.ID, BatchID: ID("batch"), Reason: "again"}, now))(t, "reopen")
	h.Advance(2 * time.Hour)
	h.TimerPod(t).Fire(t)
	want := []any{
		rendezvous.WaitRegisteredData{Type: "paid", Keys: []rendezvous.Key{}, Deadline: past},
		rendezvous.TimerStartedData{TimerID: "a", FireAt: rendezvous.FormatInstant(deadline)},
		rendezvous.TimerCancelledData{TimerID: "a", ArmedSeq: 3, Reason: "no\nneed"},
		rendezvous.TimerStartedData{TimerID: "a", FireAt: rendezvous.FormatInstant(deadline)},
		rendezvous.TimerCancelledData{TimerID: "a", ArmedSeq: 5},
		rendezvous.TimerStartedData{TimerID: "b", FireAt: past},
		rendezvous.TimerFiredData{TimerID: "b", ArmedSeq: 7, FireAt: past},
		rendezvous.DeadlineData{Deadline: past},
		rendezvous.ReasonData{Reason: "not wanted"},
		rendezvous.RunReopenedData{Reason: "again", Superseded: []string{}},
		rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(deadline)},
	}
	records := r.History()[1:]
	eq(t, "records", len(records), len(want))
	for i, rec := range records {
		eq(t, fmt.Sprintf("data of %s at %d", rec.Kind, rec.Seq), string(rec.Data), string(rendezvous.EncodeData(want[i])))
		SamePayload(t, rec.Payload, nil)
	}
	r.WantKinds(rendezvous.WaitRegistered, rendezvous.TimerStarted, rendezvous.TimerCancelled, rendezvous.TimerStarted, rendezvous.TimerCancelled,
		rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.WaitTimedOut, rendezvous.RunCancelled, rendezvous.RunReopened, rendezvous.RunTimedOut)
}

func unknownKind(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	version := r.Noted("n")
	version.V = 2
	wrong := r.Noted("n")
	wrong.Data = []byte(`{"name":7}`)
	twice := r.Noted("n")
	twice.Data = []byte(`{"name":"a","name":"b"}`)
	array := r.Noted("n")
	array.Data = []byte(`["name"]`)
	for what, rec := range map[string]rendezvous.Record{
		"unknown kind": r.record("note.shouted", "", nil), "unknown version": version, "member of the wrong type": wrong, "two members of one name": twice,
		"data that is no object": array, "a note without its name": r.record(rendezvous.Note, "", nil),
		"an effect on a kind that names none": {RunID: r.ID, Kind: rendezvous.Note, Effect: "a", Data: []byte(`{"name":"n"}`)},
		"an effect without its key":           r.record(rendezvous.EffectDone, "", nil),
		"a payload on a kind without":         {RunID: r.ID, Kind: rendezvous.RunPaused, Payload: []byte("x")},
	} {
		r.unwritten(what, rendezvous.CodeInvalid, recs(r.Noted("good"), rec))
	}
	large := r.Noted("n")
	large.Data = rendezvous.EncodeData(map[string]string{"name": "n", "x": string(make([]byte, 64<<10))})
	r.unwritten("data over 64 KiB", rendezvous.CodeTooLarge, recs(large))
	heavy := r.Noted("n")
	heavy.Payload = make([]byte, rendezvous.MaxPayload+1)
	r.unwritten("payload over 1 MiB", rendezvous.CodeTooLarge, recs(heavy), "limit", rendezvous.MaxPayload, "value", rendezvous.MaxPayload+1)
}

func unbuiltKinds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.unwritten("attributes", rendezvous.CodeInvalid, recs(r.record(rendezvous.AttributesUpdated, "", nil)), "field", "kind")
	r.unwritten("a reopening, which has a verb of its own", rendezvous.CodeInvalid, recs(r.record(rendezvous.RunReopened, "", nil)), "field", "records")
}

func otherBuilds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("2"), r.Noted("3"), r.Begun("a"))
	done(t, "rewrite 2", h.Damage.Rewrite(f.Name(), r.WorkflowID, 2, "note.shouted", 3, `{"loud":true}`))
	done(t, "rewrite 3", h.Damage.Rewrite(f.Name(), r.WorkflowID, 3, rendezvous.Note, 1, `{"mood":"good","name":"3"}`))
	done(t, "rewrite 4", h.Damage.Rewrite(f.Name(), r.WorkflowID, 4, rendezvous.EffectStarted, 1, `{}`)) // an older form
	got := r.History()
	eq(t, "kind, v, mark and data of the unknown one", fmt.Sprint(got[1].Kind, got[1].V, got[1].Unknown, string(got[1].Data)), `note.shouted3 true{"loud":true}`)
	eq(t, "marks of the others", []bool{got[0].Unknown, got[2].Unknown, got[3].Unknown}, []bool{false, false, false})
	eq(t, "unknown members", string(got[2].Data), `{"mood":"good","name":"3"}`)
	var d rendezvous.NameData
	done(t, "decode the older form", rendezvous.DecodeData(got[3], &d))
	eq(t, "absent fields of the older form", d, rendezvous.NameData{})
}

func beginsOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	fresh := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
	root := fresh.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "default"})
	first := func(records ...rendezvous.Record) error {
		_, err := f.Append(ctx, store.Append{WorkflowID: fresh.WorkflowID, RunID: fresh.ID, BatchID: ID("batch"), Records: records}, now)
		return err
	}
	successor := fresh.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "default", PreviousRun: "ghost"})
	for what, err := range map[string]error{
		"a note first":                first(fresh.Noted("n")),
		"a note, then the start":      first(fresh.Noted("n"), root),
		"a start with a previous run": first(successor),
	} {
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeConflict {
			t.Fatalf("%s: got %v, want it refused", what, err)
		}
		eq(t, what+": records", len(fresh.History()), 0)
	}
	done(t, "begin", first(root, fresh.Noted("n")))
	fresh.WantKinds(rendezvous.Note)
	fresh.unwritten("a second root", rendezvous.CodeConflict, recs(root))
	fresh.unwritten("a second root behind a note", rendezvous.CodeConflict, recs(fresh.Noted("n"), root))
	other := *fresh
	other.ID = ID("run")
	_, err := f.StartRun(ctx, store.Start{WorkflowID: fresh.WorkflowID, RunID: other.ID, Type: "order"}, now)
	code(t, "start the workflow again", err, rendezvous.CodeConflict)
	fresh.WantKinds(rendezvous.Note)
}

func continuedWithStart(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	next := ID("run")
	foreign := r.StartedAfter(ID("run"))
	noParent := r.StartedAfter(next)
	noParent.Data = rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: "default"})
	for what, batch := range map[string][]rendezvous.Record{
		"alone":                          recs(r.ContinuedTo(next)),
		"followed by another run":        recs(r.ContinuedTo(next), foreign),
		"followed by something else":     recs(r.ContinuedTo(next), r.Noted("n")),
		"followed by a run unlike it":    recs(r.ContinuedTo(next), noParent),
		"with a note between":            recs(r.ContinuedTo(next), r.Noted("n"), r.StartedAfter(next)),
		"with something behind":          recs(r.ContinuedTo(next), r.StartedAfter(next), r.Noted("n")),
		"the start without what ends it": recs(r.StartedAfter(next)),
	} {
		before := r.History()
		_, err := f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Records: batch}, now)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeConflict {
			t.Fatalf("%s: got %v, want it refused", what, err)
		}
		eq(t, what+": history", r.History(), before)
	}
	out := r.AppendFree(r.Noted("n"), r.ContinuedTo(next), r.StartedAfter(next))
	eq(t, "landed", []int64{out.FirstSeq, out.Head}, []int64{2, 4})
	r.WantKinds(rendezvous.Note, rendezvous.RunContinued, rendezvous.RunStarted)
	history := r.History()
	eq(t, "runs of the records", []string{history[2].RunID, history[3].RunID}, []string{r.ID, next})
	eq(t, "the current run", r.Describe().RunID, next)
}

func continuedWithEffect(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Begun("a"))
	r.Waits("open", "paid", K("order", "1")) // open waits end with the run
	next := ID("run")
	r.unwritten("with an open effect", rendezvous.CodeConflict, recs(r.ContinuedTo(next), r.StartedAfter(next)), "effect", "a")
	_, err := f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch")}, now)
	code(t, "continue with an open effect", err, rendezvous.CodeConflict, "effect", "a")
	eq(t, "status", r.Describe().Status, rendezvous.StatusRunning)
	r.AppendFree(r.Done("a"), r.ContinuedTo(next), r.StartedAfter(next))

	ended := f.Start()
	ended.Conclude(rendezvous.StatusCompleted)
	ended.unwritten("after a terminal", rendezvous.CodeSealed, recs(ended.ContinuedTo(next), ended.StartedAfter(next)))
	_, err = f.ContinueAsNew(ctx, store.Continuation{RunID: ended.ID, ExpectedSeq: ended.Head(), BatchID: ID("batch")}, now)
	code(t, "continue after a terminal", err, rendezvous.CodeSealed)
}

func statusMoves(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	eq(t, "status of a started run", r.Describe().Status, rendezvous.StatusRunning)
	for _, rec := range recs(r.Begun("a"), r.Failed("a", false), r.Begun("b"), r.Done("b"), r.Waited(r.Wait("w", "paid")), r.Withdrawn("w"), r.Noted("n")) {
		r.AppendFree(rec)
		eq(t, "status after "+string(rec.Kind), r.Describe().Status, rendezvous.StatusRunning)
	}
	for status, end := range map[rendezvous.Status]func(r *Flow) rendezvous.Record{
		rendezvous.StatusCompleted: (*Flow).Completed, rendezvous.StatusCancelled: (*Flow).Cancelled,
		rendezvous.StatusFailed: func(r *Flow) rendezvous.Record { return r.FailedAs("x") },
	} {
		for _, conclude := range []bool{true, false} {
			r := f.Start()
			if conclude {
				r.Conclude(status)
			} else {
				r.AppendFree(end(r))
			}
			row := r.Describe()
			eq(t, "status", row.Status, status)
			chain := must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")
			eq(t, "status and outcome of the run", fmt.Sprint(chain[0].Status, " ", chain[0].Outcome), fmt.Sprint(status, " ", end(r).Kind))
		}
	}
	r.Continue()
	chain := must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")
	eq(t, "statuses along a chain", []rendezvous.Status{chain[0].Status, chain[1].Status}, []rendezvous.Status{rendezvous.StatusContinued, rendezvous.StatusRunning})
	eq(t, "status of the workflow", r.Describe().Status, rendezvous.StatusRunning)
}

func pausedThenEnded(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Paused())
	row := r.Describe()
	eq(t, "status", row.Status, rendezvous.StatusPaused)
	eq(t, "closed", row.ClosedAt.IsZero(), true)
	r.AppendFree(r.Resumed())
	eq(t, "status after the resume", r.Describe().Status, rendezvous.StatusRunning)
	r.AppendFree(r.Completed())
	eq(t, "status at the end", r.Describe().Status, rendezvous.StatusCompleted)

	r = f.Start()
	must(f.PauseRun(ctx, r.ID, nil, "lunch", now))(t, "pause")
	r.Conclude(rendezvous.StatusCompleted)
	row = r.Describe()
	eq(t, "status of a run that ended while paused", row.Status, rendezvous.StatusCompleted)
	eq(t, "closed", row.ClosedAt, h.Now(t))
}

func pauseOutOfPlace(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.unwritten("resume while running", rendezvous.CodeConflict, recs(r.Resumed()), "current", string(rendezvous.StatusRunning))
	r.AppendFree(r.Paused())
	r.unwritten("pause while paused", rendezvous.CodeConflict, recs(r.Paused()), "current", string(rendezvous.StatusPaused))
	r.AppendFree(r.Resumed())
	r.WantKinds(rendezvous.RunPaused, rendezvous.RunResumed)
	for _, status := range []rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled} {
		ended := f.Start() // the seal is judged before the order (runs.md section 2), and its error carries the outcome
		ended.Conclude(status)
		ended.unwritten("pause when closed", rendezvous.CodeSealed, recs(ended.Paused()), "outcome", string(status))
		ended.unwritten("resume when closed", rendezvous.CodeSealed, recs(ended.Resumed()), "outcome", string(status))
	}
}

func pausedWork(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Begun("a"), r.Begun("b"))
	r.Waits("direct", "paid", K("order", "1"))
	r.Waits("appended", "paid", K("order", "2"))
	r.Waits("withdrawn", "paid", K("order", "3"))
	must(f.PauseRun(ctx, r.ID, nil, "lunch", now))(t, "pause")
	next := ID("run")
	for what, batch := range map[string][]rendezvous.Record{
		"effect.started": recs(r.Begun("c")), "wait.registered": recs(r.Waited(r.Wait("w", "paid"))),
		"run.continued": recs(r.Done("a"), r.Done("b"), r.ContinuedTo(next), r.StartedAfter(next)),
	} {
		r.unwritten(what, rendezvous.CodeConflict, batch, "what", "paused")
	}
	r.AppendFree(r.Done("a"), r.Failed("b", true), r.Noted("n"), r.Withdrawn("withdrawn"))
	direct, appended := EventOf("paid", K("order", "1")), f.PutNew("paid", K("order", "2"))
	f.Send(direct)
	r.WantAnswer("direct", direct)
	must(f.MatchWaiter(ctx, appended.EventID, now))(t, "claim for a paused run")
	r.AppendFree(r.Answered("appended", appended))
	r.WantAnswer("appended", appended)
	eq(t, "status", r.Describe().Status, rendezvous.StatusPaused)
	must(f.ResumeRun(ctx, r.ID, nil, "", now))(t, "resume")
	again := r.Begun("b")
	again.Attempt = 2
	r.AppendFree(again)
}

func opensOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Begun("a"))
	r.Waits("w", "paid")
	r.unwritten("an open effect again", rendezvous.CodeDuplicate, recs(r.Begun("a")), "seq", 3)
	r.unwritten("a wait again", rendezvous.CodeDuplicate, recs(r.Begun("w")), "seq", 4)
	r.unwritten("a wait under an effect's key", rendezvous.CodeDuplicate, recs(r.Waited(r.Wait("a", "paid"))), "seq", 3)
	r.unwritten("twice in one batch", rendezvous.CodeDuplicate, recs(r.Begun("b"), r.Begun("b")), "seq", 5)
	r.AppendFree(r.Done("a"))
	r.unwritten("a closed effect again", rendezvous.CodeDuplicate, recs(r.Begun("a")), "seq", 3)

	other := f.Start()
	other.AppendFree(other.Begun("a"), other.Done("a"))
	next := r.Continue()
	next.AppendFree(next.Begun("a"))
	next.Waits("w", "paid")
	eq(t, "openings of one key along the chain", len(slices.DeleteFunc(next.History(), func(rec rendezvous.Record) bool {
		return rec.Kind != rendezvous.EffectStarted || rec.Effect != "a"
	})), 2)
}

func closesOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Begun("a"), r.Done("a"), r.Begun("b"))
	r.Waits("w", "paid")
	r.AppendFree(r.Withdrawn("w"))
	second := r.Done("b")
	second.Attempt = 2
	for what, rec := range map[string]rendezvous.Record{
		"a done effect": r.Done("a"), "a done effect, as failed": r.Failed("a", true), "what was never opened": r.Done("never"),
		"an attempt that was never opened": second, "a withdrawn wait": r.Withdrawn("w"), "an effect, as a wait": r.Withdrawn("b"), "a wait, as an effect": r.Done("w"),
	} {
		r.unwritten("closing "+what, rendezvous.CodeConflict, recs(r.Noted("good"), rec, r.Noted("good too")))
	}
	r.unwritten("closing twice in one batch", rendezvous.CodeConflict, recs(r.Done("b"), r.Done("b")))
	r.WantKinds(rendezvous.EffectStarted, rendezvous.EffectDone, rendezvous.EffectStarted, rendezvous.WaitRegistered, rendezvous.WaitWithdrawn)
	r.AppendFree(r.Done("b"))
}

func nextAttempt(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	attempt := func(rec rendezvous.Record, n int) rendezvous.Record { rec.Attempt = n; return rec }
	refuse := func(what string, rec rendezvous.Record) {
		t.Helper()
		before := r.History()
		_, err := f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Records: recs(rec)}, now)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeConflict && c != rendezvous.CodeDuplicate && c != rendezvous.CodeInvalid {
			t.Fatalf("%s: got %v, want it refused", what, err)
		}
		eq(t, what+": history", r.History(), before)
	}
	refuse("attempt 2 of nothing", attempt(r.Begun("a"), 2))
	r.AppendFree(r.Begun("a"))
	refuse("attempt 2 of an open one", attempt(r.Begun("a"), 2))
	r.AppendFree(r.Failed("a", true))
	refuse("attempt 3 after the first", attempt(r.Begun("a"), 3))
	r.AppendFree(attempt(r.Begun("a"), 2), attempt(r.Failed("a", false), 2))
	refuse("attempt 3 after a final failure", attempt(r.Begun("a"), 3))
	r.AppendFree(r.Begun("b"), r.Done("b"))
	refuse("attempt 2 of a done one", attempt(r.Begun("b"), 2))
	r.AppendFree(r.Begun("c"), r.Failed("c", true), attempt(r.Begun("c"), 2), attempt(r.Done("c"), 2)) // within one batch
}

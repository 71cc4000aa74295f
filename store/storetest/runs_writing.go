package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsWriting is runs.md section 8, "Writing". What a repeat gets is in runs_repeats.go. Deadlines are in deadlines_driven.go.
var runsWriting = []Case{
	{Name: "RN-1 a history begins at expected seq 0 with run.started and is numbered from 1 without gaps", Run: numberedFromOne},
	{Name: "RN-2 an expected seq below or above the head is a conflict with both numbers", Run: wrongHead},
	{Name: "RN-2 RN-6 RN-24 of several checks that fail the first decides", Run: firstCheckDecides},
	{Name: "RN-3 of appends with one expected seq exactly one lands", Run: appendsAtOnce},
	{Name: "RN-4 a batch with one bad record writes nothing anywhere", Run: oneBadRecord},
	{Name: "RN-4 a batch with records of two runs writes nothing to either", Run: recordsOfTwoRuns},
	{Name: "RN-5 an empty batch only checks", Run: emptyBatch},
	{Name: "RN-8 records and their rows appear together or not at all", Run: recordsAndRows},
	{Name: "RN-9 only the event that a wait holds is its answer", Run: onlyTheHeldEvent},
	{Name: "RN-9 an answer that differs from the stored event is a conflict", Run: answerUnlikeTheEvent},
	{Name: "RN-11 a terminal stands last in its batch", Run: terminalInTheMiddle},
	{Name: "RN-12 a run nobody started is not found, by any verb", Run: runNobodyStarted},
	{Name: "RN-12 an earlier run of the chain is sealed, with its outcome and the current run", Run: earlierRun},
}

func numberedFromOne(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
	root := r.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "slow"})
	first := func(workflow string, expected int64, records ...rendezvous.Record) (store.Appended, error) {
		return f.Append(ctx, store.Append{WorkflowID: workflow, RunID: r.ID, ExpectedSeq: expected, BatchID: ID("batch"), Records: records}, now)
	}
	_, err := first(r.WorkflowID, 1, root)
	code(t, "begin at 1", err, rendezvous.CodeConflict, "expected", 1, "head", 0)
	_, err = first(r.WorkflowID, 0, r.Noted("n"))
	code(t, "begin with a note", err, rendezvous.CodeInvalid)
	_, err = first("", 0, root)
	code(t, "begin without the workflow's id", err, rendezvous.CodeNotFound)
	_, err = f.Append(ctx, store.Append{WorkflowID: r.WorkflowID, RunID: r.ID, Epoch: 1, BatchID: ID("batch"), Records: recs(root)}, now)
	code(t, "begin under an epoch", err, rendezvous.CodeFenced, "epoch", 0)
	eq(t, "records", r.Head(), int64(0))
	eq(t, "woken runs", h.marks(f), 0)

	landed := must(first(r.WorkflowID, 0, root, r.Noted("n")))(t, "begin")
	eq(t, "landed", []int64{landed.FirstSeq, landed.Head}, []int64{1, 2})
	r.wantNotice(landed.Notices.Resume, rendezvous.CauseStarted, 1)
	for i := range 40 {
		var batch []rendezvous.Record
		for n := range i % 7 {
			batch = append(batch, r.Noted(fmt.Sprint(i, ".", n)))
		}
		before := r.Head()
		out := r.AppendFree(batch...)
		eq(t, "head", out.Head, before+int64(len(batch)))
		if len(batch) > 0 {
			eq(t, "first seq", out.FirstSeq, before+1)
		}
	}
	history := r.History()
	eq(t, "records", int64(len(history)), r.Head())
	for i, rec := range history {
		eq(t, "seq", rec.Seq, int64(i+1))
	}
	eq(t, "head of the row", r.Describe().Head, r.Head())
}

// decisions are the verbs that write at the head their caller has read.
func (r *Flow) decisions(epoch, expected int64) []named {
	return []named{
		{"Append", func() error {
			a := store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: expected, BatchID: ID("batch"), Records: recs(r.Noted("n"))}
			_, err := r.F.Append(ctx, a, now)
			return err
		}},
		{"Append of nothing", func() error {
			_, err := r.F.Append(ctx, store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: expected, BatchID: ID("batch")}, now)
			return err
		}},
		{"Conclude", func() error {
			c := store.Conclusion{RunID: r.ID, Epoch: epoch, ExpectedSeq: expected, BatchID: ID("batch"), Outcome: rendezvous.StatusCancelled}
			_, err := r.F.Conclude(ctx, c, now)
			return err
		}},
		{"ContinueAsNew", func() error {
			_, err := r.F.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, Epoch: epoch, ExpectedSeq: expected, BatchID: ID("batch")}, now)
			return err
		}},
	}
}

func wrongHead(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		r := f.Start()
		r.AppendFree(r.Noted("2"), r.Noted("3"))
		r.Waits("w", "paid", K("order", "1"))
		d := r.Drive()
		for _, epoch := range []int64{d.Epoch, 0} {
			for _, expected := range []int64{0, 1, 3, 5, 6, math.MaxInt64} {
				for _, w := range r.decisions(epoch, expected) {
					r.unmoved(fmt.Sprintf("%s at %d", w.name, expected), rendezvous.CodeConflict, w.call, "expected", expected, "head", 4)
				}
			}
			for _, w := range r.decisions(epoch, -1) {
				r.unmoved(w.name+" at -1", rendezvous.CodeInvalid, w.call, "field", "expected_seq")
			}
			if epoch != 0 {
				d.Release()
			}
		}
	}
}

// firstCheckDecides fails several checks at once, each time one less: shape, batch id, run, seal, lease, head, order (runs.md section 2).
func firstCheckDecides(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	known := store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Records: recs(r.Noted("n"))}
	must(f.Append(ctx, known, now))(t, "append")
	misshapen, outOfOrder := r.record("note.shouted", "", nil), r.Done("never")
	with := func(epoch, expected int64, records ...rendezvous.Record) func() error {
		return func() error {
			_, err := f.Append(ctx, store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: expected, BatchID: known.BatchID, Records: records}, now)
			return err
		}
	}
	other := func(epoch, expected int64, records ...rendezvous.Record) func() error {
		return func() error {
			_, err := f.Append(ctx, store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: expected, BatchID: ID("batch"), Records: records}, now)
			return err
		}
	}
	d := r.Drive()
	r.unmoved("shape before batch id, lease, head and order", rendezvous.CodeInvalid, with(0, 9, outOfOrder, misshapen))
	r.unmoved("batch id before lease, head and order", rendezvous.CodeConflict, with(0, 9, outOfOrder), "what", "batch_id")
	r.unmoved("lease before head and order, without an epoch", rendezvous.CodeLeaseHeld, other(0, 9, outOfOrder))
	r.unmoved("lease before head and order, under another epoch", rendezvous.CodeFenced, other(d.Epoch+1, 9, outOfOrder))
	r.unmoved("head before order", rendezvous.CodeConflict, other(d.Epoch, 9, outOfOrder), "expected", 9, "head", 2)
	r.unmoved("order", rendezvous.CodeConflict, other(d.Epoch, 2, outOfOrder), "what", "effect")
	d.Conclude(rendezvous.StatusCompleted)
	r.unmoved("batch id before the seal", rendezvous.CodeConflict, with(d.Epoch+1, 9, outOfOrder), "what", "batch_id")
	r.unmoved("the seal before lease, head and order", rendezvous.CodeSealed, other(d.Epoch+1, 9, outOfOrder))
	eq(t, "the batch that is known, after all", must(f.Append(ctx, known, now))(t, "append again").Again, true)
}

func appendsAtOnce(t *testing.T, h *Harness) {
	const writers = 4
	for round := range h.Rounds(t) {
		f := h.FixOf(t, [...]string{"acme", "globex"}[round%2])
		r := f.Start()
		var epoch int64
		if round%3 == 0 {
			epoch = r.Drive().Epoch // a driver and its own late copies
		}
		var fns []func()
		errs := make([]error, writers)
		for i := range writers {
			fns = append(fns, func() {
				a := store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: 1, BatchID: ID("batch"), Records: recs(r.Noted(fmt.Sprint(i)), r.Noted("more"))}
				_, errs[i] = f.Append(ctx, a, now)
			})
		}
		Race(t, fns...)
		winner := -1
		for i, err := range errs {
			if err == nil && winner < 0 {
				winner = i
				continue
			}
			code(t, fmt.Sprintf("append %d beside the winner %d", i, winner), err, rendezvous.CodeConflict, "expected", 1, "head", 3)
		}
		if winner < 0 {
			t.Fatalf("nobody won: %v", errs)
		}
		r.WantKinds(rendezvous.Note, rendezvous.Note)
		var d rendezvous.NameData
		done(t, "decode the note", rendezvous.DecodeData(r.History()[1], &d))
		eq(t, "the note that landed", d.Name, fmt.Sprint(winner))
	}
}

func oneBadRecord(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("open", "paid", K("order", "open"))
	parked, given := d.Parked("parked"), d.Parked("given")
	buffered := f.PutNew("paid", K("order", "buffered"))
	good := recs(r.Begun("a"), r.Done("a"), r.Waited(r.Wait("new", "paid", K("order", "buffered"))), r.Withdrawn("open"), r.Withdrawn("parked"),
		r.Answered("given", given))
	empty := r.Noted("n")
	empty.Data = nil
	foreign := r.Noted("n")
	foreign.RunID = ID("run")
	for what, bad := range map[string]struct {
		rec  rendezvous.Record
		code rendezvous.Code
	}{
		"an unknown kind":              {r.record("note.shouted", "", nil), rendezvous.CodeInvalid},
		"a note without a name":        {empty, rendezvous.CodeInvalid},
		"a record of nobody's run":     {foreign, rendezvous.CodeInvalid},
		"a closing of nothing":         {r.Done("never"), rendezvous.CodeConflict},
		"an attempt opened twice":      {r.Begun("a"), rendezvous.CodeDuplicate},
		"a resume of a running run":    {r.Resumed(), rendezvous.CodeConflict},
		"a second root":                {r.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "default"}), rendezvous.CodeConflict},
		"an answer with another":       {r.Answered("new", parked), rendezvous.CodeConflict},
		"a withdrawal of nothing":      {r.Withdrawn("never"), rendezvous.CodeConflict},
		"a wait under an effect's key": {r.Waited(r.Wait("a", "paid")), rendezvous.CodeDuplicate},
	} {
		for _, batch := range [][]rendezvous.Record{append(slices.Clone(good), bad.rec), append(recs(r.Noted("first")), append(slices.Clone(good), bad.rec)...)} {
			r.unmoved("a batch with "+what, bad.code, func() error { _, err := f.Append(ctx, d.Batch(batch...), now); return err })
		}
		r.WantParked("parked", parked)
		r.WantParked("given", given)
		f.WantState(buffered.EventID, rendezvous.EventLive)
	}
	eq(t, "mail", len(d.Append(good...).Answers), 1) // it was the one record each time
	r.WantAnswer("given", given)
	r.WantAnswer("new", buffered)
	f.WantLive(parked)
}

func recordsOfTwoRuns(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	r, other := f.Start(), f.Start()
	foreign := g.StartAs(store.Start{WorkflowID: r.WorkflowID, RunID: ID("run"), Type: "order"})
	next := r.Continue()
	for what, batch := range map[string][]rendezvous.Record{
		"of another run behind":     recs(next.Noted("n"), other.Noted("n")),
		"of another run before":     recs(other.Noted("n"), next.Noted("n")),
		"of the earlier run":        recs(next.Noted("n"), r.Noted("n")),
		"of another tenant's run":   recs(next.Noted("n"), foreign.Noted("n")),
		"of another run alone":      recs(other.Noted("n")),
		"of another run, terminal":  recs(next.Noted("n"), other.Completed()),
		"of another run and a wait": recs(next.Noted("n"), other.Waited(other.Wait("w", "paid"))),
	} {
		before, theirs := other.outlook(), foreign.outlook()
		next.unmoved("a batch with records "+what, rendezvous.CodeInvalid, func() error {
			_, err := f.Append(ctx, store.Append{RunID: next.ID, ExpectedSeq: next.Head(), BatchID: ID("batch"), Records: batch}, now)
			return err
		})
		eq(t, "the other run", other.outlook(), before)
		eq(t, "the other tenant's run", foreign.outlook(), theirs)
	}
}

func emptyBatch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	empty := func(epoch, expected int64) (store.Appended, error) {
		return f.Append(ctx, store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: expected, BatchID: ID("batch")}, now)
	}
	before := r.outlook()
	eq(t, "an empty batch at the head", must(empty(0, 2))(t, "append nothing"), store.Appended{Head: 2})
	for _, expected := range []int64{0, 1, 3} {
		_, err := empty(0, expected)
		code(t, "an empty batch elsewhere", err, rendezvous.CodeConflict, "expected", expected, "head", 2)
	}
	eq(t, "the workflow", r.outlook(), before)

	d := r.Drive()
	d.Parked("parked")
	r.AskCancel()
	before = r.outlook()
	_, err := empty(0, 3)
	code(t, "without the epoch", err, rendezvous.CodeLeaseHeld)
	_, err = empty(d.Epoch+1, 3)
	code(t, "under another epoch", err, rendezvous.CodeFenced)
	got := must(empty(d.Epoch, 3))(t, "append nothing under the lease")
	eq(t, "head", got.Head, int64(3))
	eq(t, "mail", got.Mail.Mail, 1)
	eq(t, "requests", asked(got.Requests), []rendezvous.RequestKind{rendezvous.RequestCancel})
	eq(t, "the workflow", r.outlook(), before)

	d.Conclude(rendezvous.StatusCancelled)
	_, err = empty(0, r.Head())
	code(t, "after the end", err, rendezvous.CodeSealed)
}

func recordsAndRows(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "append", func() (func() error, func(error, bool)) {
		r := f.Start()
		d := r.Drive()
		d.Waits("open", "paid", K("order", r.ID))
		parked, given := d.Parked("parked"), d.Parked("given")
		buffered := f.PutNew("paid", K("buffered", r.ID))
		before := r.outlook()
		batch := d.Batch(r.Begun("a"), r.Waited(r.Wait("free", "paid", K("free", r.ID))), r.Waited(r.Wait("met", "paid", K("buffered", r.ID))),
			r.Withdrawn("open"), r.Withdrawn("parked"), r.Answered("given", given))
		attempt := func() error { _, err := f.Append(ctx, batch, now); return err }
		judge := func(err error, committed bool) {
			if !committed {
				if err == nil {
					t.Fatal("an append that did not land reports success")
				}
				eq(t, "the workflow after an append that failed", r.outlook(), before)
				r.WantParked("parked", parked)
				r.WantParked("given", given)
				f.WantState(buffered.EventID, rendezvous.EventLive)
				done(t, "the same append again", attempt())
			}
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitRegistered, rendezvous.WaitRegistered, // the three from before
				rendezvous.EffectStarted, rendezvous.WaitRegistered, rendezvous.WaitRegistered, rendezvous.WaitWithdrawn, rendezvous.WaitWithdrawn,
				rendezvous.WaitAnswered, rendezvous.WaitAnswered)
			eq(t, "rows of waits", len(r.Rows()), 1)
			r.WantOpen("free")
			r.WantAnswered("given", given)
			r.WantAnswered("met", buffered)
			f.WantLive(parked)
			row := r.Describe()
			eq(t, "open effects and waits", []int{row.OpenEffects, row.OpenWaits}, []int{1, 1})
		}
		return attempt, judge
	})
}

func onlyTheHeldEvent(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, other := f.Start(), f.Start()
	d := r.Drive()
	d.Waits("open", "paid", K("order", "1"))
	held := d.Parked("parked")
	elsewhere := other.Drive().Parked("parked")
	live := f.PutNew("paid", K("order", "2"))
	unknown := EventOf("paid", K("order", "1"))
	twin := held
	twin.Source = "another shop"
	done(t, "buffer an event with the same id", func() error { _, err := f.Buffer(ctx, twin, now); return err }())
	for what, rec := range map[string]rendezvous.Record{
		"an open wait by a live event":        r.Answered("open", live),
		"an open wait by an event of another": r.Answered("open", held),
		"an open wait by an unknown event":    r.Answered("open", unknown),
		"a parked wait by a live event":       r.Answered("parked", live),
		"a parked wait by another's event":    r.Answered("parked", elsewhere),
		"a parked wait by its event's twin":   r.Answered("parked", twin),
		"a wait that never was":               r.Answered("never", held),
	} {
		for _, batch := range [][]rendezvous.Record{recs(rec), recs(r.Noted("n"), rec, r.Noted("m"))} {
			r.unmoved("answering "+what, rendezvous.CodeConflict, func() error { _, err := f.Append(ctx, d.Batch(batch...), now); return err })
		}
		r.WantParked("parked", held)
		other.WantParked("parked", elsewhere)
		f.WantLive(live)
	}
	d.Append(r.Answered("parked", held))
	r.WantAnswered("parked", held) // the store filled the payload in
	r.unmoved("answering it again", rendezvous.CodeConflict, func() error { _, err := f.Append(ctx, d.Batch(r.Answered("parked", held)), now); return err })
	eq(t, "mail left", len(d.Collect().Records), 0)
}

func answerUnlikeTheEvent(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	held := d.Parked("parked")
	received := f.Stored(held.EventID).ReceivedAt
	with := func(change func(a *rendezvous.WaitAnsweredData, rec *rendezvous.Record)) rendezvous.Record {
		a := rendezvous.WaitAnsweredData{EventSource: held.Source, EventID: held.ID, EventType: held.Type, ReceivedAt: rendezvous.FormatInstant(received)}
		rec := r.Answered("parked", held)
		change(&a, &rec)
		rec.Data = rendezvous.EncodeData(a)
		return rec
	}
	for what, rec := range map[string]rendezvous.Record{
		"type": with(func(a *rendezvous.WaitAnsweredData, _ *rendezvous.Record) { a.EventType = "refunded" }),
		"receipt": with(func(a *rendezvous.WaitAnsweredData, _ *rendezvous.Record) {
			a.ReceivedAt = rendezvous.FormatInstant(received.Add(1000))
		}),
		"source": with(func(_ *rendezvous.WaitAnsweredData, rec *rendezvous.Record) { rec.Source = "another shop" }),
		"payload": with(func(_ *rendezvous.WaitAnsweredData, rec *rendezvous.Record) {
			rec.Payload = []byte("told in confidence")
		}),
		"payload of the same length": with(func(_ *rendezvous.WaitAnsweredData, rec *rendezvous.Record) {
			rec.Payload = make([]byte, len(held.Payload))
		}),
		"payload, emptied": with(func(_ *rendezvous.WaitAnsweredData, rec *rendezvous.Record) { rec.Payload = []byte{} }),
	} {
		r.unmoved("an answer with another "+what, rendezvous.CodeConflict, func() error { _, err := f.Append(ctx, d.Batch(rec), now); return err })
		r.WantParked("parked", held)
	}
	d.Append(with(func(_ *rendezvous.WaitAnsweredData, rec *rendezvous.Record) {
		rec.Source, rec.Payload = held.Source, held.Payload
	}))
	r.WantAnswered("parked", held)
}

func terminalInTheMiddle(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	for _, end := range recs(r.Completed(), r.FailedAs("x"), r.Cancelled()) {
		for what, batch := range map[string][]rendezvous.Record{
			"before a note": recs(end, r.Noted("n")), "between notes": recs(r.Noted("n"), end, r.Noted("n")), "twice": recs(end, end),
			"before another end": recs(end, r.Completed()), "before a next run": recs(end, r.ContinuedTo("next"), r.StartedAfter("next")),
		} {
			r.unmoved(fmt.Sprintf("%s %s", end.Kind, what), rendezvous.CodeInvalid, func() error {
				_, err := f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: 2, BatchID: ID("batch"), Records: batch}, now)
				return err
			})
		}
	}
	out := r.AppendFree(r.Noted("n"), r.Completed())
	eq(t, "head", out.Head, int64(4))
	eq(t, "status", r.Describe().Status, rendezvous.StatusCompleted)
	eq(t, "rows of waits", len(r.Rows()), 0)
}

// runVerbs are all verbs that name a run and refuse one that is not there; ReleaseLease and CancelRun have answers of their own.
func (r *Flow) runVerbs() []named {
	all := append(r.writes(0), r.holderOnly("pod", 1)...)
	return append(all,
		named{"AcquireLease", func() error { _, err := r.Acquire("pod", ID("acquire")); return err }},
		named{"PauseRun", func() error { _, err := r.F.PauseRun(ctx, r.ID, kim, "", now); return err }},
		named{"ResumeRun", func() error { _, err := r.F.ResumeRun(ctx, r.ID, kim, "", now); return err }},
		named{"DeliverTo", func() error { _, err := r.F.DeliverTo(ctx, r.ID, EventOf("paid"), false, now); return err }},
	)
}

func runNobodyStarted(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	theirs := g.Start()
	for what, id := range map[string]string{"nobody's": ID("run"), "another tenant's": theirs.ID, "a workflow's id": f.Start().WorkflowID} {
		r := &Flow{F: f, WorkflowID: ID("workflow"), ID: id}
		for _, v := range append(append(r.runVerbs(), r.withdrawals(0, "w")...),
			named{"ReleaseLease", func() error { _, err := f.ReleaseLease(ctx, r.ID, 1); return err }},
			named{"CancelRun", func() error { _, err := f.CancelRun(ctx, r.ID, kim, "", false, now); return err }},
			named{"CancelRun now", func() error { _, err := f.CancelRun(ctx, r.ID, kim, "", true, now); return err }},
			named{"DescribeWorkflow", func() error { _, err := f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: r.ID}); return err }},
		) {
			before := theirs.outlook()
			code(t, v.name+" for "+what, v.call(), rendezvous.CodeNotFound)
			eq(t, "the other tenant's run", theirs.outlook(), before)
		}
	}
}

func earlierRun(t *testing.T, h *Harness) {
	f := h.Fix(t)
	first := f.Start()
	first.Waits("w", "paid", K("order", "1"))
	second := first.Continue()
	third := second.Continue()
	d := third.Drive()
	d.Waits("w", "paid", K("order", "1"))
	for _, r := range []*Flow{first, second} {
		next := map[*Flow]string{first: second.ID, second: third.ID}[r]
		for _, v := range r.runVerbs() {
			third.unmoved(v.name+" for an earlier run", rendezvous.CodeSealed, v.call, "run", r.ID, "outcome", string(rendezvous.StatusContinued), "current_run", third.ID,
				"next_run", next)
		}
		before := third.outlook()
		eq(t, "releasing an earlier run", must(f.ReleaseLease(ctx, r.ID, d.Epoch))(t, "release").Outcome, store.SuspendNotHeld)
		for _, atOnce := range []bool{false, true} {
			out := must(f.CancelRun(ctx, r.ID, kim, "", atOnce, now))(t, "cancel an earlier run")
			eq(t, "cancelling an earlier run", out, store.Cancelled{Outcome: store.CancelClosed, Status: rendezvous.StatusContinued})
		}
		eq(t, "the workflow", third.outlook(), before)
	}
}

package storetest

import (
	"fmt"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// runsRepeats is runs.md section 8, "Writing": what a batch sent again gets.
var runsRepeats = []Case{
	{Name: "RN-6 a batch sent again gets its first outcome whatever happened since", Run: batchAgain},
	{Name: "RN-6 the answers of a batch come whole with its repeat", Run: answersAgain},
	{Name: "RN-6 a batch id known with other content is a conflict", Run: batchOtherwise},
	{Name: "RN-6 a batch id means its run alone", Run: batchIDsOfOthers},
	{Name: "RN-6 a batch sent twice at once lands once", Run: batchTwiceAtOnce},
	{Name: "RN-7 a lost commit answer is looked up, and the repeat lands it once", Run: lostAppendAnswer},
	{Name: "RN-7 a lost answer and a lost look-up: the repeat finds it landed", Run: lostLookUp},
}

// wantAgain fails the test unless a sent again gets what first was.
func (f *Fix) wantAgain(what string, a store.Append, first store.Appended) {
	f.T.Helper()
	got := must(f.Tenant.Append(ctx, a, now))(f.T, "the same batch "+what)
	eq(f.T, "again "+what, got.Again, true)
	eq(f.T, "first seq "+what, got.FirstSeq, first.FirstSeq)
	eq(f.T, "head "+what, got.Head, first.Head)
	eq(f.T, "answers "+what, got.Answers, first.Answers)
}

func batchAgain(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		r := f.Start()
		d := r.Drive()
		a := d.Batch(r.Begun("a"), r.Noted("n"))
		first := must(f.Append(ctx, a, now))(t, "append")
		eq(t, "again the first time", first.Again, false)
		again := func(what string) {
			t.Helper()
			before := r.outlook()
			f.wantAgain(what, a, first)
			eq(t, "the workflow "+what, r.outlook(), before)
		}
		again("at once")
		d.Seen = first.Head
		d.Append(r.Done("a"), r.Noted("more")) // its opening is closed by now: it is not judged again
		again("after another append")
		h.Advance(leaseEnd)
		again("after its lease ran out")
		next := r.Drive()
		again("under the next driver")
		stale := a
		stale.Epoch = 0
		f.wantAgain("without its epoch", stale, first) // a retry is the same request, whoever sends it
		next.Release()
		r.Pause()
		again("while paused")
		r.Resume()
		successor := r.Continue()
		again("after continue-as-new")
		successor.Conclude(rendezvous.StatusFailed)
		again("after the end")
	}
}

func answersAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	early, given := f.PutNew("paid", K("order", "1")), d.Parked("parked")
	a := d.Batch(r.Waited(r.Wait("met", "paid", K("order", "1"))), r.Answered("parked", given), r.Waited(r.Wait("open", "paid", K("order", "2"))))
	first := must(f.Append(ctx, a, now))(t, "append")
	eq(t, "answers", len(first.Answers), 1)
	eq(t, "effect and seq of the answer", fmt.Sprint(first.Answers[0].Effect, first.Answers[0].Seq), fmt.Sprint("met", first.Head))
	WantAnswerOf(t, first.Answers[0].Record, early)
	f.wantAgain("at once", a, first)
	d.Seen = first.Head
	later := d.Parked("later")
	got := must(f.Append(ctx, a, now))(t, "append again")
	eq(t, "mail as it is now", got.Mail.Mail, 1)
	d.Release()
	r.WantAnswer("later", later)
	r.Conclude(rendezvous.StatusCompleted)
	f.wantAgain("after the end", a, first)
}

func batchOtherwise(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	note := r.Noted("n")
	note.Payload, note.ContentType, note.Source = []byte("p"), "text/plain", "me"
	a := store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Records: recs(r.Begun("a"), note)}
	first := must(f.Append(ctx, a, now))(t, "append")
	change := func(fn func(n *rendezvous.Record)) []rendezvous.Record {
		n := note
		fn(&n)
		return recs(r.Begun("a"), n)
	}
	for what, records := range map[string][]rendezvous.Record{
		"nothing": nil, "less": recs(note), "more": recs(r.Begun("a"), note, note), "another order": recs(note, r.Begun("a")),
		"another effect": recs(r.Begun("b"), note), "another kind": recs(r.Done("a"), note),
		"another attempt":  func() []rendezvous.Record { b := r.Begun("a"); b.Attempt = 2; return recs(b, note) }(),
		"other data":       change(func(n *rendezvous.Record) { n.Data = rendezvous.EncodeData(rendezvous.NameData{Name: "m"}) }),
		"another payload":  change(func(n *rendezvous.Record) { n.Payload = []byte("q") }),
		"no payload":       change(func(n *rendezvous.Record) { n.Payload = nil }),
		"another type":     change(func(n *rendezvous.Record) { n.ContentType = "text/html" }),
		"another source":   change(func(n *rendezvous.Record) { n.Source = "you" }),
		"an empty payload": change(func(n *rendezvous.Record) { n.Payload = []byte{} }),
		"a terminal":       recs(r.Completed()),
	} {
		other := a
		other.Records = records
		r.unmoved("the batch id with "+what, rendezvous.CodeConflict, func() error { _, err := f.Append(ctx, other, now); return err })
	}
	elsewhere := a
	elsewhere.ExpectedSeq = first.Head
	r.unmoved("the batch id at another head", rendezvous.CodeConflict, func() error { _, err := f.Append(ctx, elsewhere, now); return err })
	for name, call := range map[string]func() error{
		"Conclude": func() error {
			_, err := f.Conclude(ctx, store.Conclusion{RunID: r.ID, ExpectedSeq: 1, BatchID: a.BatchID, Outcome: rendezvous.StatusCompleted}, now)
			return err
		},
		"ContinueAsNew": func() error {
			_, err := f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, ExpectedSeq: 1, BatchID: a.BatchID}, now)
			return err
		},
	} {
		r.unmoved("the batch id with "+name, rendezvous.CodeConflict, call)
	}
	f.wantAgain("after the conflicts", a, first)
	r.Conclude(rendezvous.StatusCompleted)
	other := a
	other.Records = recs(note)
	r.unmoved("the batch id with less, after the end", rendezvous.CodeConflict, func() error { _, err := f.Append(ctx, other, now); return err }) // check 2 is before the seal
}

func batchIDsOfOthers(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
	batch := ID("batch")
	for _, r := range []*Flow{f.StartAs(s), f.Start(), g.StartAs(s)} {
		out := must(r.F.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: batch, Records: recs(r.Noted("n"))}, now))(t, "append")
		eq(t, "again", out.Again, false)
		r.WantKinds(rendezvous.Note)
		next := r.Continue()
		out = must(r.F.Append(ctx, store.Append{RunID: next.ID, ExpectedSeq: next.Head(), BatchID: batch, Records: recs(next.Noted("n"))}, now))(t, "append")
		eq(t, "again in the next run", out.Again, false)
		eq(t, "batch of the record", next.History()[4].Batch, batch)
	}
}

func batchTwiceAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		a := store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Records: recs(r.Noted("n"), r.Waited(r.Wait("w", "paid")))}
		c := store.Continuation{RunID: r.ID, ExpectedSeq: 3, BatchID: ID("batch"), NextRun: ID("run")}
		var out [3]store.Appended
		var errs [3]error
		twice := func(i int) func() { return func() { out[i], errs[i] = f.Append(ctx, a, now) } }
		Race(t, twice(0), twice(1), twice(2))
		firsts := 0
		for i := range out {
			done(t, "append", errs[i])
			eq(t, "landed", []int64{out[i].FirstSeq, out[i].Head}, []int64{2, 3})
			if !out[i].Again {
				firsts++
			}
		}
		eq(t, "first outcomes", firsts, 1)
		r.WantKinds(rendezvous.Note, rendezvous.WaitRegistered)
		eq(t, "rows of waits", len(r.Rows()), 1)

		var went [2]store.Continued
		Race(t, func() { went[0], errs[0] = f.ContinueAsNew(ctx, c, now) }, func() { went[1], errs[1] = f.ContinueAsNew(ctx, c, now) })
		for i := range went {
			done(t, "continue", errs[i])
			eq(t, "next run", fmt.Sprint(went[i].RunID, went[i].Seq), fmt.Sprint(c.NextRun, 5))
		}
		eq(t, "runs of the chain", len(must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")), 2)
	}
}

// landing is a verb that lands a batch, made anew for each attempt.
type landing struct {
	verb  string
	fresh func(r *Flow) (attempt func() (again bool, err error), kinds []rendezvous.Kind)
}

var landings = []landing{
	{"append", func(r *Flow) (func() (bool, error), []rendezvous.Kind) {
		a := store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Records: recs(r.Noted("n"))}
		return func() (bool, error) { out, err := r.F.Append(ctx, a, now); return out.Again, err }, []rendezvous.Kind{rendezvous.Note}
	}},
	{"conclude", func(r *Flow) (func() (bool, error), []rendezvous.Kind) {
		c := r.Conclusion(rendezvous.StatusFailed)
		return func() (bool, error) { out, err := r.F.Conclude(ctx, c, now); return out.Again, err }, []rendezvous.Kind{rendezvous.RunFailed}
	}},
	{"continue_as_new", func(r *Flow) (func() (bool, error), []rendezvous.Kind) {
		c := store.Continuation{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch")}
		return func() (bool, error) { out, err := r.F.ContinueAsNew(ctx, c, now); return out.Again, err },
			[]rendezvous.Kind{rendezvous.RunContinued, rendezvous.RunStarted}
	}},
}

func lostAppendAnswer(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, l := range landings {
		r := f.Start()
		attempt, kinds := l.fresh(r)
		h.Faults.Arm(fault.Failure{Verb: l.verb, Point: fault.BeforeCommit})
		_, err := attempt()
		code(t, l.verb+" that never landed", err, rendezvous.CodeUnavailable)
		r.WantKinds()
		lost := h.Faults.Arm(fault.Failure{Verb: l.verb, Point: fault.AfterCommit})
		_, err = attempt()
		done(t, l.verb+" whose commit answer was lost and looked up", err)
		eq(t, "answers lost", lost.Struck(), 1)
		r.WantKinds(kinds...)
		again, err := attempt()
		done(t, l.verb+" again", err)
		eq(t, "again", again, true)
		r.WantKinds(kinds...)
	}
}

func lostLookUp(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, l := range landings {
		r := f.Start()
		attempt, kinds := l.fresh(r)
		lost := h.Faults.Arm(fault.Failure{Verb: l.verb, Point: fault.AfterCommit})
		look := h.Faults.Arm(fault.Failure{Verb: l.verb, Point: fault.AtCall, Call: 1, Skip: 1}) // the first call of what looks the batch up
		_, err := attempt()
		code(t, l.verb+" of which nothing is known", err, rendezvous.CodeCommitUnknown)
		eq(t, "failures", []int{lost.Struck(), look.Struck()}, []int{1, 1})
		r.WantKinds(kinds...)
		if l.verb == "append" {
			r.AppendFree(r.Noted("meanwhile")) // no later append is refused because of it
			kinds = append(kinds, rendezvous.Note)
		}
		again, err := attempt()
		done(t, l.verb+" again", err)
		eq(t, "again", again, true)
		r.WantKinds(kinds...)
	}
}

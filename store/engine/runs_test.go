package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// These are walks through the verbs that write runs, on the memory backend; the battery proves their promises on every backend.

var alice, bob = &rendezvous.Operator{Actor: "alice", Basis: rendezvous.BasisAsserted}, &rendezvous.Operator{Actor: "bob", Basis: rendezvous.BasisAsserted}

func record(kind rendezvous.Kind, effect string, data any) rendezvous.Record {
	r := rendezvous.Record{RunID: "r", Kind: kind, Effect: effect}
	if data != nil {
		r.Data = rendezvous.EncodeData(data)
	}
	return r
}

func begun(effect string) rendezvous.Record {
	return record(rendezvous.EffectStarted, effect, rendezvous.NameData{Name: "charge"})
}

func noted() rendezvous.Record {
	return record(rendezvous.Note, "", rendezvous.NameData{Name: "n"})
}

func registered(effect string, keys ...rendezvous.Key) rendezvous.Record {
	return record(rendezvous.WaitRegistered, effect, rendezvous.WaitRegisteredData{Type: "paid", Keys: keys})
}

func orderKey(run, effect string) rendezvous.Key {
	return rendezvous.Key{Namespace: "order", Value: run + "/" + effect}
}

func (w *world) write(a store.Append) (store.Appended, error) {
	w.Helper()
	if a.RunID == "" {
		a.RunID = "r"
	}
	return w.t.Append(w.ctx, a, time.Time{})
}

// wrote appends under a batch named after its place.
func (w *world) wrote(epoch, expected int64, records ...rendezvous.Record) store.Appended {
	w.Helper()
	a, err := w.write(store.Append{Epoch: epoch, ExpectedSeq: expected, BatchID: fmt.Sprint("at ", expected), Records: records})
	w.must(err)
	return a
}

func (w *world) history(workflow string) []rendezvous.Record {
	w.Helper()
	records, err := w.t.ReadHistory(w.ctx, workflow)
	w.must(err)
	for i, r := range records {
		if r.Seq != int64(i+1) {
			w.Fatalf("record %d has seq %d", i, r.Seq)
		}
	}
	return records
}

func (w *world) kinds(workflow string, want ...rendezvous.Kind) {
	w.Helper()
	var got []rendezvous.Kind
	for _, r := range w.history(workflow) {
		got = append(got, r.Kind)
	}
	if !slices.Equal(got, want) {
		w.Fatalf("the history is %v, want %v", got, want)
	}
}

func (w *world) describe(run string) store.Workflow {
	w.Helper()
	d, err := w.t.DescribeWorkflow(w.ctx, store.WorkflowRef{RunID: run})
	w.must(err)
	return d
}

func detail(err error, name string) any {
	var e *rendezvous.Error
	if !errors.As(err, &e) {
		return nil
	}
	return e.Details[name]
}

// TestAStartIsAnsweredOnce walks RN-13, RN-14 and RN-17.
func TestAStartIsAnsweredOnce(t *testing.T) {
	w := newWorld(t)
	s := store.Start{WorkflowID: "wf-r", RunID: "r", Type: "order", Input: []byte("in"), Parent: "p", CodeVersion: "1", Operator: alice}
	first, err := w.t.StartRun(w.ctx, s, time.Time{})
	w.must(err)
	if !first.First || first.Seq != 1 || first.Status != rendezvous.StatusRunning || len(first.Notices.Resume) != 1 ||
		first.Notices.Resume[0].Cause != rendezvous.CauseStarted || first.Notices.Resume[0].Queue != "default" {
		t.Fatalf("the start answered %+v", first)
	}
	s.Operator = bob // who asks is not what is asked
	again, err := w.t.StartRun(w.ctx, s, time.Time{})
	w.must(err)
	if again.First || again.Seq != 1 || again.RunID != "r" || again.WorkflowID != "wf-r" || !again.Notices.Empty() {
		t.Fatalf("the repeat answered %+v", again)
	}
	for name, other := range map[string]store.Start{
		"other input":            {WorkflowID: "wf-r", RunID: "r", Type: "order", Input: []byte("out"), Parent: "p", CodeVersion: "1"},
		"no input":               {WorkflowID: "wf-r", RunID: "r", Type: "order", Parent: "p", CodeVersion: "1"},
		"another run":            {WorkflowID: "wf-r", RunID: "r2", Type: "order", Input: []byte("in"), Parent: "p", CodeVersion: "1"},
		"the run of another one": {WorkflowID: "wf-2", RunID: "r", Type: "order", Input: []byte("in"), Parent: "p", CodeVersion: "1"},
	} {
		_, err := w.t.StartRun(w.ctx, other, time.Time{})
		w.want(name, err, rendezvous.ErrConflict)
		if detail(err, "run") != "r" || detail(err, "workflow") != "wf-r" {
			t.Errorf("%s: %v does not name the holder (%v)", name, err, detail(err, "workflow"))
		}
	}
	_, err = w.t.PauseRun(w.ctx, "r", alice, "", time.Time{})
	w.must(err)
	if again, err = w.t.StartRun(w.ctx, s, time.Time{}); err != nil || again.Status != rendezvous.StatusPaused {
		t.Fatalf("the repeat on a paused run answered %+v, %v", again, err)
	}
	_, err = w.t.Conclude(w.ctx, store.Conclusion{RunID: "r", ExpectedSeq: 2, BatchID: "end", Outcome: rendezvous.StatusCompleted}, time.Time{})
	w.must(err)
	again, err = w.t.StartRun(w.ctx, s, time.Time{})
	w.must(err)
	if again.First || again.Status != rendezvous.StatusCompleted || again.Seq != 1 {
		t.Fatalf("the repeat after the end answered %+v", again)
	}
	w.kinds("wf-r", rendezvous.RunStarted, rendezvous.RunPaused, rendezvous.RunCompleted)
	if r := w.history("wf-r")[0]; string(r.Payload) != "in" || r.RunID != "r" || *r.Operator != *alice {
		t.Errorf("the first record is %+v", r)
	}
}

// TestAStartMintsIDs: absent ids are minted, and a named one still finds its start.
func TestAStartMintsIDs(t *testing.T) {
	w := newWorld(t)
	a, err := w.t.StartRun(w.ctx, store.Start{Type: "order"}, time.Time{})
	w.must(err)
	b, err := w.t.StartRun(w.ctx, store.Start{Type: "order"}, time.Time{})
	w.must(err)
	if len(a.RunID) != 36 || a.RunID[14] != '7' || len(a.WorkflowID) != 36 || a.RunID == b.RunID || a.WorkflowID == b.WorkflowID {
		t.Fatalf("minted %+v and %+v", a, b)
	}
	c, err := w.t.StartRun(w.ctx, store.Start{RunID: "mine", Type: "order"}, time.Time{})
	w.must(err)
	again, err := w.t.StartRun(w.ctx, store.Start{RunID: "mine", Type: "order"}, time.Time{})
	w.must(err)
	if again.First || again.WorkflowID != c.WorkflowID {
		t.Fatalf("the repeat by run id answered %+v, the first %+v", again, c)
	}
	for field, bad := range map[string]store.Start{
		"type": {}, "queue": {Type: "t", Queue: "a.b"}, "workflow_id": {Type: "t", WorkflowID: "a\x00"}, "run_id": {Type: "t", RunID: "\xff"},
		"parent": {Type: "t", Parent: "\xff"}, "code_version": {Type: "t", CodeVersion: "\n"},
	} {
		_, err := w.t.StartRun(w.ctx, bad, time.Time{})
		w.want(field, err, rendezvous.ErrInvalid)
		if detail(err, "field") != field {
			t.Errorf("%v names %v, want %s", err, detail(err, "field"), field)
		}
	}
	_, err = w.t.StartRun(w.ctx, store.Start{Type: "t", Input: make([]byte, rendezvous.MaxPayload+1)}, time.Time{})
	w.want("input over the limit", err, rendezvous.ErrTooLarge)
}

// TestStartsRaceForOneID walks RN-15.
func TestStartsRaceForOneID(t *testing.T) {
	w := newWorld(t)
	for round := range 50 {
		id := fmt.Sprint("wf ", round)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = w.t.StartRun(w.ctx, store.Start{WorkflowID: id, RunID: fmt.Sprint(id, i), Type: "order"}, time.Time{})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, rendezvous.ErrConflict) {
				t.Fatalf("a loser was told %v", err)
			}
		}
		if won != 1 {
			t.Fatalf("%d starts won", won)
		}
	}
}

// TestAppendsStandInLine walks RN-1, RN-2, RN-4, RN-5, RN-6, RN-11, RN-12, RN-23 and RN-24.
func TestAppendsStandInLine(t *testing.T) {
	w := newWorld(t)
	_, err := w.write(store.Append{BatchID: "b", Records: []rendezvous.Record{noted()}})
	w.want("an unknown run", err, rendezvous.ErrNotFound)
	w.start("r")
	a := w.wrote(0, 1, begun("a"), noted())
	if a.FirstSeq != 2 || a.Head != 3 || a.Again {
		t.Fatalf("the append answered %+v", a)
	}
	for _, expected := range []int64{0, 1, 4} {
		_, err := w.write(store.Append{ExpectedSeq: expected, BatchID: "x", Records: []rendezvous.Record{noted()}})
		w.want(fmt.Sprint("expected ", expected), err, rendezvous.ErrConflict)
		if detail(err, "expected") != expected || detail(err, "head") != int64(3) {
			t.Errorf("%v does not name both heads", err)
		}
	}
	other := noted()
	other.RunID = "q"
	for name, bad := range map[string][]rendezvous.Record{
		"of two runs":           {noted(), other},
		"a terminal in between": {record(rendezvous.RunCompleted, "", nil), noted()},
		"an unknown kind":       {noted(), record("run.exploded", "", nil)},
		"a kind of later":       {record(rendezvous.TimerStarted, "", nil)},
	} {
		_, err := w.write(store.Append{ExpectedSeq: 3, BatchID: "x", Records: bad})
		w.want(name, err, rendezvous.ErrInvalid)
	}
	_, err = w.write(store.Append{ExpectedSeq: 3, BatchID: "x", Records: []rendezvous.Record{noted(), begun("a")}})
	w.want("an effect opened twice", err, rendezvous.ErrDuplicate)
	if detail(err, "seq") != int64(2) || detail(err, "record") != 1 {
		t.Errorf("%v does not name the opening", err)
	}
	w.kinds("wf-r", rendezvous.RunStarted, rendezvous.EffectStarted, rendezvous.Note)

	if a, err := w.write(store.Append{ExpectedSeq: 3, BatchID: "check"}); err != nil || a.Head != 3 || a.FirstSeq != 0 {
		t.Fatalf("the empty batch answered %+v, %v", a, err)
	}
	_, err = w.write(store.Append{ExpectedSeq: 2, BatchID: "check"})
	w.want("an empty batch at another head", err, rendezvous.ErrConflict)
	_, err = w.write(store.Append{ExpectedSeq: 3, Epoch: 1, BatchID: "x", Records: []rendezvous.Record{noted()}})
	w.want("an epoch on a run never leased", err, rendezvous.ErrFenced)

	l := w.acquire("r", "a")
	_, err = w.write(store.Append{ExpectedSeq: 3, BatchID: "x", Records: []rendezvous.Record{noted()}})
	w.want("no epoch on a leased run", err, rendezvous.ErrLeaseHeld)
	_, err = w.write(store.Append{ExpectedSeq: 3, Epoch: 2, BatchID: "x", Records: []rendezvous.Record{noted()}})
	w.want("a future epoch", err, rendezvous.ErrFenced)
	b := w.wrote(l.Epoch, 3, record(rendezvous.EffectDone, "a", nil))
	if b.FirstSeq != 4 || b.Head != 4 {
		t.Fatalf("the append under the lease answered %+v", b)
	}
	repeat := func(when string) {
		t.Helper()
		got, err := w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 3, BatchID: "at 3", Records: []rendezvous.Record{record(rendezvous.EffectDone, "a", nil)}})
		w.must(err)
		if !got.Again || got.FirstSeq != 4 || got.Head != 4 {
			t.Fatalf("the repeat %s answered %+v", when, got)
		}
		_, err = w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 3, BatchID: "at 3", Records: []rendezvous.Record{noted()}})
		w.want("other content "+when, err, rendezvous.ErrConflict)
	}
	repeat("at once")
	w.wrote(l.Epoch, 4, noted())
	repeat("after another append")
	w.clock.Advance(time.Minute)
	w.acquire("r", "b")
	repeat("after the lease")
	_, err = w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 5, BatchID: "x", Records: []rendezvous.Record{noted()}})
	w.want("the lease taken over", err, rendezvous.ErrFenced)
	c, err := w.t.CancelRun(w.ctx, "r", alice, "", true, time.Time{})
	w.must(err)
	repeat("after the seal")
	_, err = w.write(store.Append{ExpectedSeq: c.Seq, BatchID: "x", Records: []rendezvous.Record{noted()}})
	w.want("after the seal", err, rendezvous.ErrSealed)
}

// TestAWorkflowBeginsByAppend: RunStarted first, at 0, naming the workflow, is a start (RN-1, HI-10).
func TestAWorkflowBeginsByAppend(t *testing.T) {
	w := newWorld(t)
	root := record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "q"})
	_, err := w.write(store.Append{WorkflowID: "wf", BatchID: "b", Records: []rendezvous.Record{noted(), root}})
	w.want("not RunStarted first", err, rendezvous.ErrInvalid)
	_, err = w.write(store.Append{WorkflowID: "wf", ExpectedSeq: 1, BatchID: "b", Records: []rendezvous.Record{root}})
	w.want("not at 0", err, rendezvous.ErrConflict)
	_, err = w.write(store.Append{BatchID: "b", Records: []rendezvous.Record{root}})
	w.want("no workflow named", err, rendezvous.ErrNotFound)
	a, err := w.write(store.Append{WorkflowID: "wf", BatchID: "b", Records: []rendezvous.Record{root, begun("a")}})
	w.must(err)
	if a.FirstSeq != 1 || a.Head != 2 || len(a.Notices.Resume) != 1 {
		t.Fatalf("the first append answered %+v", a)
	}
	again, err := w.write(store.Append{WorkflowID: "wf", BatchID: "b", Records: []rendezvous.Record{root, begun("a")}})
	w.must(err)
	if !again.Again || again.FirstSeq != 1 || again.Head != 2 {
		t.Fatalf("its repeat answered %+v", again)
	}
	s, err := w.t.StartRun(w.ctx, store.Start{WorkflowID: "wf", RunID: "r", Type: "order", Queue: "q"}, time.Time{})
	if err != nil || s.First {
		t.Fatalf("the same start by StartRun answered %+v, %v", s, err)
	}
	_, err = w.write(store.Append{WorkflowID: "wf", BatchID: "c", Records: []rendezvous.Record{root}})
	w.want("a second root", err, rendezvous.ErrConflict)
	_, err = w.write(store.Append{ExpectedSeq: 2, BatchID: "d", Records: []rendezvous.Record{root}})
	w.want("a second root behind the first", err, rendezvous.ErrConflict)
	w.kinds("wf", rendezvous.RunStarted, rendezvous.EffectStarted)
	if d := w.describe("r"); d.OpenEffects != 1 || d.Queue != "q" || d.Head != 2 || !d.CreatedAt.Equal(d.StartedAt) {
		t.Errorf("the row is %+v", d)
	}
}

// TestALostCommitIsLookedUp walks RN-7: the append finds itself landed, or says so.
func TestALostCommitIsLookedUp(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	w.faults.Arm(fault.Failure{Verb: "append", Point: fault.AfterCommit})
	if a := w.wrote(0, 1, noted()); a.FirstSeq != 2 || a.Head != 2 {
		t.Fatalf("the append whose answer was lost answered %+v", a)
	}
	w.faults.Arm(fault.Failure{Verb: "append", Point: fault.AfterCommit})
	w.faults.Arm(fault.Failure{Verb: "append", Point: fault.AtCall, Call: 1, Skip: 1})
	b := store.Append{ExpectedSeq: 2, BatchID: "b", Records: []rendezvous.Record{noted()}}
	_, err := w.write(b)
	w.want("the look-up failed too", err, rendezvous.ErrCommitUnknown)
	a, err := w.write(b)
	w.must(err)
	if !a.Again || a.FirstSeq != 3 {
		t.Fatalf("the repeat answered %+v", a)
	}
	w.faults.Arm(fault.Failure{Verb: "append", Point: fault.BeforeCommit})
	b.ExpectedSeq, b.BatchID = 3, "c"
	_, err = w.write(b)
	w.want("before the commit", err, rendezvous.ErrUnavailable)
	a, err = w.write(b)
	w.must(err)
	if a.Again || a.FirstSeq != 4 {
		t.Fatalf("the repeat of what never landed answered %+v", a)
	}
}

// TestAppendedWaits: a wait in a batch is answered behind it, or stays; one the batch withdraws needs no row (RN-8).
func TestAppendedWaits(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	_, err := w.t.Buffer(w.ctx, rendezvous.Event{
		EventID: rendezvous.EventID{Source: "shop", ID: "e"}, Type: "paid", Keys: []rendezvous.Key{orderKey("r", "a")}, Payload: []byte("money"),
	}, time.Time{})
	w.must(err)
	l := w.acquire("r", "a")
	batch := []rendezvous.Record{
		registered("a", orderKey("r", "a")), registered("b", orderKey("r", "b")), registered("c", orderKey("r", "c")),
		record(rendezvous.WaitWithdrawn, "c", rendezvous.ReasonData{Reason: "changed"}),
	}
	got := w.wrote(l.Epoch, 1, batch...)
	if got.FirstSeq != 2 || got.Head != 6 || len(got.Answers) != 1 || got.Answers[0].Effect != "a" || got.Answers[0].Seq != 6 ||
		string(got.Answers[0].Record.Payload) != "money" {
		t.Fatalf("the batch answered %+v", got)
	}
	again := w.wrote(l.Epoch, 1, batch...)
	if !again.Again || again.Head != 6 || len(again.Answers) != 1 || string(again.Answers[0].Record.Payload) != "money" {
		t.Fatalf("the repeat answered %+v", again)
	}
	w.kinds("wf-r", rendezvous.RunStarted, rendezvous.WaitRegistered, rendezvous.WaitRegistered, rendezvous.WaitRegistered, rendezvous.WaitWithdrawn,
		rendezvous.WaitAnswered)
	page, err := w.t.Waiting(w.ctx, store.WaitFilter{RunID: "r"}, 0, "")
	w.must(err)
	if len(page.Waits) != 1 || page.Waits[0].Effect != "b" {
		t.Fatalf("waiting: %+v", page.Waits)
	}
	if d := w.describe("r"); d.OpenWaits != 1 {
		t.Errorf("open waits %d, want 1", d.OpenWaits)
	}
}

// TestAppendedAnswers walks RN-9: only the held event answers, with the store's payload.
func TestAppendedAnswers(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	l := w.acquire("r", "a")
	w.park("r", l.Epoch, "a")
	w.park("r", l.Epoch, "b")
	_, err := w.t.RegisterWait(w.ctx, store.Registration{
		Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: "r", Effect: "idle"}, Type: "paid", Keys: []rendezvous.Key{orderKey("r", "idle")}}, Epoch: l.Epoch,
	}, time.Time{})
	w.must(err)
	answers := func(effect, id string) rendezvous.Record {
		return record(rendezvous.WaitAnswered, effect, rendezvous.WaitAnsweredData{EventSource: "shop", EventID: id})
	}
	wrong := answers("a", "r/a")
	wrong.Payload = []byte("FOR a")
	for name, bad := range map[string]rendezvous.Record{
		"a wait that holds nothing": answers("idle", "r/idle"), "another event": answers("a", "r/b"), "other bytes": wrong, "no wait": answers("z", "r/a"),
	} {
		_, err := w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 4, BatchID: name, Records: []rendezvous.Record{noted(), bad}})
		w.want(name, err, rendezvous.ErrConflict)
		if detail(err, "record") != 1 {
			t.Errorf("%s: %v does not say which record", name, err)
		}
	}
	got := w.wrote(l.Epoch, 4, answers("a", "r/a"))
	if got.Head != 5 || got.Mail.Mail != 1 {
		t.Fatalf("the answer's append answered %+v, want head 5 and mail 1", got)
	}
	r := w.history("wf-r")[4]
	if r.Kind != rendezvous.WaitAnswered || string(r.Payload) != "for a" || r.Source != "shop" || r.Batch != "at 4" {
		t.Fatalf("the record is %+v", r)
	}
	e, err := w.t.LookupEvent(w.ctx, rendezvous.EventID{Source: "shop", ID: "r/a"}, true)
	w.must(err)
	if e.State != rendezvous.EventConsumed || e.Seq != 5 || e.HasPayload {
		t.Fatalf("the event is %+v", e)
	}
	got = w.wrote(l.Epoch, 5, record(rendezvous.WaitWithdrawn, "b", rendezvous.ReasonData{Reason: "enough"}))
	if got.Mail.Mail != 0 || len(got.Notices.Events) != 1 {
		t.Fatalf("the withdrawal answered %+v, want no mail and the event to offer", got)
	}
	e, err = w.t.LookupEvent(w.ctx, rendezvous.EventID{Source: "shop", ID: "r/b"}, true)
	w.must(err)
	if e.State != rendezvous.EventLive || !bytes.Equal(e.Payload, []byte("for b")) {
		t.Fatalf("the released event is %+v", e)
	}
}

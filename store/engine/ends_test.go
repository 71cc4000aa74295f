package engine_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// TestConclusions walks RN-40 to RN-43.
func TestConclusions(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	l := w.acquire("r", "a")
	w.park("r", l.Epoch, "a")
	w.wrote(l.Epoch, 2, registered("idle", orderKey("r", "idle")), begun("x"), record(rendezvous.EffectFailed, "x", rendezvous.EffectFailedData{Code: "c"}))
	c := store.Conclusion{RunID: "r", Epoch: 7, ExpectedSeq: 5, BatchID: "end", Outcome: rendezvous.StatusFailed, Code: "broke", Reason: "why", Result: []byte("d")}
	_, err := w.t.Conclude(w.ctx, c, time.Time{})
	w.want("an invented epoch", err, rendezvous.ErrFenced)
	c.Epoch = l.Epoch
	for call := 1; ; call++ {
		f := w.faults.Arm(fault.Failure{Verb: "conclude", Point: fault.AtCall, Call: call})
		_, err := w.t.Conclude(w.ctx, c, time.Time{})
		if f.Struck() == 0 {
			f.Disarm()
			w.must(err)
			break
		}
		w.want("a failure inside", err, rendezvous.ErrUnavailable)
		if d := w.describe("r"); d.Status != rendezvous.StatusRunning || d.Head != 5 || d.LeaseOwner == "" {
			t.Fatalf("after a failure at call %d the row is %+v", call, d)
		}
	}
	got, err := w.t.Conclude(w.ctx, c, time.Time{})
	w.must(err)
	if !got.Again || got.Seq != 6 || got.Retired.Waits != 2 || len(got.Retired.Released) != 1 || got.Retired.Released[0].ID != "r/a" {
		t.Fatalf("the repeat answered %+v", got)
	}
	c.BatchID = "end2"
	_, err = w.t.Conclude(w.ctx, c, time.Time{})
	w.want("another batch", err, rendezvous.ErrSealed)
	if detail(err, "outcome") != "failed" {
		t.Errorf("%v does not name the outcome", err)
	}
	d := w.describe("r")
	if d.Status != rendezvous.StatusFailed || d.LeaseOwner != "" || d.LeaseEpoch != l.Epoch || d.FailureCode != "broke" || d.FailureReason != "why" ||
		d.FailedEffect != "x" || d.ClosedAt.IsZero() || d.OpenEffects != 0 || d.OpenWaits != 0 {
		t.Fatalf("the row is %+v", d)
	}
	if d.Run == nil || d.Run.LastSeq != 6 || d.Run.Outcome != rendezvous.RunFailed || d.Run.ClosedAt.IsZero() {
		t.Fatalf("the run row is %+v", d.Run)
	}
	e, err := w.t.LookupEvent(w.ctx, rendezvous.EventID{Source: "shop", ID: "r/a"}, true)
	w.must(err)
	if e.State != rendezvous.EventLive || string(e.Payload) != "for a" {
		t.Fatalf("the released event is %+v", e)
	}
	for name, bad := range map[string]store.Conclusion{
		"timed_out":     {Outcome: rendezvous.StatusTimedOut, Reason: "late"},
		"continued":     {Outcome: rendezvous.StatusContinued},
		"no outcome":    {},
		"failed":        {Outcome: rendezvous.StatusFailed},
		"code":          {Outcome: rendezvous.StatusCompleted, Code: "c"},
		"cancel result": {Outcome: rendezvous.StatusCancelled, Result: []byte("x")},
	} {
		bad.RunID, bad.BatchID = "r", "x"
		_, err := w.t.Conclude(w.ctx, bad, time.Time{})
		w.want(name, err, rendezvous.ErrInvalid)
	}
}

// TestARunGoesOnAsNew walks RN-12, RN-46, RN-47 and HI-31.
func TestARunGoesOnAsNew(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	l := w.acquire("r", "a")
	w.wrote(l.Epoch, 1, begun("x"), registered("idle", orderKey("r", "idle")))
	c := store.Continuation{RunID: "r", Epoch: l.Epoch, ExpectedSeq: 3, BatchID: "next", NextRun: "r2", Input: []byte("more")}
	_, err := w.t.ContinueAsNew(w.ctx, c, time.Time{})
	w.want("an open effect", err, rendezvous.ErrConflict)
	if detail(err, "effect") != "x" {
		t.Errorf("%v does not name the effect", err)
	}
	w.wrote(l.Epoch, 3, record(rendezvous.EffectDone, "x", nil))
	asked, err := w.t.CancelRun(w.ctx, "r", alice, "stop", false, time.Time{})
	w.must(err)
	w.clock.Advance(time.Second)
	c.ExpectedSeq = 4
	got, err := w.t.ContinueAsNew(w.ctx, c, time.Time{})
	w.must(err)
	if got.RunID != "r2" || got.Seq != 6 || got.Retired.Waits != 1 || !got.Notices.Empty() {
		t.Fatalf("the continuation answered %+v", got)
	}
	again, err := w.t.ContinueAsNew(w.ctx, c, time.Time{})
	w.must(err)
	if !again.Again || again.RunID != "r2" || again.Seq != 6 || again.Retired.Waits != 1 {
		t.Fatalf("its repeat answered %+v", again)
	}
	d := w.describe("r2")
	if d.RunID != "r2" || d.Status != rendezvous.StatusRunning || d.LeaseEpoch != l.Epoch || d.LeaseOwner == "" || d.Type != "order" || d.Queue != "default" ||
		!d.ClosedAt.IsZero() || !d.StartedAt.After(d.CreatedAt) || d.OpenWaits != 0 || len(d.Requests) != 1 || d.Requests[0].Reason != asked.Request.Reason {
		t.Fatalf("the row is %+v", d)
	}
	_, err = w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 6, BatchID: "late", Records: []rendezvous.Record{noted()}})
	w.want("a late batch of the old run", err, rendezvous.ErrSealed)
	if detail(err, "outcome") != "continued_as_new" || detail(err, "current_run") != "r2" || detail(err, "next_run") != "r2" {
		t.Errorf("%v names %v", err, detail(err, "next_run"))
	}
	x := begun("x") // the same word means something new
	x.RunID = "r2"
	_, err = w.write(store.Append{RunID: "r2", Epoch: l.Epoch, ExpectedSeq: 6, BatchID: "b", Records: []rendezvous.Record{x}})
	w.must(err)
	chain, err := w.t.ReadRunChain(w.ctx, "wf-r", 0, 0)
	w.must(err)
	if len(chain) != 2 || chain[0].LastSeq != 5 || chain[1].FirstSeq != 6 || chain[1].PreviousRun != "r" || chain[0].Status != rendezvous.StatusContinued {
		t.Fatalf("the chain is %+v", chain)
	}
	if s, err := w.t.StartRun(w.ctx, store.Start{WorkflowID: "wf-r", RunID: "r", Type: "order"}, time.Time{}); err != nil || s.Status != rendezvous.StatusContinued {
		t.Fatalf("the first run's start answered %+v, %v", s, err)
	}
	w.start("q")
	free, err := w.t.ContinueAsNew(w.ctx, store.Continuation{RunID: "q", ExpectedSeq: 1, BatchID: "n", Type: "other", Queue: "side"}, time.Time{})
	w.must(err)
	if len(free.Notices.Resume) != 1 || free.Notices.Resume[0].RunID != free.RunID || free.Notices.Resume[0].Queue != "side" {
		t.Fatalf("a free run going on answered %+v", free)
	}
	_, err = w.t.ContinueAsNew(w.ctx, store.Continuation{RunID: free.RunID, ExpectedSeq: 3, BatchID: "n", NextRun: "r"}, time.Time{})
	w.want("a next run that is taken", err, rendezvous.ErrConflict)
}

// TestPausing walks RN-51, RN-52, RN-53 and RN-57.
func TestPausing(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	p, err := w.t.PauseRun(w.ctx, "r", alice, "hold", time.Time{})
	w.must(err)
	if p.Outcome != store.PausePaused || p.Seq != 2 || !p.Notices.Empty() {
		t.Fatalf("pausing a free run answered %+v", p)
	}
	if p, err = w.t.PauseRun(w.ctx, "r", bob, "", time.Time{}); err != nil || p.Outcome != store.PauseAlreadyPaused || *p.Operator != *alice || p.Since.IsZero() {
		t.Fatalf("pausing again answered %+v, %v", p, err)
	}
	p, err = w.t.ResumeRun(w.ctx, "r", bob, "", time.Time{})
	w.must(err)
	if p.Outcome != store.PauseResumed || p.Seq != 3 || len(p.Notices.Resume) != 1 || p.Notices.Resume[0].Cause != rendezvous.CauseResumed {
		t.Fatalf("resuming answered %+v", p)
	}
	if p, err = w.t.ResumeRun(w.ctx, "r", bob, "", time.Time{}); err != nil || p.Outcome != store.PauseNotPaused {
		t.Fatalf("resuming again answered %+v, %v", p, err)
	}
	l := w.acquire("r", "a")
	w.wrote(l.Epoch, 3, begun("x"))
	if p, err = w.t.PauseRun(w.ctx, "r", alice, "hold", time.Time{}); err != nil || p.Outcome != store.PauseRequested {
		t.Fatalf("pausing a leased run answered %+v, %v", p, err)
	}
	_, err = w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 4, BatchID: "x", Records: []rendezvous.Record{begun("y")}})
	w.want("new work while pausing", err, rendezvous.ErrConflict)
	if detail(err, "what") != "pausing" {
		t.Errorf("%v is about %v", err, detail(err, "what"))
	}
	a := w.wrote(l.Epoch, 4, record(rendezvous.EffectDone, "x", nil))
	if len(a.Requests) != 1 || a.Requests[0].Kind != rendezvous.RequestPause || *a.Requests[0].Operator != *alice {
		t.Fatalf("the driver is told %+v", a.Requests)
	}
	if p, err = w.t.ResumeRun(w.ctx, "r", bob, "", time.Time{}); err != nil || p.Outcome != store.PauseTakenBack {
		t.Fatalf("taking it back answered %+v, %v", p, err)
	}
	w.wrote(l.Epoch, 5, begun("y"))
	w.wrote(l.Epoch, 6, record(rendezvous.RunPaused, "", nil))
	_, err = w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 7, BatchID: "x", Records: []rendezvous.Record{noted()}})
	w.want("the epoch behind RunPaused", err, rendezvous.ErrFenced)
	_, err = w.t.AcquireLease(w.ctx, "r", "pod/2", rendezvous.DefaultLease, "b")
	w.want("acquiring a paused run", err, rendezvous.ErrConflict)
	if d := w.describe("r"); d.Status != rendezvous.StatusPaused || d.LeaseOwner != "" || d.Run.Status != rendezvous.StatusPaused {
		t.Fatalf("the row is %+v", d)
	}
	w.wrote(0, 7, record(rendezvous.RunResumed, "", nil))
	late := w.acquire("r", "c")
	w.clock.Advance(time.Minute)
	if p, err = w.t.PauseRun(w.ctx, "r", alice, "", time.Time{}); err != nil || p.Outcome != store.PausePaused {
		t.Fatalf("pausing over an expired lease answered %+v, %v", p, err)
	}
	_, err = w.write(store.Append{Epoch: late.Epoch, ExpectedSeq: 9, BatchID: "y", Records: []rendezvous.Record{noted()}})
	w.want("the expired epoch behind the pause", err, rendezvous.ErrFenced)
}

// TestCancelling walks RN-54, RN-55 and RN-56.
func TestCancelling(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first, err := w.t.CancelRun(w.ctx, "r", alice, "too late", false, at)
	w.must(err)
	want := rendezvous.Request{Kind: rendezvous.RequestCancel, Operator: alice, Reason: "too late", At: at}
	check := func(r rendezvous.Request) {
		t.Helper()
		if r.Kind != want.Kind || *r.Operator != *want.Operator || r.Reason != want.Reason || !r.At.Equal(want.At) {
			t.Fatalf("the request is %+v, want %+v", r, want)
		}
	}
	check(*first.Request)
	if first.Outcome != store.CancelRequested || len(first.Notices.Resume) != 1 || first.Notices.Resume[0].Cause != rendezvous.CauseCancelled {
		t.Fatalf("asking answered %+v", first)
	}
	second, err := w.t.CancelRun(w.ctx, "r", bob, "me too", false, time.Time{})
	w.must(err)
	check(*second.Request)
	l := w.acquire("r", "a")
	if len(l.Requests) != 1 {
		t.Fatalf("the driver is told %+v", l.Requests)
	}
	check(l.Requests[0])
	w.park("r", l.Epoch, "a")
	now, err := w.t.CancelRun(w.ctx, "r", bob, "now", true, time.Time{})
	w.must(err)
	if now.Outcome != store.CancelCancelled || now.Seq != 3 || now.Retired.Waits != 1 || len(now.Retired.Released) != 1 || len(now.Notices.Events) != 1 {
		t.Fatalf("cancelling now answered %+v", now)
	}
	_, err = w.write(store.Append{Epoch: l.Epoch, ExpectedSeq: 3, BatchID: "x", Records: []rendezvous.Record{begun("x")}})
	w.want("the driver's append", err, rendezvous.ErrSealed)
	_, err = w.t.RenewLease(w.ctx, "r", "pod/1", l.Epoch, rendezvous.DefaultLease)
	w.want("the driver's renewal", err, rendezvous.ErrFenced)
	for _, at := range []bool{true, false} {
		again, err := w.t.CancelRun(w.ctx, "r", bob, "", at, time.Time{})
		w.must(err)
		if again.Outcome != store.CancelClosed || again.Status != rendezvous.StatusCancelled {
			t.Fatalf("asking again answered %+v", again)
		}
	}
	d := w.describe("r")
	if d.LeaseEpoch != l.Epoch+1 || d.LeaseOwner != "" || len(d.Requests) != 0 {
		t.Fatalf("the row is %+v", d)
	}
	_, err = w.t.CancelRun(w.ctx, "nobody", bob, "", false, time.Time{})
	w.want("an unknown run", err, rendezvous.ErrNotFound)
	_, err = w.t.PauseRun(w.ctx, "r", bob, "", time.Time{})
	w.want("pausing a sealed run", err, rendezvous.ErrSealed)
}

// TestWhatABatchEndsWith: waits of a batch that ends or pauses its run, and the other kinds by way of Append.
func TestWhatABatchEndsWith(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	_, err := w.t.Buffer(w.ctx, rendezvous.Event{
		EventID: rendezvous.EventID{Source: "shop", ID: "e"}, Type: "paid", Keys: []rendezvous.Key{orderKey("r", "a")}, Payload: []byte("money"),
	}, time.Time{})
	w.must(err)
	l := w.acquire("r", "a")
	got := w.wrote(l.Epoch, 1, registered("a", orderKey("r", "a")), registered("b", orderKey("r", "b")), record(rendezvous.RunPaused, "", nil))
	if got.Head != 5 || len(got.Answers) != 1 || len(got.Notices.Resume) != 0 {
		t.Fatalf("waits before a pause answered %+v, want the answer behind it and no notice", got)
	}
	resumed := w.wrote(0, 5, record(rendezvous.RunResumed, "", nil))
	if len(resumed.Notices.Resume) != 1 || resumed.Notices.Resume[0].Cause != rendezvous.CauseResumed {
		t.Fatalf("resuming by append answered %+v", resumed)
	}
	next := record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "default", PreviousRun: "r"})
	next.RunID = "r2"
	got = w.wrote(0, 6, registered("c", orderKey("r", "c")), record(rendezvous.RunContinued, "", rendezvous.RunContinuedData{NextRun: "r2"}), next)
	if got.Head != 9 || len(got.Notices.Resume) != 1 || got.Notices.Resume[0].RunID != "r2" {
		t.Fatalf("going on by append answered %+v", got)
	}
	if again := w.wrote(0, 6, registered("c", orderKey("r", "c")), record(rendezvous.RunContinued, "", rendezvous.RunContinuedData{NextRun: "r2"}), next); !again.Again {
		t.Fatalf("its repeat answered %+v", again)
	}
	waits, ends := registered("d", orderKey("r2", "d")), record(rendezvous.RunCompleted, "", nil)
	waits.RunID, ends.RunID, ends.Payload = "r2", "r2", []byte("done")
	got, err = w.write(store.Append{RunID: "r2", ExpectedSeq: 9, BatchID: "end", Records: []rendezvous.Record{waits, ends}})
	w.must(err)
	if got.Head != 11 || len(got.Notices.Resume) != 0 {
		t.Fatalf("ending by append answered %+v", got)
	}
	page, err := w.t.Waiting(w.ctx, store.WaitFilter{}, 0, "")
	w.must(err)
	if len(page.Waits) != 0 {
		t.Fatalf("waits outlived their runs: %+v", page.Waits)
	}
	d := w.describe("r2")
	if d.Status != rendezvous.StatusCompleted || d.OpenWaits != 0 || d.Run.Outcome != rendezvous.RunCompleted {
		t.Fatalf("the row is %+v", d)
	}
}

// TestWritersRace walks RN-3, RN-44 and RN-56: one lands, and the history is the winner's.
func TestWritersRace(t *testing.T) {
	w := newWorld(t)
	for round := range 100 {
		run := fmt.Sprint("r", round)
		w.start(run)
		l := w.acquire(run, "a")
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				r := noted()
				r.RunID = run
				_, errs[i] = w.t.Append(w.ctx, store.Append{
					RunID: run, Epoch: l.Epoch, ExpectedSeq: 1, BatchID: fmt.Sprint(i), Records: []rendezvous.Record{r},
				}, time.Time{})
			})
		}
		var now store.Cancelled
		wg.Go(func() { now, errs[4] = w.t.CancelRun(w.ctx, run, alice, "", true, time.Time{}) })
		var ended store.Concluded
		wg.Go(func() {
			ended, errs[5] = w.t.Conclude(w.ctx, store.Conclusion{
				RunID: run, Epoch: l.Epoch, ExpectedSeq: 1, BatchID: "end", Outcome: rendezvous.StatusCompleted,
			}, time.Time{})
		})
		wg.Wait()
		landed := 0
		for _, err := range errs[:4] {
			if err == nil {
				landed++
			} else if !errors.Is(err, rendezvous.ErrConflict) && !errors.Is(err, rendezvous.ErrSealed) {
				t.Fatalf("a losing append was told %v", err)
			}
		}
		w.must(errs[4])
		terminals := 0
		for _, r := range w.history("wf-" + run) {
			if r.Kind.Terminal() {
				terminals++
			}
		}
		if terminals != 1 || landed > 1 || landed == 1 && errs[5] == nil {
			t.Fatalf("%d appends landed, %d terminals, conclude said %v", landed, terminals, errs[5])
		}
		if (errs[5] == nil) != (now.Outcome == store.CancelClosed) || (ended.Seq != 0) != (errs[5] == nil) {
			t.Fatalf("cancel said %+v, conclude %+v %v", now, ended, errs[5])
		}
	}
}

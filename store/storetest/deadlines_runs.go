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

// deadlinesRuns is timers.md section 5, deadlines of runs.
var deadlinesRuns = []Case{
	{Name: "TM-41 RN-16 no deadline arms nothing, and one that is not ahead is refused", Run: runDeadlineBounds},
	{Name: "RN-13 a start sent again after its deadline gets the first answer", Run: startAgainLate},
	{Name: "TM-42 a run's deadline records and seals; waits, timers and unanswered claims are gone or released", Run: runTimedOut},
	{Name: "TM-42 it fires whoever drives the run, and also while it is paused", Run: runTimedOutLeased},
	{Name: "TM-42 a driver may record it itself, from the instant on", Run: runTimedOutByDriver},
	{Name: "TM-42 record, seal, waits, events and lease are one commit", Run: runTimedOutBroken},
	{Name: "TM-42 a page works fifty runs' ends at most, behind the rest", Run: manyEnds},
	{Name: "TM-43 who concludes or continues first leaves no deadline", Run: endedFirst},
	{Name: "TM-43 RN-44 completion, cancel and deadline at once: one terminal, and the losers learn it", Run: endsAndDeadline},
	{Name: "TM-43 continuing and deadline at once: one end, and the next run is not touched", Run: continuedAndDeadline},
	{Name: "TM-44 a successor's deadline is its own", Run: successorDeadline},
	{Name: "TM-19 continuing ends every timer of the run before, and equal names are strangers", Run: continuedTimers},
	{Name: "TM-20 concluding deletes exactly this run's rows, and answers how many", Run: concludedTimers},
	{Name: "RN-41 after the seal nothing fires, is armed or times out", Run: firedAfterSeal},
}

// StartUntil starts a run with a deadline.
func (f *Fix) StartUntil(at time.Time) *Flow {
	f.T.Helper()
	return f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: at})
}

func runDeadlineBounds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	plain := f.Start()
	plain.WantTimers()
	h.noRows(t)
	minute := time.Minute
	over := rendezvous.MaxTimerAfter + time.Microsecond
	bad := map[string]func(s *store.Start){
		"now":                  func(s *store.Start) { s.Deadline = h.Now(t) },
		"past":                 func(s *store.Start) { s.Deadline = h.In(t, -time.Microsecond) },
		"nearly now, rounded":  func(s *store.Start) { s.Deadline = h.In(t, -1) },
		"no time from now":     func(s *store.Start) { s.DeadlineAfter = ptr(time.Duration(0)) },
		"a negative duration":  func(s *store.Start) { s.DeadlineAfter = ptr(-time.Second) },
		"over 100 years":       func(s *store.Start) { s.DeadlineAfter = &over },
		"the longest there is": func(s *store.Start) { s.DeadlineAfter = ptr(time.Duration(1<<63 - 1)) },
		"both":                 func(s *store.Start) { s.Deadline, s.DeadlineAfter = h.In(t, time.Hour), &minute },
		"year 10000":           func(s *store.Start) { s.Deadline = endOfTime.Add(1) },
		"year 0":               func(s *store.Start) { s.Deadline = time.Time{}.Add(-time.Second) },
	}
	for what, change := range bad {
		s := startOf()
		change(&s)
		_, err := f.StartRun(ctx, s, now)
		code(t, "a start with a deadline: "+what, err, rendezvous.CodeInvalid)
		f.wantNotStarted("a start with a deadline: "+what, s)
		r := f.Start()
		c := store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), NextRun: ID("run"), Deadline: s.Deadline, DeadlineAfter: s.DeadlineAfter}
		r.unmoved("a continuation with a deadline: "+what, rendezvous.CodeInvalid, func() error { _, err := f.ContinueAsNew(ctx, c, now); return err })
	}
	for what, data := range map[string]string{
		"now": fmt.Sprintf(`"deadline":%q`, rendezvous.FormatInstant(h.Now(t))), "nothing": `"deadline_after":0`, "negative": `"deadline_after":-5`,
		"over 64 bits": `"deadline_after":9223372036854775808`, "64 bits": `"deadline_after":9223372036854775807`, "both": `"deadline":"2031-01-01T00:00:00Z","deadline_after":5`,
		"no time": `"deadline":"noon"`, "an object": `"deadline":{}`,
	} {
		s := startOf()
		rec := rendezvous.Record{RunID: s.RunID, Kind: rendezvous.RunStarted, Data: []byte(`{"type":"order","queue":"default",` + data + `}`)}
		_, err := f.Append(ctx, store.Append{WorkflowID: s.WorkflowID, RunID: s.RunID, BatchID: ID("batch"), Records: recs(rec)}, now)
		code(t, "a first batch with a deadline: "+what, err, rendezvous.CodeInvalid)
		f.wantNotStarted("a first batch with a deadline: "+what, s)
	}
	h.noRows(t)
	woken := h.marks(f)

	at := f.StartUntil(h.In(t, time.Microsecond))
	row := at.WantArmed(rendezvous.RunTimerID(at.ID), store.Arming{FireAt: h.In(t, time.Microsecond), ArmedSeq: 1})
	eq(t, "class", row.Class, rendezvous.TimerRun)
	at.WantTimers(rendezvous.RunTimerID(at.ID))
	s := startOf()
	s.DeadlineAfter = &minute
	after := f.StartAs(s)
	after.WantArmed(rendezvous.RunTimerID(after.ID), store.Arming{FireAt: after.History()[0].RecordedAt.Add(minute), ArmedSeq: 1})
	var d rendezvous.RunStartedData
	done(t, "decode", rendezvous.DecodeData(after.History()[0], &d))
	eq(t, "recorded as an instant", fmt.Sprint(d.Deadline, d.DeadlineAfter == nil), fmt.Sprint(rendezvous.FormatInstant(h.In(t, minute)), true))
	eq(t, "woken", h.marks(f), woken+2)
	f.StartUntil(endOfTime)
}

func startAgainLate(t *testing.T, h *Harness) {
	f := h.Fix(t)
	minute := time.Minute
	for what, deadline := range map[string]func(s *store.Start){
		"an instant": func(s *store.Start) { s.Deadline = h.In(t, minute) }, "a duration": func(s *store.Start) { s.DeadlineAfter = &minute },
	} {
		s := startOf()
		deadline(&s)
		first := must(f.StartRun(ctx, s, now))(t, "start")
		r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
		again := func(status rendezvous.Status) {
			t.Helper()
			got := must(f.StartRun(ctx, s, now))(t, "start again with "+what)
			eq(t, "answer", fmt.Sprint(got.WorkflowRef, got.Seq, got.First, got.Status), fmt.Sprint(first.WorkflowRef, first.Seq, false, status))
		}
		h.Advance(10 * time.Second)
		again(rendezvous.StatusRunning)
		eq(t, "one deadline", len(r.Timers()), 1)
		h.Advance(time.Hour) // nobody ticks
		again(rendezvous.StatusRunning)
		h.TimerPod(t).Fire(t)
		again(rendezvous.StatusTimedOut)
		other := s
		other.Deadline, other.DeadlineAfter = h.In(t, time.Hour), nil
		_, err := f.StartRun(ctx, other, now)
		code(t, "another deadline", err, rendezvous.CodeConflict)
		other.Deadline = time.Time{}
		_, err = f.StartRun(ctx, other, now)
		code(t, "no deadline", err, rendezvous.CodeConflict)
		h.Advance(store.MaxShardTTL)
	}
}

func runTimedOut(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	for _, f := range h.Two(t) {
		r := f.StartUntil(h.In(t, time.Minute))
		d := r.DriveFor(2 * time.Second)
		d.ArmIn("t", time.Hour)
		d.ArmIn("u", 2*time.Hour)
		key := K("order", r.ID)
		d.WaitsUntil(h.In(t, time.Hour), "late", "paid", K("order", "never"))
		held := d.Parked("held")
		d.Waits("aimed", "paid", K("order", "aimed"))
		aimed := EventOf("paid", K("order", "aimed"))
		r.Targeted("aimed", aimed)
		kept := EventOf("refunded", key)
		r.Kept(kept)
		d.AppendFreeOf(r.Begun("open"))
		other := f.Start()
		mine := other.Arm("t", endOfTime)
		h.Advance(time.Minute - time.Microsecond)
		eq(t, "early", len(p.Page(t, 0).Fires), 0)
		h.Advance(time.Microsecond)
		page := p.Page(t, 0)
		x := one(t, "page", page.Fires, store.FireFired)
		eq(t, "released", x.Retired.Released, []rendezvous.EventID{held.EventID})
		dead := slices.Clone(x.Retired.Dead)
		slices.SortFunc(dead, func(a, b rendezvous.EventID) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
		want := []rendezvous.EventID{aimed.EventID, kept.EventID}
		slices.SortFunc(want, func(a, b rendezvous.EventID) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
		eq(t, "dead", dead, want)
		eq(t, "waits retired", x.Retired.Waits, 3)
		eq(t, "timers retired", x.Retired.Timers >= 3, true)
		eq(t, "events to be offered", len(page.Notices.Events), 1)
		eq(t, "no RESUME to a run that ended", page.Notices.Resume, nil)
		records := r.History()
		last := records[len(records)-1]
		eq(t, "terminal", fmt.Sprint(last.Kind, string(last.Data), last.Seq), fmt.Sprint(rendezvous.RunTimedOut,
			string(rendezvous.EncodeData(rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(h.Now(t))})), x.Seq))
		row := r.Describe()
		eq(t, "row", fmt.Sprint(row.Status, row.OpenEffects, row.OpenWaits, row.LiveTimers, row.LeaseOwner, row.FailureCode, row.ClosedAt),
			fmt.Sprint(rendezvous.StatusTimedOut, 0, 0, 0, "", "", h.Now(t)))
		chain := must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")
		eq(t, "run", fmt.Sprint(chain[0].Status, chain[0].Outcome, chain[0].LastSeq), fmt.Sprint(rendezvous.StatusTimedOut, rendezvous.RunTimedOut, x.Seq))
		eq(t, "rows of waits", len(r.Rows()), 0)
		r.WantTimers()
		f.WantLive(held)
		f.WantDead(aimed.EventID, rendezvous.DeadAddresseeConcluded)
		f.WantDead(kept.EventID, rendezvous.DeadAddresseeConcluded)
		other.WantArmed("t", mine)
		other.WantTimers("t")
		_, err := f.ReopenRun(ctx, store.Reopening{RunID: r.ID, BatchID: ID("batch")}, now)
		code(t, "reopening a run that timed out", err, rendezvous.CodeConflict, "current", string(rendezvous.StatusTimedOut))
		eq(t, "a second page", len(p.Page(t, 0).Fires), 0)
		other.CancelArmed("t")
	}
}

// AppendFreeOf writes records under the driver's epoch at the present head.
func (d *Driver) AppendFreeOf(records ...rendezvous.Record) {
	d.F.T.Helper()
	d.Seen = d.Head()
	d.Append(records...)
}

func runTimedOutLeased(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for what, prepare := range map[string]func(r *Flow) *Driver{
		"leased":              func(r *Flow) *Driver { return r.DriveFor(time.Hour) },
		"abandoned":           func(r *Flow) *Driver { return r.DriveFor(2 * time.Second) },
		"paused":              func(r *Flow) *Driver { r.Pause(); return nil },
		"asked to pause":      func(r *Flow) *Driver { d := r.DriveFor(time.Hour); r.Pause(); return d },
		"asked to cancel":     func(r *Flow) *Driver { d := r.DriveFor(time.Hour); r.AskCancel(); return d },
		"free, after a lease": func(r *Flow) *Driver { r.Drive().Release(); return nil },
	} {
		r := f.StartUntil(h.In(t, time.Minute))
		d := prepare(r)
		epoch := r.Describe().LeaseEpoch
		h.Advance(time.Minute)
		page := p.Page(t, 0)
		one(t, "deadline of a run that is "+what, page.Fires, store.FireFired)
		row := r.Describe()
		eq(t, "row", fmt.Sprint(row.Status, row.LeaseOwner, len(row.Requests)), fmt.Sprint(rendezvous.StatusTimedOut, "", 0))
		if d != nil {
			eq(t, "epoch of a revoked lease", row.LeaseEpoch, epoch+1)
			for _, v := range append(r.writes(d.Epoch), r.holderOnly(d.Owner, d.Epoch)...) {
				if c := rendezvous.CodeOf(v.call()); c != rendezvous.CodeSealed && c != rendezvous.CodeFenced {
					t.Errorf("%s by the old owner: %v", v.name, c)
				}
			}
			eq(t, "release by the old owner", d.Release().Outcome, store.SuspendNotHeld)
		}
		eq(t, "head", r.Head(), row.Head)
		eq(t, "woken", len(h.SweepWoken(t)), 0)
		_, err := r.Acquire("pod", ID("acquire"))
		code(t, "a lease afterwards", err, rendezvous.CodeSealed, "outcome", string(rendezvous.StatusTimedOut))
	}
}

func runTimedOutByDriver(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	ends := map[string]func(d *Driver) error{
		"an append": func(d *Driver) error { return d.try(d.record(rendezvous.RunTimedOut, "", nil))() },
		"a conclusion": func(d *Driver) error {
			_, err := f.Conclude(ctx, store.Conclusion{RunID: d.ID, Epoch: d.Epoch, ExpectedSeq: d.Seen, BatchID: ID("batch"), Outcome: rendezvous.StatusTimedOut}, now)
			return err
		},
	}
	for what, end := range ends {
		none := f.Start().Drive()
		none.unmoved(what+" of a run without a deadline", rendezvous.CodeConflict, func() error { return end(none) })
		none.Release()
		r := f.StartUntil(h.In(t, time.Minute))
		d := r.DriveFor(time.Hour)
		d.ArmIn("t", time.Hour)
		d.Waits("w", "paid", K("order", r.ID))
		r.unmoved(what+", a minute early", rendezvous.CodeInvalid, func() error { return end(d) }, "remaining_ms", int64(60_000))
		h.Advance(time.Minute - time.Microsecond)
		r.unmoved(what+", a microsecond early", rendezvous.CodeInvalid, func() error { return end(d) }, "remaining_ms", int64(1))
		h.Advance(time.Microsecond)
		done(t, what, end(d))
		records := r.History()
		eq(t, "deadline recorded", string(records[len(records)-1].Data),
			string(rendezvous.EncodeData(rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(h.Now(t))})))
		eq(t, "status", r.Describe().Status, rendezvous.StatusTimedOut)
		r.WantTimers()
		eq(t, "left for a page", len(p.Fire(t)), 0)
	}
	free := f.StartUntil(h.In(t, time.Minute))
	h.Advance(time.Minute)
	got := must(f.Conclude(ctx, store.Conclusion{RunID: free.ID, ExpectedSeq: 1, BatchID: "end", Outcome: rendezvous.StatusTimedOut}, now))(t, "conclude a free run")
	eq(t, "timers retired", got.Retired.Timers, 1)
	again := must(f.Conclude(ctx, store.Conclusion{RunID: free.ID, ExpectedSeq: 1, BatchID: "end", Outcome: rendezvous.StatusTimedOut}, now))(t, "again")
	eq(t, "again", fmt.Sprint(again.Seq, again.Again, again.Retired), fmt.Sprint(got.Seq, true, got.Retired))
}

func runTimedOutBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	h.Break(t, "fire_due_timers", func() (func() error, func(error, bool)) {
		r := f.StartUntil(h.In(t, time.Minute))
		d := r.DriveFor(time.Hour)
		d.ArmIn("t", time.Hour)
		e := d.Parked("w")
		head := r.Head()
		h.Advance(time.Minute)
		p.Own(t)
		return func() error { _, err := p.FireDueTimers(ctx, p.Owned, 0); return err }, func(_ error, committed bool) {
			if !committed && r.Describe().Status == rendezvous.StatusRunning {
				eq(t, "head", r.Head(), head)
				eq(t, "owner", r.Describe().LeaseOwner, d.Owner)
				eq(t, "timers", len(r.Timers()), 2)
				r.WantParked("w", e)
			}
			h.Advance(10 * time.Second)
			p.Fire(t)
			eq(t, "status", r.Describe().Status, rendezvous.StatusTimedOut)
			eq(t, "head", r.Head(), head+1)
			r.WantTimers()
			f.WantLive(e)
		}
	})
	h.noRows(t)
}

func manyEnds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	at := h.In(t, time.Minute)
	for range 120 {
		f.StartUntil(at)
	}
	r := f.Start()
	a := r.Arm("t", at.Add(time.Second))
	h.Advance(time.Hour)
	total := 0
	for pages := 1; total < 120; pages++ {
		page := p.Page(t, 0)
		ends := 0
		for i, x := range page.Fires {
			eq(t, "outcome", x.Outcome, store.FireFired)
			if x.Class == rendezvous.TimerRun {
				ends++
			} else if ends > 0 {
				t.Fatalf("outcome %d, a timer's, is behind a run's end", i)
			}
		}
		if ends > 50 || ends == 0 {
			t.Fatalf("page %d worked %d runs' ends", pages, ends)
		}
		total += ends
		eq(t, "more is due", page.Full, total < 120)
		r.WantFired("t", a) // in the first page
	}
	h.noRows(t)
}

func endedFirst(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for what, end := range map[string]func(r *Flow) *Flow{
		"completed": func(r *Flow) *Flow { r.Conclude(rendezvous.StatusCompleted); return r },
		"failed":    func(r *Flow) *Flow { r.Conclude(rendezvous.StatusFailed); return r },
		"cancelled": func(r *Flow) *Flow { r.Revoke(); return r },
		"continued": func(r *Flow) *Flow { return r.Continue() },
	} {
		r := f.StartUntil(h.In(t, time.Minute))
		last := end(r)
		h.noRows(t)
		status, head := last.Describe().Status, last.Head()
		h.Advance(time.Hour)
		eq(t, "fires after it was "+what, len(p.Fire(t)), 0)
		eq(t, "status and head", fmt.Sprint(last.Describe().Status, last.Head()), fmt.Sprint(status, head))
	}
}

func endsAndDeadline(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	won := map[rendezvous.Kind]int{}
	for range h.Rounds(t) {
		r := f.StartUntil(h.In(t, time.Second))
		d := r.DriveFor(time.Hour)
		d.ArmIn("t", time.Second)
		e := d.Parked("w")
		h.Advance(time.Second)
		p.Own(t)
		c := d.Conclusion(rendezvous.StatusCompleted)
		c.Epoch = d.Epoch
		var concluded store.Concluded
		var cancelled store.Cancelled
		var page store.FiredPage
		var errs [3]error
		Race(t,
			func() { concluded, errs[0] = f.Conclude(ctx, c, now) },
			func() { cancelled, errs[1] = f.CancelRun(ctx, r.ID, kim, "", true, now) },
			func() { page, errs[2] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "cancel", errs[1])
		done(t, "fire", errs[2])
		p.Fire(t)
		var terminals []rendezvous.Kind
		for _, k := range r.Kinds() {
			if k.Terminal() {
				terminals = append(terminals, k)
			}
		}
		eq(t, "terminals", len(terminals), 1)
		last := terminals[0]
		won[last]++
		switch last {
		case rendezvous.RunCompleted:
			done(t, "conclude", errs[0])
			eq(t, "cancel learns", fmt.Sprint(cancelled.Outcome, cancelled.Status), fmt.Sprint(store.CancelClosed, rendezvous.StatusCompleted))
		case rendezvous.RunCancelled:
			eq(t, "cancel", cancelled.Outcome, store.CancelCancelled)
		case rendezvous.RunTimedOut:
			eq(t, "cancel learns", fmt.Sprint(cancelled.Outcome, cancelled.Status), fmt.Sprint(store.CancelClosed, rendezvous.StatusTimedOut))
		}
		if last != rendezvous.RunCompleted {
			code(t, "the driver's conclusion", errs[0], rendezvous.CodeSealed, "outcome", string(last.Status()))
		}
		for _, x := range page.Fires {
			if x.Class == rendezvous.TimerRun && x.Outcome == store.FireFired {
				eq(t, "the page's end", last, rendezvous.RunTimedOut)
			}
		}
		eq(t, "seq of a conclusion that went through", errs[0] != nil || concluded.Seq == r.Head(), true)
		r.WantTimers()
		eq(t, "rows of waits", len(r.Rows()), 0)
		f.WantLive(e)
	}
	t.Logf("terminals: %v", won)
}

func continuedAndDeadline(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for range h.Rounds(t) {
		r := f.StartUntil(h.In(t, time.Second))
		h.Advance(time.Second)
		p.Own(t)
		c := store.Continuation{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), NextRun: ID("run"), Deadline: h.In(t, time.Hour)}
		var errs [2]error
		Race(t,
			func() { _, errs[0] = f.ContinueAsNew(ctx, c, now) },
			func() { _, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "fire", errs[1])
		p.Fire(t)
		if errs[0] != nil {
			code(t, "the continuation", errs[0], rendezvous.CodeSealed, "outcome", string(rendezvous.StatusTimedOut))
			r.WantKinds(rendezvous.RunTimedOut)
			r.WantTimers()
			continue
		}
		next := &Flow{F: f, WorkflowID: r.WorkflowID, ID: c.NextRun}
		r.WantKinds(rendezvous.RunContinued, rendezvous.RunStarted)
		eq(t, "status of the next", next.Describe().Status, rendezvous.StatusRunning)
		next.WantArmed(rendezvous.RunTimerID(next.ID), store.Arming{FireAt: c.Deadline, ArmedSeq: 3})
		next.WantTimers(rendezvous.RunTimerID(next.ID))
		next.Conclude(rendezvous.StatusCompleted)
	}
	h.noRows(t)
}

func successorDeadline(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.StartUntil(h.In(t, time.Minute))
	hour := time.Hour
	carry := func(r *Flow, c store.Continuation) *Flow {
		t.Helper()
		c.RunID, c.ExpectedSeq, c.BatchID, c.NextRun = r.ID, r.Head(), ID("batch"), ID("run")
		out := must(f.ContinueAsNew(ctx, c, now))(t, "continue")
		return &Flow{F: f, WorkflowID: r.WorkflowID, ID: out.RunID}
	}
	second := carry(r, store.Continuation{})
	second.WantTimers() // it declares none
	h.Advance(time.Hour)
	eq(t, "the predecessor's", len(p.Fire(t)), 0)
	third := carry(second, store.Continuation{DeadlineAfter: &hour})
	a := store.Arming{FireAt: h.In(t, hour), ArmedSeq: third.Head()}
	third.WantArmed(rendezvous.RunTimerID(third.ID), a)
	fourth := carry(third, store.Continuation{Deadline: h.In(t, 2*hour)})
	h.Advance(hour)
	eq(t, "the predecessor's", len(p.Fire(t)), 0)
	eq(t, "status", fourth.Describe().Status, rendezvous.StatusRunning)
	h.Advance(hour)
	x := one(t, "its own", p.Fire(t), store.FireFired)
	eq(t, "run", x.RunID, fourth.ID)
	eq(t, "status", fourth.Describe().Status, rendezvous.StatusTimedOut)
	var statuses []rendezvous.Status
	for _, s := range must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain") {
		statuses = append(statuses, s.Status)
	}
	eq(t, "chain", statuses, []rendezvous.Status{rendezvous.StatusContinued, rendezvous.StatusContinued, rendezvous.StatusContinued, rendezvous.StatusTimedOut})

	// By records of an append.
	s := f.StartUntil(h.In(t, time.Minute))
	next := ID("run")
	start := s.StartedAfter(next)
	micros := int64(30_000_000)
	start.Data = rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: "default", PreviousRun: s.ID, DeadlineAfter: &micros})
	s.AppendFree(s.ContinuedTo(next), start)
	last := &Flow{F: f, WorkflowID: s.WorkflowID, ID: next}
	last.WantArmed(rendezvous.RunTimerID(next), store.Arming{FireAt: h.In(t, 30*time.Second), ArmedSeq: 3})
	last.WantTimers(rendezvous.RunTimerID(next))
}

func continuedTimers(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	for _, f := range h.Two(t) {
		r := f.Start()
		r.ArmIn("equal", time.Minute)
		r.ArmIn("old", time.Minute)
		key := K("order", r.ID)
		r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
		next := r.Continue()
		next.WantTimers()
		eq(t, "what the continuation retired", must(f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: r.ID}))(t, "describe").Run.Status, rendezvous.StatusContinued)
		eq(t, "cancel by the next", next.CancelArmed("equal").Outcome, store.TimerNotArmed)
		a := next.ArmIn("equal", 2*time.Minute)
		w := next.WaitsUntil(h.In(t, 2*time.Minute), "w", "paid", key)
		h.Advance(time.Minute)
		eq(t, "the predecessor's", len(p.Fire(t)), 0)
		h.Advance(time.Minute)
		eq(t, "the successor's", len(p.Fire(t)), 2)
		next.WantFired("equal", a)
		next.WantTimedOut("w", w.Deadline)
		eq(t, "retired by the chain", len(next.Timers()), 0)
	}
}

func concludedTimers(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	for _, f := range h.Two(t) {
		for what, end := range map[string]func(r *Flow) store.Retired{
			"Conclude":      func(r *Flow) store.Retired { return r.Conclude(rendezvous.StatusFailed).Retired },
			"CancelRun now": func(r *Flow) store.Retired { return r.Revoke().Retired },
			"ContinueAsNew": func(r *Flow) store.Retired {
				c := store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), NextRun: ID("run")}
				return must(f.ContinueAsNew(ctx, c, now))(t, "continue").Retired
			},
		} {
			r, other := f.StartUntil(h.In(t, time.Hour)), f.StartUntil(h.In(t, time.Hour))
			for _, r := range []*Flow{r, other} {
				r.ArmIn("due", 0)
				r.ArmIn("future", time.Hour)
				r.WaitsUntil(h.In(t, time.Hour), "w", "paid", K("order", r.ID))
			}
			p.Own(t)
			held := must(p.ClaimDueTimers(ctx, p.Owned, 5*time.Second, 0))(t, "hold")
			eq(t, "held", len(held), 2)
			rows := other.Timers()
			retired := end(r)
			eq(t, what+" retires", fmt.Sprint(retired.Timers, retired.Waits), "4 1")
			eq(t, "timers of the run", must(f.ListTimers(ctx, store.WorkflowRef{WorkflowID: r.WorkflowID}, "", 0, ""))(t, "list").Timers, nil)
			eq(t, "another run's", other.Timers(), rows)
			eq(t, "records of timers that the end made", countKind(r, rendezvous.TimerCancelled), 0)
			for _, x := range held {
				if x.RunID == r.ID {
					got, _, err := p.FireTimer(ctx, x)
					done(t, "fire a held one", err)
					eq(t, "a held one", got.Outcome, store.FireSuperseded)
				}
			}
			eq(t, "rest retired", other.Conclude(rendezvous.StatusCompleted).Retired.Timers, 4)
		}
	}
	h.noRows(t)
}

func firedAfterSeal(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	a := r.ArmIn("t", 0)
	w := r.WaitsUntil(h.In(t, time.Microsecond), "w", "paid", K("order", "1"))
	h.Advance(time.Second)
	p.Own(t)
	// A page that read its rows before the seal records nothing behind it.
	var conclude store.Concluded
	armed := h.Faults.Arm(fault.Failure{Verb: "conclude", Point: fault.BeforeCommit, Err: rendezvous.Errorf(rendezvous.CodeUnavailable, "not yet")})
	_, err := f.Conclude(ctx, r.Conclusion(rendezvous.StatusCompleted), now)
	code(t, "a conclusion that failed", err, rendezvous.CodeUnavailable)
	armed.Disarm()
	conclude = r.Conclude(rendezvous.StatusCompleted)
	eq(t, "timers retired", conclude.Retired.Timers, 2)
	head := r.Head()
	eq(t, "fires", len(p.Fire(t)), 0)
	after := time.Minute
	for what, call := range map[string]func() error{
		"ArmTimer": func() error {
			_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", After: &after, BatchID: ID("batch")}, now)
			return err
		},
		"CancelTimer": func() error { _, err := f.CancelTimer(ctx, r.ID, 0, "t", ID("batch"), "", now); return err },
		"timer.fired": func() error { return r.tryFree(r.FiredAs("t", a.ArmedSeq)) },
		"a time-out":  func() error { return r.tryFree(r.TimedOut("w")) },
		"registering": func() error {
			_, err := f.RegisterWait(ctx, store.Registration{Wait: r.Until(w.Deadline, "v", "paid")}, now)
			return err
		},
		"scheduling": func() error { _, err := f.ScheduleTimer(ctx, r.WorkflowID, "t", a); return err },
	} {
		code(t, what+" after the seal", call(), rendezvous.CodeSealed, "outcome", string(rendezvous.StatusCompleted))
	}
	eq(t, "head", r.Head(), head)
	for range h.Rounds(t) {
		s := f.Start()
		s.ArmIn("t", 0)
		s.WaitsUntil(h.In(t, time.Microsecond), "w", "paid", K("order", s.ID))
		h.Advance(time.Millisecond)
		p.Own(t)
		var errs [2]error
		Race(t,
			func() { _, errs[0] = f.CancelRun(ctx, s.ID, kim, "", true, now) },
			func() { _, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "end", errs[0])
		done(t, "fire", errs[1])
		kinds := s.Kinds()
		eq(t, "the last record", kinds[len(kinds)-1], rendezvous.RunCancelled)
		s.WantTimers()
	}
}

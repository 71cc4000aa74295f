package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsEnds is runs.md section 8, "Ends". Going on as a new run is in runs_continuing.go, reopening in runs_reopening.go,
// deadlines are in deadlines_runs.go.
var runsEnds = []Case{
	{Name: "RN-40 record, seal, waits, events and lease of a conclusion are one commit", Run: brokenConclusion},
	{Name: "RN-40 an append that ends with a terminal is one commit", Run: brokenTerminal},
	{Name: "RN-40 a cancel now is one commit", Run: brokenCancel},
	{Name: "RN-41 after the seal nothing moves the head", Run: nothingAfterTheSeal},
	{Name: "RN-42 a conclusion under a stale or invented epoch is fenced and seals nothing", Run: fencedConclusion},
	{Name: "RN-42 a conclusion again gets the first outcome with what it retired; another is sealed", Run: concludedAgain},
	{Name: "RN-42 what an outcome has no room for is refused", Run: conclusionShapes},
	{Name: "RN-43 what a conclusion retires is counted and named exactly", Run: retiredExactly},
	{Name: "RN-44 completion and cancel at once: one terminal, and the loser learns it", Run: endsAtOnce},
	{Name: "RN-44 completion, offer and registration at once: an event has one place", Run: endAndOffer},
	{Name: "RN-45 a released event goes to the next waiter by number although its notice was lost", Run: releasedGoesOn},
}

// estate is a run with everything that its end has to do with: an open effect, an open wait, one that is answered, and events held, aimed at it and kept.
type estate struct {
	*Driver
	held, aimed, kept, answered rendezvous.Event
}

func (f *Fix) estate() *estate {
	f.T.Helper()
	r := f.Start()
	s := &estate{Driver: r.Drive(), answered: f.PutNew("paid", K("answered", r.ID)), aimed: EventOf("paid"), kept: EventOf("refunded")}
	s.Append(r.Begun("effect"))
	s.Driver.Waits("open", "paid", K("open", r.ID), K("more", r.ID), K("most", r.ID))
	eq(f.T, "answered at once", s.Register(s.Wait("answered", "paid", K("answered", r.ID))).Outcome, store.RegisterAnswered)
	s.held = s.Parked("held")
	s.Driver.Waits("aimed", "paid", K("aimed", r.ID))
	d := must(f.DeliverTo(ctx, r.ID, s.aimed, false, now))(f.T, "deliver")
	eq(f.T, "delivery", fmt.Sprint(d.Outcome, d.Effect), fmt.Sprint(store.DeliveryMatched, "open")) // the lowest number of those it fits
	eq(f.T, "keep", must(f.DeliverTo(ctx, r.ID, s.kept, true, now))(f.T, "deliver").Outcome, store.DeliveryKept)
	s.Seen = s.Head()
	return s
}

// wantOpen fails the test unless all of the estate is as before its end.
func (s *estate) wantOpen(before outlook) {
	s.F.T.Helper()
	eq(s.F.T, "the workflow after an end that failed", s.outlook(), before)
	s.WantParked("held", s.held)
	s.WantParked("open", s.aimed)
	eq(s.F.T, "addressee of the kept one", s.F.WantState(s.kept.EventID, rendezvous.EventLive).Target, s.ID)
}

// retired is what the end of an estate lets go of.
func (s *estate) retired() store.Retired {
	return store.Retired{Waits: 3, Released: []rendezvous.EventID{s.held.EventID}, Dead: []rendezvous.EventID{s.aimed.EventID, s.kept.EventID}}
}

// wantEnded fails the test unless all of the estate is as after its end.
func (s *estate) wantEnded(status rendezvous.Status) {
	s.F.T.Helper()
	row := s.Describe()
	eq(s.F.T, "status", row.Status, status)
	eq(s.F.T, "owner, open effects and waits", fmt.Sprint(row.LeaseOwner, row.OpenEffects, row.OpenWaits), fmt.Sprint("", 0, 0))
	eq(s.F.T, "requests", row.Requests, nil)
	last := s.History()[row.Head-1]
	eq(s.F.T, "last record", last.Kind.Status(), status)
	eq(s.F.T, "closed_at", row.ClosedAt, last.RecordedAt)
	eq(s.F.T, "rows of waits", len(s.Rows()), 0)
	s.F.WantLive(s.held)
	s.F.WantDead(s.aimed.EventID, rendezvous.DeadAddresseeConcluded)
	s.F.WantDead(s.kept.EventID, rendezvous.DeadAddresseeConcluded)
	s.WantAnswered("answered", s.answered)
	chain := must(s.F.ReadRunChain(ctx, s.WorkflowID, 0, 0))(s.F.T, "read the chain")
	eq(s.F.T, "the run's row", chain, []store.RunSummary{{
		RunID: s.ID, Status: status, FirstSeq: 1, LastSeq: row.Head, StartedAt: row.StartedAt, ClosedAt: row.ClosedAt, Outcome: last.Kind,
	}})
}

func brokenConclusion(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "conclude", func() (func() error, func(error, bool)) {
		s := f.estate()
		before := s.outlook()
		c := store.Conclusion{RunID: s.ID, Epoch: s.Epoch, ExpectedSeq: s.Seen, BatchID: ID("batch"), Outcome: rendezvous.StatusFailed, Code: "x", Reason: "y"}
		attempt := func() error { _, err := f.Conclude(ctx, c, now); return err }
		return attempt, func(err error, committed bool) {
			if !committed {
				if err == nil {
					t.Fatal("a conclusion that did not land reports success")
				}
				s.wantOpen(before)
			}
			got := must(f.Conclude(ctx, c, now))(t, "the same conclusion again")
			eq(t, "again", got.Again, committed)
			eq(t, "retired", got.Retired, s.retired())
			s.wantEnded(rendezvous.StatusFailed)
		}
	})
}

func brokenTerminal(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "append", func() (func() error, func(error, bool)) {
		s := f.estate()
		before := s.outlook()
		batch := s.Batch(s.Noted("n"), s.Completed())
		attempt := func() error { _, err := f.Append(ctx, batch, now); return err }
		return attempt, func(_ error, committed bool) {
			if !committed {
				s.wantOpen(before)
			}
			done(t, "the same append again", attempt())
			s.wantEnded(rendezvous.StatusCompleted)
			eq(t, "head", s.Head(), s.Seen+2)
		}
	})
}

func brokenCancel(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "cancel_run", func() (func() error, func(error, bool)) {
		s := f.estate()
		before := s.outlook()
		attempt := func() error { _, err := f.CancelRun(ctx, s.ID, kim, "not wanted", true, now); return err }
		return attempt, func(_ error, committed bool) {
			got := store.Cancelled{Outcome: store.CancelClosed, Status: rendezvous.StatusCancelled}
			if !committed {
				s.wantOpen(before)
				got = store.Cancelled{Outcome: store.CancelCancelled, Seq: s.Seen + 1, Retired: s.retired()}
			}
			again := s.Revoke()
			again.Notices = store.Notices{}
			eq(t, "the same cancel again", again, got)
			s.wantEnded(rendezvous.StatusCancelled)
			eq(t, "epoch", s.Describe().LeaseEpoch, s.Epoch+1)
		}
	})
}

func nothingAfterTheSeal(t *testing.T, h *Harness) {
	for i, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		s := f.estate()
		status := [...]rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusCancelled}[i]
		s.Driver.Conclude(status)
		sealed := s.outlook()
		fresh := f.PutNew("paid", K("open", s.ID))
		for _, epoch := range []int64{0, s.Epoch} {
			for _, v := range s.writes(epoch) {
				s.unmoved(v.name+" after the seal", rendezvous.CodeSealed, v.call, "outcome", string(status), "run", s.ID, "current_run", s.ID)
			}
		}
		for _, v := range s.holderOnly(s.Owner, s.Epoch) {
			err := v.call()
			if c := rendezvous.CodeOf(err); c != rendezvous.CodeSealed && c != rendezvous.CodeFenced {
				t.Fatalf("%s after the seal: %v, want it refused", v.name, err)
			}
		}
		for _, v := range []named{
			{"AcquireLease", func() error { _, err := s.Acquire("pod", ID("acquire")); return err }},
			{"PauseRun", func() error { _, err := f.PauseRun(ctx, s.ID, kim, "", now); return err }},
			{"ResumeRun", func() error { _, err := f.ResumeRun(ctx, s.ID, kim, "", now); return err }},
			{"DeliverTo", func() error {
				_, err := f.DeliverTo(ctx, s.ID, EventOf("paid", K("open", s.ID)), false, now)
				return err
			}},
		} {
			s.unmoved(v.name+" after the seal", rendezvous.CodeSealed, v.call, "outcome", string(status))
		}
		eq(t, "release", s.Release().Outcome, store.SuspendNotHeld)
		eq(t, "cancel", s.Revoke(), store.Cancelled{Outcome: store.CancelClosed, Status: status})
		eq(t, "offer", f.OfferEvent(fresh.EventID).Outcome, store.OfferNoWaiter)
		eq(t, "match", must(f.MatchWaiter(ctx, fresh.EventID, now))(t, "match").Outcome, store.MatchNoWaiter)
		for _, effect := range []string{"open", "held", "aimed"} {
			o := f.OfferWait(s.WaitID(effect))
			eq(t, "offer of a wait", fmt.Sprint(o.Outcome, o.Closed), fmt.Sprint(store.OfferClosed, rendezvous.ClosedEnded))
			c := must(f.ClaimFor(ctx, s.WaitID(effect), now))(t, "claim")
			eq(t, "claim", fmt.Sprint(c.Event, c.Closed), fmt.Sprint((*rendezvous.Event)(nil), rendezvous.ClosedEnded))
			refs := []store.WaitRef{{Tenant: f.Name(), WaitID: s.WaitID(effect)}}
			o = must(h.Store.DeliverParked(ctx, refs, now))(t, "deliver what was parked").Items[0]
			eq(t, "delivery of what was parked", fmt.Sprint(o.Outcome, o.Closed), fmt.Sprint(store.OfferClosed, rendezvous.ClosedEnded))
			w := must(f.Unsubscribe(ctx, s.WaitID(effect), 0, "", now))(t, "withdraw")
			eq(t, "withdrawal", w, store.Withdrawn{Outcome: store.WithdrawEnded, Seq: s.Head()})
		}
		kept := must(f.DeliverTo(ctx, s.ID, EventOf("paid"), true, now))(t, "deliver and keep")
		eq(t, "delivery that would be kept", kept.Outcome, store.DeliveryDead)
		eq(t, "swept", len(h.SweepUnmet(t).Made(store.OfferDelivered)), 0)
		h.Advance(time.Hour)
		h.wantNoNotice(f, "of an ended run")
		eq(t, "reclaimed", h.SweepLeases(t), nil)
		eq(t, "the workflow", s.outlook(), sealed)
		f.WantLive(fresh)
	}
}

func fencedConclusion(t *testing.T, h *Harness) {
	f := h.Fix(t)
	s := f.estate()
	h.Advance(leaseEnd)
	d := s.Drive()
	for what, epoch := range map[string]int64{"a stale epoch": s.Epoch, "an invented epoch": d.Epoch + 1} {
		for _, outcome := range []rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled} {
			c := s.Conclusion(outcome)
			c.Epoch = epoch
			s.unmoved("a conclusion under "+what, rendezvous.CodeFenced, func() error { _, err := f.Conclude(ctx, c, now); return err }, "epoch", d.Epoch)
		}
	}
	c := s.Conclusion(rendezvous.StatusCompleted)
	s.unmoved("a conclusion without an epoch", rendezvous.CodeLeaseHeld, func() error { _, err := f.Conclude(ctx, c, now); return err }, "owner", d.Owner)
	d.Conclude(rendezvous.StatusCompleted)
	s.wantEnded(rendezvous.StatusCompleted)
}

func concludedAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	s := f.estate()
	c := store.Conclusion{
		RunID: s.ID, Epoch: s.Epoch, ExpectedSeq: s.Seen, BatchID: ID("batch"), Outcome: rendezvous.StatusFailed, Code: "broken", Reason: "it broke",
		Result: []byte("detail"), ContentType: "text/plain", Operator: kim,
	}
	first := must(f.Conclude(ctx, c, now))(t, "conclude")
	eq(t, "the first outcome", fmt.Sprint(first.Seq, first.Again), fmt.Sprint(s.Seen+1, false))
	eq(t, "retired", first.Retired, s.retired())
	eq(t, "events to offer", len(first.Notices.Events), 1)
	eq(t, "event to offer", first.Notices.Events[0].EventID, s.held.EventID)
	eq(t, "notices", len(first.Notices.Resume), 0)
	rec := s.History()[s.Seen]
	eq(t, "the terminal", fmt.Sprint(rec.Kind, rec.Batch, rec.ContentType, *rec.Operator), fmt.Sprint(rendezvous.RunFailed, c.BatchID, "text/plain", *kim))
	SamePayload(t, rec.Payload, c.Result)
	row := s.Describe()
	eq(t, "failure view", fmt.Sprint(row.FailureCode, row.FailureReason), fmt.Sprint("broken", "it broke"))

	before := s.outlook()
	for _, epoch := range []int64{s.Epoch, 0, s.Epoch + 7} { // whoever sends it, it is the same request
		c.Epoch = epoch
		again := must(f.Conclude(ctx, c, now))(t, "conclude again")
		eq(t, "the repeat", again, store.Concluded{Seq: first.Seq, Retired: first.Retired, Again: true})
	}
	kept, _, err := f.UnsubscribeRun(ctx, s.ID, 0, nil, now)
	done(t, "retire again", err)
	eq(t, "the summary that was kept", kept, first.Retired)
	eq(t, "the workflow", s.outlook(), before)

	other := c
	other.Reason = "otherwise"
	s.unmoved("the batch id with another reason", rendezvous.CodeConflict, func() error { _, err := f.Conclude(ctx, other, now); return err })
	for _, outcome := range []rendezvous.Status{rendezvous.StatusFailed, rendezvous.StatusCompleted} {
		other := s.Conclusion(outcome)
		s.unmoved("another conclusion", rendezvous.CodeSealed, func() error { _, err := f.Conclude(ctx, other, now); return err }, "outcome", string(rendezvous.StatusFailed))
	}
	unnamed := f.Start()
	c = store.Conclusion{RunID: unnamed.ID, ExpectedSeq: 1, Outcome: rendezvous.StatusCompleted}
	eq(t, "seq of a conclusion without a batch id", must(f.Conclude(ctx, c, now))(t, "conclude").Seq, int64(2))
	if unnamed.History()[1].Batch == "" {
		t.Fatal("no batch id was minted")
	}
}

func conclusionShapes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for what, c := range map[string]store.Conclusion{
		"no outcome":                 {},
		"an outcome that is none":    {Outcome: rendezvous.StatusPaused},
		"a continuation":             {Outcome: rendezvous.StatusContinued},
		"timed out with a result":    {Outcome: rendezvous.StatusTimedOut, Result: []byte("z")},
		"timed out with a reason":    {Outcome: rendezvous.StatusTimedOut, Reason: "y"},
		"timed out with a code":      {Outcome: rendezvous.StatusTimedOut, Code: "x"},
		"failed without a code":      {Outcome: rendezvous.StatusFailed, Reason: "y"},
		"completed with a code":      {Outcome: rendezvous.StatusCompleted, Code: "x"},
		"completed with a reason":    {Outcome: rendezvous.StatusCompleted, Reason: "y"},
		"cancelled with a result":    {Outcome: rendezvous.StatusCancelled, Result: []byte("z")},
		"cancelled with a code":      {Outcome: rendezvous.StatusCancelled, Code: "x"},
		"a reason of a broken text":  {Outcome: rendezvous.StatusFailed, Code: "x", Reason: "\xff"},
		"a batch id over the limit":  {Outcome: rendezvous.StatusCompleted, BatchID: string(slices.Repeat([]byte("x"), rendezvous.MaxBatchID+1))},
		"a result over the limit":    {Outcome: rendezvous.StatusCompleted, Result: make([]byte, rendezvous.MaxPayload+1)},
		"half an operator":           {Outcome: rendezvous.StatusCompleted, Operator: &rendezvous.Operator{Actor: "kim"}},
		"a negative epoch and batch": {Outcome: rendezvous.StatusCompleted, ExpectedSeq: -1},
	} {
		c.RunID = r.ID
		if c.ExpectedSeq == 0 {
			c.ExpectedSeq = 1
		}
		before := r.outlook()
		_, err := f.Conclude(ctx, c, now)
		if got := rendezvous.CodeOf(err); got != rendezvous.CodeInvalid && got != rendezvous.CodeTooLarge {
			t.Fatalf("%s: %v, want it refused", what, err)
		}
		eq(t, "the workflow after "+what, r.outlook(), before)
	}
}

func retiredExactly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	bystander := f.estate() // another run's estate is nobody's business
	theirs := h.FixOf(t, "globex").estate()
	before, beside := bystander.outlook(), theirs.outlook()
	s := f.estate()
	s.Driver.Waits("keyless", "paid")
	second := s.Parked("second")
	withdrawn := s.Parked("withdrawn")
	must(f.Unsubscribe(ctx, s.WaitID("withdrawn"), s.Epoch, "", now))(t, "withdraw")
	s.Seen = s.Head()
	got := s.Driver.Conclude(rendezvous.StatusCompleted)
	slices.SortFunc(got.Retired.Released, func(a, b rendezvous.EventID) int { return order(a, b, s.held.EventID) })
	slices.SortFunc(got.Retired.Dead, func(a, b rendezvous.EventID) int { return order(a, b, s.aimed.EventID) })
	want := s.retired()
	want.Waits, want.Released = 5, append(want.Released, second.EventID)
	eq(t, "retired", got.Retired, want)
	s.wantEnded(rendezvous.StatusCompleted)
	f.WantLive(second, withdrawn)
	eq(t, "numbers of the released ones stay", f.Stored(s.held.EventID).Number < f.Stored(second.EventID).Number, true)
	eq(t, "live_since of a released one", f.Stored(s.held.EventID).LiveSince, h.Now(t))
	eq(t, "another run", bystander.outlook(), before)
	eq(t, "another tenant's run", theirs.outlook(), beside)
	bystander.wantOpen(before)
	theirs.wantOpen(beside)

	bare := f.Start()
	eq(t, "retired of a run without waits", bare.Conclude(rendezvous.StatusCompleted).Retired, store.Retired{})
}

// order puts first before all others.
func order(a, b, first rendezvous.EventID) int {
	switch first {
	case a:
		return -1
	case b:
		return 1
	}
	return 0
}

func endsAtOnce(t *testing.T, h *Harness) {
	counts := map[rendezvous.Status]int{}
	for round := range h.Rounds(t) {
		f := h.FixOf(t, [...]string{"acme", "globex"}[round%2])
		r := f.Start()
		var d *Driver
		c := store.Conclusion{RunID: r.ID, Outcome: rendezvous.StatusCompleted, BatchID: ID("batch")}
		failing := store.Conclusion{RunID: r.ID, Outcome: rendezvous.StatusFailed, Code: "x", BatchID: ID("batch")}
		held := rendezvous.Event{}
		if round%3 > 0 {
			d = r.Drive()
			held = d.Parked("held")
			c.Epoch, failing.Epoch = d.Epoch, d.Epoch
		}
		c.ExpectedSeq, failing.ExpectedSeq = r.Head(), r.Head()
		var completed, failed store.Concluded
		var cancelled store.Cancelled
		var errs [3]error
		Race(t,
			func() { completed, errs[0] = f.Conclude(ctx, c, now) },
			func() { cancelled, errs[1] = f.CancelRun(ctx, r.ID, kim, "", true, now) },
			func() { failed, errs[2] = f.Conclude(ctx, failing, now) },
		)
		row := r.Describe()
		counts[row.Status]++
		done(t, "cancel", errs[1])
		for i, status := range []rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusCancelled, rendezvous.StatusFailed} {
			won := row.Status == status
			switch {
			case i == 1 && won:
				eq(t, "the winner", fmt.Sprint(cancelled.Outcome, cancelled.Seq), fmt.Sprint(store.CancelCancelled, row.Head))
			case i == 1:
				eq(t, "the cancel that lost", cancelled, store.Cancelled{Outcome: store.CancelClosed, Status: row.Status})
			case won:
				done(t, "the winner", errs[i])
				eq(t, "seq of the winner", []store.Concluded{completed, failed}[i/2].Seq, row.Head)
			default:
				code(t, "the conclusion that lost", errs[i], rendezvous.CodeSealed, "outcome", string(row.Status))
			}
		}
		terminals := 0
		for _, rec := range r.History() {
			if rec.Kind.Terminal() {
				terminals++
			}
		}
		eq(t, "terminals", terminals, 1)
		if d != nil {
			f.WantLive(held)
		}
	}
	t.Logf("came to %v", counts)
}

func endAndOffer(t *testing.T, h *Harness) {
	for range h.Rounds(t) {
		f := h.Fix(t)
		r := f.Start()
		r.Waits("w", "paid", K("order", r.ID))
		e, late := f.PutNew("paid", K("order", r.ID)), f.PutNew("paid", K("late", r.ID))
		var offered store.Offered
		var registered store.Registered
		var errs [3]error
		Race(t,
			func() { _, errs[0] = f.CancelRun(ctx, r.ID, kim, "", true, now) },
			func() { offered, errs[1] = h.Store.OfferBatch(ctx, f.Items(e), now) },
			func() {
				registered, errs[2] = f.RegisterWait(ctx, store.Registration{Wait: r.Wait("late", "paid", K("late", r.ID))}, now)
			},
		)
		done(t, "cancel", errs[0])
		done(t, "offer", errs[1])
		kinds := r.Kinds()
		eq(t, "the last record", kinds[len(kinds)-1], rendezvous.RunCancelled)
		eq(t, "rows of waits", len(r.Rows()), 0)
		if rec := r.Answer("w"); rec != nil {
			eq(t, "offer", offered.Items[0].Outcome, store.OfferDelivered)
			r.WantAnswered("w", e)
		} else {
			eq(t, "offer", offered.Items[0].Outcome, store.OfferNoWaiter)
			f.WantLive(e)
		}
		if errs[2] == nil {
			eq(t, "registration", registered.Outcome, store.RegisterAnswered)
			r.WantAnswered("late", late)
		} else {
			code(t, "registration", errs[2], rendezvous.CodeSealed, "outcome", string(rendezvous.StatusCancelled))
			f.WantLive(late)
		}
		eq(t, "woken runs", h.marks(f), 0)
	}
}

func releasedGoesOn(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, next, last := f.Start(), f.Start(), f.Start()
	d := r.Drive()
	d.Waits("w", "paid", K("order", "1"))
	e := EventOf("paid", K("order", "1"))
	eq(t, "parked", len(f.Send(e).Made(store.OfferParked)), 1)
	next.Waits("w", "paid", K("order", "1"))
	last.Waits("w", "paid", K("order", "1"))
	got := d.Conclude(rendezvous.StatusCompleted) // and nobody sends its notices
	eq(t, "event to offer", got.Notices.Events[0].EventID, e.EventID)
	f.WantLive(e)
	swept := h.SweepUnmet(t)
	eq(t, "delivered by the pass", len(swept.Made(store.OfferDelivered)), 1)
	next.WantAnswered("w", e)
	next.wantNotice(swept.Resume, rendezvous.CauseAnswered, 3)
	last.WantOpen("w")
}

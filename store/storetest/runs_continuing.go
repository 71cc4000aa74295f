package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsContinuing is runs.md section 8, "Ends": going on as a new run.
var runsContinuing = []Case{
	{Name: "RN-46 two linked records adjacent, and the lease covers the next run", Run: continuedUnderLease},
	{Name: "RN-46 type, queue and a pending cancel carry over unless given", Run: continuedCarriesOver},
	{Name: "RN-46 a free run that goes on is woken", Run: continuedFree},
	{Name: "RN-46 a continuation is one commit", Run: brokenContinuation},
	{Name: "RN-47 with an open effect, while paused or after a terminal it is refused and leaves nothing", Run: refusedContinuation},
	{Name: "RN-48 a broadcast event unanswered answers the next run, a targeted one is a dead letter", Run: eventsOverContinuation},
	{Name: "RN-49 chains of 1, 2 and 3 runs list in order", Run: chainsInOrder},
}

// continues continues the driver's run under its lease.
func (d *Driver) continues() (*Flow, store.Continued) {
	d.F.T.Helper()
	c := store.Continuation{RunID: d.ID, Epoch: d.Epoch, ExpectedSeq: d.Head(), BatchID: ID("batch"), NextRun: ID("run")}
	out := must(d.F.ContinueAsNew(ctx, c, now))(d.F.T, "continue "+d.ID)
	return &Flow{F: d.F, WorkflowID: d.WorkflowID, ID: out.RunID}, out
}

func continuedUnderLease(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		s := f.estate()
		s.Append(s.Done("effect"))
		h.Advance(10 * time.Second)
		c := store.Continuation{
			RunID: s.ID, Epoch: s.Epoch, ExpectedSeq: s.Seen, BatchID: ID("batch"), NextRun: ID("run"), Input: []byte("next in"), ContentType: "text/plain",
			CodeVersion: "v2", Operator: kim,
		}
		out := must(f.ContinueAsNew(ctx, c, now))(t, "continue")
		eq(t, "run, seq and again", fmt.Sprint(out.RunID, out.Seq, out.Again), fmt.Sprint(c.NextRun, s.Seen+2, false))
		eq(t, "retired", out.Retired, s.retired())
		eq(t, "notices", len(out.Notices.Resume), 0)
		history := s.History()
		end, start := history[s.Seen], history[s.Seen+1]
		eq(t, "runs, kinds and batches", fmt.Sprint(end.RunID, end.Kind, end.Batch, start.RunID, start.Kind, start.Batch),
			fmt.Sprint(s.ID, rendezvous.RunContinued, c.BatchID, c.NextRun, rendezvous.RunStarted, c.BatchID))
		eq(t, "data of the end", string(end.Data), string(rendezvous.EncodeData(rendezvous.RunContinuedData{NextRun: c.NextRun})))
		eq(t, "data of the start", string(start.Data),
			string(rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: "default", PreviousRun: s.ID, CodeVersion: "v2"})))
		SamePayload(t, start.Payload, c.Input)

		row := s.Describe()
		eq(t, "run and status", fmt.Sprint(row.RunID, row.Status), fmt.Sprint(c.NextRun, rendezvous.StatusRunning))
		eq(t, "lease", fmt.Sprint(row.LeaseOwner, row.LeaseEpoch, row.LeaseRemaining), fmt.Sprint(s.Owner, s.Epoch, lease-10*time.Second))
		eq(t, "open effects and waits", []int{row.OpenEffects, row.OpenWaits}, []int{0, 0})
		eq(t, "rows of waits", len(s.Rows()), 0)
		f.WantLive(s.held)
		f.WantDead(s.aimed.EventID, rendezvous.DeadAddresseeConcluded)
		f.WantDead(s.kept.EventID, rendezvous.DeadAddresseeConcluded)
		eq(t, "woken runs", h.marks(f), 0)

		before := s.outlook()
		again := must(f.ContinueAsNew(ctx, c, now))(t, "continue again")
		eq(t, "the repeat", again, store.Continued{RunID: out.RunID, Seq: out.Seq, Retired: out.Retired, Again: true})
		eq(t, "the workflow", s.outlook(), before)

		d := &Driver{Flow: &Flow{F: f, WorkflowID: s.WorkflowID, ID: c.NextRun}, Owner: s.Owner, Epoch: s.Epoch, Seen: row.Head}
		must(f.RenewLease(ctx, d.ID, d.Owner, d.Epoch, lease))(t, "renew over the next run")
		d.Append(d.Begun("effect"), d.Done("effect")) // the same words mean something else here
		d.Waits("open", "paid", K("open", s.ID))
		d.Conclude(rendezvous.StatusCompleted)
	}
}

func continuedCarriesOver(t *testing.T, h *Harness) {
	f := h.Fix(t)
	s := startOf()
	r := f.StartAs(s)
	created := r.Describe().CreatedAt
	asking := r.AskCancel()
	h.Advance(time.Second)
	next := r.Continue()
	row := next.Describe()
	eq(t, "type and queue", fmt.Sprint(row.Type, row.Queue), fmt.Sprint("order", "slow"))
	eq(t, "parent and created_at", fmt.Sprint(row.Parent, row.CreatedAt), fmt.Sprint("parent", created))
	eq(t, "started_at", row.StartedAt, h.Now(t))
	eq(t, "requests", row.Requests, []rendezvous.Request{*asking.Request})
	c := store.Continuation{RunID: next.ID, ExpectedSeq: next.Head(), BatchID: ID("batch"), Type: "refund", Queue: "fast"}
	out := must(f.ContinueAsNew(ctx, c, now))(t, "continue")
	row = next.Describe()
	eq(t, "run, type and queue given", fmt.Sprint(row.RunID, row.Type, row.Queue), fmt.Sprint(out.RunID, "refund", "fast"))
	eq(t, "requests", row.Requests, []rendezvous.Request{*asking.Request})
	d := (&Flow{F: f, WorkflowID: r.WorkflowID, ID: out.RunID}).Drive()
	d.Conclude(rendezvous.StatusCancelled)
	eq(t, "requests at the end", d.Describe().Requests, nil)

	taken := f.Start()
	other := f.Start()
	other.unmoved("a next run whose id is taken", rendezvous.CodeConflict, func() error {
		_, err := f.ContinueAsNew(ctx, store.Continuation{RunID: other.ID, ExpectedSeq: 1, BatchID: ID("batch"), NextRun: taken.ID}, now)
		return err
	}, "run", taken.ID, "workflow", taken.WorkflowID)
	for _, bad := range []store.Continuation{{NextRun: other.ID}, {NextRun: "\x00"}, {Queue: "a.b"}, {Input: make([]byte, rendezvous.MaxPayload+1)}} {
		bad.RunID, bad.ExpectedSeq, bad.BatchID = other.ID, 1, ID("batch")
		before := other.outlook()
		_, err := f.ContinueAsNew(ctx, bad, now)
		if got := rendezvous.CodeOf(err); got != rendezvous.CodeInvalid && got != rendezvous.CodeTooLarge {
			t.Fatalf("a continuation that is malformed: %v, want it refused", err)
		}
		eq(t, "the workflow", other.outlook(), before)
	}
}

func continuedFree(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Drive().Suspend()
	eq(t, "woken runs", h.marks(f), 0)
	c := store.Continuation{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Queue: "fast"}
	out := must(f.ContinueAsNew(ctx, c, now))(t, "continue")
	next := &Flow{F: f, WorkflowID: r.WorkflowID, ID: out.RunID}
	next.wantNotice(out.Notices.Resume, rendezvous.CauseStarted, out.Seq)
	eq(t, "woken runs", h.marks(f), 1)
	h.Advance(10 * time.Second)
	next.wantNotice(h.SweepWoken(t), rendezvous.CauseStarted, out.Seq)
	next.Finish()
	eq(t, "woken runs", h.marks(f), 0)
}

func brokenContinuation(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "continue_as_new", func() (func() error, func(error, bool)) {
		s := f.estate()
		s.Append(s.Done("effect"))
		before := s.outlook()
		c := store.Continuation{RunID: s.ID, Epoch: s.Epoch, ExpectedSeq: s.Seen, BatchID: ID("batch"), NextRun: ID("run")}
		attempt := func() error { _, err := f.ContinueAsNew(ctx, c, now); return err }
		return attempt, func(_ error, committed bool) {
			if !committed {
				s.wantOpen(before)
				_, err := f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: c.NextRun})
				code(t, "describe the next run", err, rendezvous.CodeNotFound)
			}
			got := must(f.ContinueAsNew(ctx, c, now))(t, "the same continuation again")
			eq(t, "again", got.Again, committed)
			eq(t, "retired", got.Retired, s.retired())
			eq(t, "current run", s.Describe().RunID, c.NextRun)
			eq(t, "runs", len(must(f.ReadRunChain(ctx, s.WorkflowID, 0, 0))(t, "read the chain")), 2)
			f.WantLive(s.held)
			eq(t, "rows of waits", len(s.Rows()), 0)
		}
	})
}

func refusedContinuation(t *testing.T, h *Harness) {
	f := h.Fix(t)
	s := f.estate()
	by := func(epoch int64) []named {
		next := ID("run")
		return []named{
			{"ContinueAsNew", func() error {
				_, err := f.ContinueAsNew(ctx, store.Continuation{RunID: s.ID, Epoch: epoch, ExpectedSeq: s.Head(), BatchID: ID("batch")}, now)
				return err
			}},
			{"Append", func() error {
				a := store.Append{RunID: s.ID, Epoch: epoch, ExpectedSeq: s.Head(), BatchID: ID("batch"), Records: recs(s.ContinuedTo(next), s.StartedAfter(next))}
				_, err := f.Append(ctx, a, now)
				return err
			}},
		}
	}
	s.Append(s.Begun("later"))
	for _, v := range by(s.Epoch) {
		s.unmoved(v.name+" with two open effects", rendezvous.CodeConflict, v.call, "effect", "effect") // the first of them
	}
	s.Append(s.Done("effect"))
	for _, v := range by(s.Epoch) {
		s.unmoved(v.name+" with one open effect", rendezvous.CodeConflict, v.call, "effect", "later")
	}
	s.Append(s.Failed("later", true)) // closed, though it would be tried again
	must(f.PauseRun(ctx, s.ID, kim, "", now))(t, "ask for a pause")
	for _, v := range by(s.Epoch) {
		s.unmoved(v.name+" while a pause is requested", rendezvous.CodeConflict, v.call, "what", "pausing")
	}
	s.Release()
	eq(t, "status", s.Describe().Status, rendezvous.StatusPaused)
	for _, v := range by(0) {
		s.unmoved(v.name+" while paused", rendezvous.CodeConflict, v.call, "what", "paused")
	}
	s.Resume()
	s.Flow.Conclude(rendezvous.StatusFailed)
	for _, v := range by(0) {
		s.unmoved(v.name+" after a terminal", rendezvous.CodeSealed, v.call, "outcome", string(rendezvous.StatusFailed))
	}
	eq(t, "runs", len(must(f.ReadRunChain(ctx, s.WorkflowID, 0, 0))(t, "read the chain")), 1)
}

func eventsOverContinuation(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("w", "paid", K("order", "1"))
	first := EventOf("paid", K("order", "1"))
	eq(t, "parked", len(f.Send(first).Made(store.OfferParked)), 1)
	second := f.PutNew("paid", K("order", "1"))
	d.Waits("aimed", "paid")
	aimed := EventOf("paid")
	eq(t, "delivered to the run", must(f.DeliverTo(ctx, r.ID, aimed, false, now))(t, "deliver").Outcome, store.DeliveryMatched)
	next, out := d.continues()
	f.WantDead(aimed.EventID, rendezvous.DeadAddresseeConcluded)
	eq(t, "events to offer", len(out.Notices.Events), 1)
	eq(t, "event to offer", out.Notices.Events[0].EventID, first.EventID)
	_, err := f.DeliverTo(ctx, r.ID, EventOf("paid"), false, now)
	code(t, "deliver to the old run", err, rendezvous.CodeSealed, "outcome", string(rendezvous.StatusContinued), "next_run", next.ID)
	again := must(f.DeliverTo(ctx, r.ID, aimed, false, now))(t, "deliver again")
	eq(t, "retry of the targeted one", fmt.Sprint(again.Outcome, again.State), fmt.Sprint(store.DeliveryDuplicate, rendezvous.EventDead))

	nd := &Driver{Flow: next, Owner: d.Owner, Epoch: d.Epoch, Seen: out.Seq}
	eq(t, "the next run's wait", nd.Register(nd.Wait("w", "paid", K("order", "1"))).Outcome, store.RegisterAnswered)
	next.WantAnswered("w", first) // the older one, by its number
	eq(t, "its second wait", nd.Register(nd.Wait("w2", "paid", K("order", "1"))).Outcome, store.RegisterAnswered)
	next.WantAnswered("w2", second)
	eq(t, "its wait for a targeted one", nd.Register(nd.Wait("aimed", "paid")).Outcome, store.RegisterWaiting)
}

func chainsInOrder(t *testing.T, h *Harness) {
	for i, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		for n := 1; n <= 3; n++ {
			r := f.Start()
			var want []store.RunSummary
			first, started := int64(1), h.Now(t)
			for k := 1; k <= n; k++ {
				r.AppendFree(r.Noted(fmt.Sprint(k)))
				s := store.RunSummary{RunID: r.ID, Status: rendezvous.StatusRunning, FirstSeq: first, LastSeq: first + 1, StartedAt: started}
				if k > 1 {
					s.PreviousRun = want[k-2].RunID
				}
				h.Advance(time.Second)
				switch {
				case k < n:
					r = r.Continue()
					s.Status, s.LastSeq, s.ClosedAt, s.Outcome = rendezvous.StatusContinued, first+2, h.Now(t), rendezvous.RunContinued
					first, started = first+3, h.Now(t)
				case i == 1: // and one that ended
					r.Conclude(rendezvous.StatusFailed)
					s.Status, s.LastSeq, s.ClosedAt, s.Outcome = rendezvous.StatusFailed, first+2, h.Now(t), rendezvous.RunFailed
				}
				want = append(want, s)
			}
			eq(t, fmt.Sprintf("chain of %d", n), must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain"), want)
			for k, s := range want {
				row := must(f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: s.RunID}))(t, "describe a run")
				eq(t, fmt.Sprintf("row of run %d", k+1), row.Run, &s)
				rest := must(f.ReadRunChain(ctx, r.WorkflowID, s.FirstSeq, 1))(t, "read the chain behind a run")
				eq(t, fmt.Sprintf("the run behind run %d", k+1), rest, want[k+1:min(k+2, n)])
			}
		}
	}
}

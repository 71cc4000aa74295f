package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// pushDestinations is push.md section 1, "Operator destinations".
var pushDestinations = []Case{
	{Name: "PU-12 a start registers every destination, cursor on its first record", Run: destinationsStarted},
	{Name: "PU-12 a failing row fails the start; a broken start leaves neither", Run: destinationsOrNot},
	{Name: "PU-12 a reopened run is watched again from RunReopened", Run: destinationsReopened},
	{Name: "PU-12 a reopened run whose destination had not completed keeps its row", Run: destinationsKept},
	{Name: "PU-106 a run continued as new, or started by an append, carries the destinations", Run: destinationsOfEveryRoad},
	{Name: "PU-12 a destination of workflow types watches those alone", Run: destinationsByType},
	{Name: "PU-6 faulty destinations are refused when the store is opened", Run: destinationsFaulty},
	{Name: "PU-5 PU-20 a caller neither puts nor changes an operator's row", Run: destinationsNotCallers},
	{Name: "PU-12 a start repeated registers nothing anew", Run: destinationsAgain},
	{Name: "PU-12 destinations hold after a restart", Run: destinationsDurable, Durable: true},
}

// wantWatched fails the test unless exactly those destinations watch the run from that record on.
func (r *Flow) wantWatched(what string, seq int64, destinations ...string) {
	r.F.T.Helper()
	var got, want []string
	for _, p := range must(r.F.ListPush(ctx, r.ID))(r.F.T, "list") {
		if p.Namespace != rendezvous.PushOperator {
			continue
		}
		got = append(got, fmt.Sprint(p.ID, p.Cursor, p.State))
		eq(r.F.T, "what a destination's row holds", []any{p.URL, p.Token.Set(), p.Auth.Kind, len(p.Headers), len(p.Signing), p.Gate, p.Version},
			[]any{"", false, rendezvous.AuthNone, 0, 0, p.ID, int64(1)})
	}
	for _, d := range destinations {
		want = append(want, fmt.Sprint("operator:", d, at(seq, 0), rendezvous.PushLive))
	}
	eq(r.F.T, "destinations "+what, got, want)
}

// operator is a worker that posts to operators' destinations.
func (h *Harness) operator(t testing.TB) *Pusher {
	t.Helper()
	w := h.Pusher(t)
	w.Namespace = rendezvous.PushOperator
	return w
}

func destinationsStarted(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "billing"}, rendezvous.Destination{Name: "audit", Events: []string{"*"}})
	for _, f := range h.Two(t) {
		s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
		started := must(f.StartRun(ctx, s, now))(t, "start")
		r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
		r.wantWatched("of a start", 1, "audit", "billing")
		r.wantPush("of a start", started.Notices)
		eq(t, "events", [][]string{r.Push("operator:audit").Events, r.Push("operator:billing").Events},
			[][]string{{"*"}, {"run.cancelled", "run.completed", "run.failed", "run.timed_out"}})
		w := h.operator(t)
		for _, c := range w.ClaimOf(r) {
			w.Settle(resting(c, 1))
		}
		out := r.AppendFree(r.Noted("n"))
		r.wantPush("of a record that one takes", out.Notices)
		eq(t, "states", []rendezvous.PushState{r.Push("operator:audit").State, r.Push("operator:billing").State}, []rendezvous.PushState{rendezvous.PushLive, rendezvous.PushIdle})
		r.Conclude(rendezvous.StatusCompleted)
		eq(t, "claimed at the end", len(w.ClaimOf(r)), 2)
	}
}

func destinationsOrNot(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"})
	f := h.Fix(t)
	h.Break(t, "start_run", func() (func() error, func(error, bool)) {
		s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
		start := func() error { _, err := f.StartRun(ctx, s, now); return err }
		return start, func(_ error, committed bool) {
			r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
			eq(t, "records", len(r.History()) > 0, committed)
			eq(t, "rows", len(must(f.ListPush(ctx, s.RunID))(t, "list")) > 0, committed)
			done(t, "start again", start())
			r.wantWatched("of a start made again", 1, "audit")
		}
	})
}

func destinationsReopened(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"}, rendezvous.Destination{Name: "billing"})
	f := h.Fix(t)
	r := f.Start()
	r.Conclude(rendezvous.StatusFailed) // 2
	w := h.operator(t)
	for _, c := range w.ClaimOf(r) {
		s := settling(c, store.PushComplete)
		s.Advance = ptr(at(3, 0))
		eq(t, "done", w.Settle(s).Done, true)
	}
	r.wantWatched("after completion", 0)
	reopened := r.Reopen()
	eq(t, "reopened at", reopened.Seq, int64(3))
	r.wantWatched("of a reopening", 3, "audit", "billing")
	r.wantPush("of a reopening", reopened.Notices)
	r.Conclude(rendezvous.StatusCompleted)
	eq(t, "claimed", len(w.ClaimOf(r)), 2)
}

func destinationsKept(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"})
	f := h.Fix(t)
	r := f.Start()
	w := h.operator(t)
	w.Settle(resting(w.Take(r), 1))
	r.Conclude(rendezvous.StatusFailed) // 2
	before := r.Push("operator:audit")
	r.Reopen()
	p := r.Push("operator:audit")
	eq(t, "the row", []any{p.Cursor, p.CreatedAt, p.AttemptNo}, []any{at(2, 0), before.CreatedAt, before.AttemptNo})
	r.Stop("operator:audit", rendezvous.ParkDestinationRemoved)
	r.Conclude(rendezvous.StatusFailed)
	r.Reopen()
	eq(t, "a parked one", r.Push("operator:audit").State, rendezvous.PushParked)
}

func destinationsOfEveryRoad(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"})
	f := h.Fix(t)
	r := f.Start()
	next := r.Continue() // 2, 3
	next.wantWatched("of a continuation", 3, "audit")
	r.wantWatched("of the run that was continued", 1, "audit")
	d := next.Drive()
	last, continued := d.continues() // 4, 5
	last.wantWatched("of a continuation under a lease", 5, "audit")
	last.wantPush("of a continuation", continued.Notices)
	run := ID("run")
	d = &Driver{Flow: last, Owner: d.Owner, Epoch: d.Epoch, Seen: 5} // the lease stays with its holder
	d.Append(last.ContinuedTo(run), last.StartedAfter(run))          // 6, 7
	byAppend := &Flow{F: f, WorkflowID: r.WorkflowID, ID: run}
	byAppend.wantWatched("of an appended continuation", 7, "audit")
	first := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
	started := first.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: rendezvous.DefaultQueue})
	out := must(f.Append(ctx, store.Append{
		RunID: first.ID, WorkflowID: first.WorkflowID, BatchID: ID("batch"), Records: recs(started, first.Noted("n")),
	}, now))(t, "start by an append")
	first.wantWatched("of a start by an append", 1, "audit")
	first.wantPush("of a start by an append", out.Notices)
}

func destinationsByType(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "all"}, rendezvous.Destination{Name: "orders", Types: []string{"order", "return"}},
		rendezvous.Destination{Name: "others", Types: []string{"other"}})
	f := h.Fix(t)
	f.Start().wantWatched("of an order", 1, "all", "orders")
	f.StartAs(store.Start{Type: "return"}).wantWatched("of a return", 1, "all", "orders")
	r := f.StartAs(store.Start{Type: "other"})
	r.wantWatched("of another type", 1, "all", "others")
	c := store.Continuation{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), NextRun: ID("run"), Type: "order"}
	must(f.ContinueAsNew(ctx, c, now))(t, "continue as another type")
	(&Flow{F: f, WorkflowID: r.WorkflowID, ID: c.NextRun}).wantWatched("continued as another type", 3, "all", "orders")
}

func destinationsFaulty(t *testing.T, h *Harness) {
	for what, list := range map[string][]rendezvous.Destination{
		"blank": {{Name: " "}}, "twice": {{Name: "a"}, {Name: "a"}}, "events": {{Name: "a", Events: []string{"nothing"}}},
	} {
		_, err := engine.New(h.Faults, engine.Options{Destinations: list})
		code(t, what, err, rendezvous.CodeInvalid)
	}
}

func destinationsNotCallers(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"})
	f := h.Fix(t)
	r := f.Start()
	row := r.Push("operator:audit")
	for _, id := range []string{"operator:audit", "OPERATOR:audit", "operator:new"} {
		p := r.Hook(id)
		_, err := f.PutPush(ctx, p, now)
		code(t, "put "+id, err, rendezvous.CodeUnauthorized)
		p.Fields = []string{"events"}
		_, err = f.PutPush(ctx, p, now)
		code(t, "put a part of "+id, err, rendezvous.CodeUnauthorized)
	}
	r.Unchanged("after a caller's Put", row)
	eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), 1)
}

func destinationsAgain(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"})
	f := h.Fix(t)
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
	r := f.StartAs(s)
	r.Conclude(rendezvous.StatusFailed)
	w := h.operator(t)
	done2 := settling(w.Take(r), store.PushComplete)
	done2.Advance = ptr(at(3, 0))
	w.Settle(done2)
	again := must(f.StartRun(ctx, s, now))(t, "start again")
	eq(t, "first", again.First, false)
	r.wantWatched("of a repeated start", 0)
	reopening := r.reopening()
	must(f.ReopenRun(ctx, reopening, now))(t, "reopen")
	c := w.Take(r)
	must(f.ReopenRun(ctx, reopening, now))(t, "reopen again")
	eq(t, "the holder", w.Renew(c.Token).State, store.PushLeaseHeld)
	h.Advance(time.Second)
	eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), 1)
}

func destinationsDurable(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit", Events: []string{"*"}})
	f := h.Fix(t)
	r := f.Start()
	row := r.Push("operator:audit")
	h.Reopen(t)
	r = &Flow{F: h.Fix(t), WorkflowID: r.WorkflowID, ID: r.ID}
	r.Unchanged("after a restart", row)
	h.Destinations(t) // the configuration is another
	r = &Flow{F: h.Fix(t), WorkflowID: r.WorkflowID, ID: r.ID}
	eq(t, "claimed", len(h.operator(t).ClaimOf(r)), 1)
	h.Fix(t).Start().wantWatched("of a start without destinations", 0)
}

package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pruning are the cases of closed workflows that are removed (SW-29).
var pruning = []Case{
	{Name: "SW-29 a workflow closed for its time goes whole, at once for every read; open and younger ones stay", Run: pruned},
	{Name: "SW-29 ids of a pruned workflow are refused while records are left, and free afterwards", Run: prunedIDs},
	{Name: "SW-29 records go in pages, resumed after a crash", Run: prunedInPages, Durable: true},
	{Name: "SW-29 S1 what does not decode, or has a wait left over, is spared and hides nobody", Run: prunedSpared},
	{Name: "SW-29 the longest closed first, of all tenants, page by page", Run: prunedInOrder},
	{Name: "SW-29 S5 two prunings at once remove each workflow once", Run: prunedAtOnce},
	{Name: "SW-29 a pruning at any step is done or not done", Run: prunedOrNot},
	{Name: "limits of a pruning are refused by name", Run: prunedLimits},
}

// Prune prunes all workflows closed at before or earlier, in pages of limit; their records stay for PruneAll.
func (h *Harness) Prune(t testing.TB, before time.Time, limit int) (pruned, spared []string) {
	t.Helper()
	for cursor := ""; ; {
		page := must(h.Store.PruneWorkflows(ctx, before, limit, cursor))(t, "prune workflows")
		if n := len(page.Pruned) + len(page.Spared); limit > 0 && n > limit {
			t.Fatalf("a page of %d workflows", n)
		}
		for _, w := range page.Pruned {
			pruned = append(pruned, w.WorkflowID)
		}
		for _, w := range page.Spared {
			if w.Why == nil {
				t.Errorf("%s is spared, and nothing says why", w.WorkflowID)
			}
			spared = append(spared, w.WorkflowID)
		}
		if cursor = page.NextCursor; cursor == "" {
			return pruned, spared
		}
	}
}

// PruneAll removes the records of what was pruned, in pages of limit, and answers how many rows went.
func (h *Harness) PruneAll(t testing.TB, limit int) (removed, pages int) {
	t.Helper()
	for {
		page := must(h.Store.PruneRecords(ctx, limit))(t, "prune records")
		pages++
		if removed += page.Removed; !page.More {
			return removed, pages
		}
	}
}

// closed is a workflow of two runs, with an effect, an answered wait and batches, which is closed.
func closedFlow(f *Fix) (first, last *Flow, e rendezvous.Event) {
	f.T.Helper()
	first = f.Start()
	key := K("order", first.ID)
	first.Waits("w", "paid", key)
	e = EventOf("paid", key)
	f.Send(e)
	first.AppendFree(first.Begun("charge"), first.Done("charge"))
	last = first.Continue()
	last.AppendFree(last.Noted("n"))
	last.Conclude(rendezvous.StatusCompleted)
	return first, last, e
}

// wantUnknown fails the test unless every read answers that there is no such run.
func wantUnknown(t *testing.T, f *Fix, runs ...*Flow) {
	t.Helper()
	flow := runs[0].WorkflowID
	_, err := f.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: flow})
	code(t, "describe", err, rendezvous.CodeNotFound)
	eq(t, "history", must(f.ReadHistory(ctx, flow))(t, "read"), nil)
	eq(t, "page of the history", must(f.ReadHistoryFrom(ctx, flow, 1, 0))(t, "read"), store.HistoryPage{})
	eq(t, "chain", must(f.ReadRunChain(ctx, flow, 0, 0))(t, "read"), nil)
	for _, r := range runs {
		_, err := f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: r.ID})
		code(t, "describe the run", err, rendezvous.CodeNotFound)
		x := must(f.ExplainWait(ctx, r.WaitID("w")))(t, "explain")
		eq(t, "the wait", []any{x.Verdict, x.Facts.Run.State, len(x.Facts.Similar)}, []any{rendezvous.VerdictUnregistered, rendezvous.RunStateUnknown, 0})
		_, err = f.ClaimFor(ctx, r.WaitID("w"), now)
		code(t, "claim", err, rendezvous.CodeNotFound)
		_, err = f.Tenant.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: "b"}, now)
		code(t, "append", err, rendezvous.CodeNotFound)
		o := f.OfferWait(r.WaitID("w"))
		eq(t, "offer", []any{o.Outcome, o.Closed, o.Seq}, []any{store.OfferClosed, rendezvous.Closing(""), int64(0)})
	}
}

func pruned(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		first, last, e := closedFlow(f)
		open := f.Start()
		open.Waits("w", "paid", K("order", open.ID))
		closedAt := last.Describe().ClosedAt
		h.Advance(time.Second)
		young, younger, _ := closedFlow(f)

		gone, _ := h.Prune(t, closedAt.Add(-time.Microsecond), 0)
		eq(t, "pruned a microsecond early", gone, nil)
		gone, _ = h.Prune(t, time.Time{}, 0)
		eq(t, "pruned by a window longer than time", gone, nil)
		gone, spared := h.Prune(t, closedAt, 0)
		eq(t, "pruned at the bound", [][]string{gone, spared}, [][]string{{first.WorkflowID}, nil})
		wantUnknown(t, f, first, last)
		why := func() store.Explanation { return must(f.ExplainEvent(ctx, e.EventID))(t, "explain the event") }
		eq(t, "verdict before its record goes", why().Verdict, rendezvous.VerdictDelivered)
		removed, _ := h.PruneAll(t, 0)
		// Four of the run, two that continue, a note and the end; named batches: effects, the continuation, the note, the end.
		eq(t, "removed", removed > 8, true)
		wantUnknown(t, f, first, last)
		x := why()
		eq(t, "the event", []any{x.Verdict, x.Facts.WorkflowID, x.Facts.Wait.RunID, x.Facts.Seq > 0}, []any{rendezvous.VerdictDelivered, first.WorkflowID, first.ID, true})
		eq(t, "its pair", must(f.ExplainPair(ctx, e.EventID, first.WaitID("w")))(t, "explain").Verdict, rendezvous.VerdictUnregistered)
		s := f.WantState(e.EventID, rendezvous.EventConsumed)
		eq(t, "its place", []any{s.RunID, s.Seq > 0}, []any{first.ID, true})
		eq(t, "replay", f.Put(e).Outcome, store.BufferDuplicate)
		eq(t, "offer of the event", f.OfferEvent(e.EventID).Outcome, store.OfferAlreadyDelivered)

		eq(t, "kinds of the younger", len(young.History()) > 0, true)
		eq(t, "its status", younger.Describe().Status, rendezvous.StatusCompleted)
		paid := EventOf("paid", K("order", open.ID))
		f.Send(paid)
		open.WantAnswered("w", paid)
		gone, _ = h.Prune(t, h.Now(t), 0)
		eq(t, "pruned later", gone, []string{young.WorkflowID})
		h.PruneAll(t, 0)
	}
}

func prunedIDs(t *testing.T, h *Harness) {
	f := h.Fix(t)
	first, last, _ := closedFlow(f)
	other := f.Start()
	h.Prune(t, h.Now(t), 0)
	starts := map[string]store.Start{
		"the workflow":                   {WorkflowID: first.WorkflowID, RunID: ID("run"), Type: "order"},
		"the same start":                 {WorkflowID: first.WorkflowID, RunID: first.ID, Type: "order"},
		"a run in another workflow":      {WorkflowID: ID("workflow"), RunID: last.ID, Type: "order"},
		"a run in a workflow of no name": {RunID: first.ID, Type: "order"},
	}
	refused := func(when string) {
		t.Helper()
		for name, s := range starts {
			_, err := f.StartRun(ctx, s, now)
			code(t, name+" "+when, err, rendezvous.CodeConflict, "what", "pruning", "workflow", first.WorkflowID)
		}
		begin := store.Append{
			RunID: ID("run"), WorkflowID: first.WorkflowID, BatchID: ID("batch"),
			Records: []rendezvous.Record{{Kind: rendezvous.RunStarted, Data: rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: "default"})}},
		}
		begin.Records[0].RunID = begin.RunID
		_, err := f.Tenant.Append(ctx, begin, now)
		code(t, "a first batch "+when, err, rendezvous.CodeConflict, "what", "pruning")
		c := store.Continuation{RunID: other.ID, ExpectedSeq: other.Head(), BatchID: ID("batch"), NextRun: last.ID}
		_, err = f.ContinueAsNew(ctx, c, now)
		code(t, "a continuation "+when, err, rendezvous.CodeConflict, "what", "pruning")
	}
	refused("before records go")
	eq(t, "more", must(h.Store.PruneRecords(ctx, 2))(t, "prune records"), store.PrunedRecords{Removed: 2, More: true})
	refused("while records go")
	globex := h.FixOf(t, "globex")
	globex.StartAs(store.Start{WorkflowID: first.WorkflowID, RunID: first.ID, Type: "order"})
	h.PruneAll(t, 2)
	for name, s := range starts {
		if name == "the workflow" || name == "a run in another workflow" {
			r := f.StartAs(s)
			eq(t, "history of "+name+" anew", r.Kinds(), []rendezvous.Kind{rendezvous.RunStarted})
			r.Waits("w", "paid", K("order", r.ID))
			r.Conclude(rendezvous.StatusCompleted)
		}
	}
}

func prunedInPages(t *testing.T, h *Harness) {
	f := h.Fix(t)
	long := f.Start()
	for range 40 {
		long.AppendFree(long.Noted("n"))
	}
	long.Conclude(rendezvous.StatusCompleted)
	h.Advance(time.Microsecond)
	short, _, _ := closedFlow(f)
	stays := f.Start()
	gone, _ := h.Prune(t, h.Now(t), 0)
	eq(t, "pruned", gone, []string{long.WorkflowID, short.WorkflowID})
	first := must(h.Store.PruneRecords(ctx, 10))(t, "prune records")
	h.Reopen(t)
	f = h.Fix(t)
	removed, pages := h.PruneAll(t, 10)
	eq(t, "removed in pages", []bool{first.Removed == 10, first.More, removed > 60, pages > 6}, []bool{true, true, true, true})
	eq(t, "again", must(h.Store.PruneRecords(ctx, 10))(t, "prune records"), store.PrunedRecords{})
	eq(t, "what stays", len(must(f.ReadHistory(ctx, stays.WorkflowID))(t, "read")), 1)
	f.StartAs(store.Start{WorkflowID: long.WorkflowID, RunID: long.ID, Type: "order"})
}

func prunedSpared(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var spared, good []string
	for range 3 {
		_, last, _ := closedFlow(f)
		done(t, "damage", h.Damage.Lease(f.Name(), last.WorkflowID))
		spared = append(spared, last.WorkflowID)
		h.Advance(time.Microsecond)
	}
	left := f.Start()
	left.Waits("w", "paid", K("order", "left"))
	restore := must(h.Damage.Keep(f.Name(), left.WaitID("w")))(t, "keep")
	left.Conclude(rendezvous.StatusFailed)
	done(t, "restore", restore())
	spared = append(spared, left.WorkflowID)
	for range 3 {
		h.Advance(time.Microsecond)
		first, _, _ := closedFlow(f)
		good = append(good, first.WorkflowID)
	}
	gone, kept := h.Prune(t, h.Now(t), 2)
	eq(t, "pruned", gone, good)
	eq(t, "spared", kept, spared)
	eq(t, "status of one that was spared", left.Describe().Status, rendezvous.StatusFailed)
	h.PruneAll(t, 0)
	eq(t, "its history", len(left.History()), 3)
}

func prunedInOrder(t *testing.T, h *Harness) {
	acme, globex := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	var want []string
	for i := range 7 {
		f := acme
		if i == 3 {
			f = globex
		}
		first, _, _ := closedFlow(f)
		f.Start() // open ones among them
		want = append(want, first.WorkflowID)
		h.Advance(time.Microsecond)
	}
	page := must(h.Store.PruneWorkflows(ctx, h.Now(t), 2, ""))(t, "prune")
	eq(t, "first page", []string{page.Pruned[0].WorkflowID, page.Pruned[1].WorkflowID}, want[:2])
	gone, _ := h.Prune(t, h.Now(t), 3)
	eq(t, "the rest", gone, want[2:])
	_, pages := h.PruneAll(t, 0)
	eq(t, "pages of records", pages, 1)
}

func prunedAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range max(h.Rounds(t)/10, 5) {
		want := map[string]int{}
		for range 3 {
			first, _, _ := closedFlow(f)
			want[first.WorkflowID] = 1
		}
		before := h.Now(t)
		var pages [2]store.Pruned
		var errs [4]error
		prune := func(i int) func() {
			return func() { pages[i], errs[i] = h.Store.PruneWorkflows(ctx, before, 0, "") }
		}
		records := func(i int) func() { return func() { _, errs[i] = h.Store.PruneRecords(ctx, 5) } }
		Race(t, prune(0), prune(1), records(2), records(3))
		for _, err := range errs {
			done(t, "prune", err)
		}
		got := map[string]int{}
		for _, p := range pages {
			for _, w := range p.Pruned {
				got[w.WorkflowID]++
			}
		}
		eq(t, "pruned", got, want)
		h.PruneAll(t, 5)
		eq(t, "left", must(h.Store.PruneRecords(ctx, 0))(t, "prune records"), store.PrunedRecords{})
	}
}

func prunedOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	again := func(r *Flow) {
		h.Prune(t, h.Now(t), 0)
		h.PruneAll(t, 0)
		eq(t, "history", must(f.ReadHistory(ctx, r.WorkflowID))(t, "read"), nil)
		f.StartAs(store.Start{WorkflowID: r.WorkflowID, RunID: r.ID, Type: "order"})
	}
	h.Break(t, "prune_workflows", func() (func() error, func(error, bool)) {
		first, last, _ := closedFlow(f)
		prune := func() error { _, err := h.Store.PruneWorkflows(ctx, h.Now(t), 0, ""); return err }
		return prune, func(_ error, committed bool) {
			if committed {
				wantUnknown(t, f, first, last)
			} else {
				eq(t, "status", last.Describe().Status, rendezvous.StatusCompleted)
				eq(t, "chain", len(first.chain()), 2)
			}
			again(first)
		}
	})
	h.Break(t, "prune_records", func() (func() error, func(error, bool)) {
		first, last, _ := closedFlow(f)
		h.Prune(t, h.Now(t), 0)
		prune := func() error { _, err := h.Store.PruneRecords(ctx, 0); return err }
		return prune, func(_ error, committed bool) {
			wantUnknown(t, f, first, last)
			removed, _ := h.PruneAll(t, 0)
			eq(t, "nothing was left", removed == 0, committed)
			again(first)
		}
	})
}

func prunedLimits(t *testing.T, h *Harness) {
	prune := func(before time.Time, limit int, cursor string) error {
		_, err := h.Store.PruneWorkflows(ctx, before, limit, cursor)
		return err
	}
	records := func(limit int) error { _, err := h.Store.PruneRecords(ctx, limit); return err }
	code(t, "no limit", prune(h.Now(t), -1, ""), rendezvous.CodeInvalid, "field", "limit")
	code(t, "a limit too large", prune(h.Now(t), rendezvous.MaxBatchItems+1, ""), rendezvous.CodeTooLarge, "field", "limit")
	code(t, "no cursor", prune(h.Now(t), 0, "x"), rendezvous.CodeInvalid, "field", "cursor")
	code(t, "no instant", prune(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), 0, ""), rendezvous.CodeInvalid, "field", "closed_before")
	code(t, "no limit of records", records(-1), rendezvous.CodeInvalid, "field", "limit")
	code(t, "a limit of records too large", records(store.MaxPruneRecords+1), rendezvous.CodeTooLarge, "field", "limit")
}

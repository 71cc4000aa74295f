package storetest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// historyLists is history.md section 12, run chains, rows and lists. Limits and names are in history_limits.go.
var historyLists = []Case{
	{Name: "HI-22 the chain of no, 1, 2 and 3 runs, in order with links, ends and times", Run: chains},
	{Name: "HI-23 each run's segment holds exactly its records; a long chain pages without gap or repeat", Run: longChain},
	{Name: "HI-23 a broken link is corrupt, naming the run", Run: brokenChain},
	{Name: "HI-31 after continue-as-new the row describes the new run", Run: rowAfterContinue},
	{Name: "HI-37 a forged cursor is refused before the storage sees it", Run: forgedCursors},
	{Name: "HI-38 lists open no history, take no lock and start no write transaction", Run: listsOnlyRead},
	{Name: "HI-38 workflows newest start first, then by id, through each filter, page by page", Run: queried},
	{Name: "HI-40 only a lifecycle record rewrites the row", Run: rowRewritten},
	{Name: "HI-44 equal ids and cursors in two tenants never mix in any read", Run: tenantsApart},
	{Name: "HI-46 limits: 0 is the default, negative is invalid, above the maximum is too large", Run: pageLimits},
	{Name: "HI-49 workflows through a filter that matches little: pages are short, and a walk meets each once", Run: shortPagesOfWorkflows},
	{Name: "HI-47 names of tenants and queues at every door", Run: names},
}

func (r *Flow) chain() []store.RunSummary {
	r.F.T.Helper()
	return must(r.F.ReadRunChain(ctx, r.WorkflowID, 0, 0))(r.F.T, "read the chain")
}

func chains(t *testing.T, h *Harness) {
	f := h.Fix(t)
	eq(t, "chain of nobody", must(f.ReadRunChain(ctx, "nobody", 0, 0))(t, "read the chain"), nil)
	r := f.Start()
	began := h.Now(t)
	r.AppendFree(r.Noted("n"))
	first := store.RunSummary{RunID: r.ID, Status: rendezvous.StatusRunning, FirstSeq: 1, LastSeq: 2, StartedAt: began}
	eq(t, "chain of 1", r.chain(), []store.RunSummary{first})

	h.Advance(time.Second)
	second := r.Continue()
	turned := h.Now(t)
	first.Status, first.LastSeq, first.ClosedAt, first.Outcome = rendezvous.StatusContinued, 3, turned, rendezvous.RunContinued
	middle := store.RunSummary{RunID: second.ID, PreviousRun: r.ID, Status: rendezvous.StatusRunning, FirstSeq: 4, LastSeq: 4, StartedAt: turned}
	eq(t, "chain of 2", r.chain(), []store.RunSummary{first, middle})

	third := second.Continue()
	middle.Status, middle.LastSeq, middle.ClosedAt, middle.Outcome = rendezvous.StatusContinued, 5, turned, rendezvous.RunContinued
	h.Advance(time.Second)
	third.Conclude(rendezvous.StatusFailed)
	last := store.RunSummary{
		RunID: third.ID, PreviousRun: second.ID, Status: rendezvous.StatusFailed, FirstSeq: 6, LastSeq: 7, StartedAt: turned, ClosedAt: h.Now(t),
		Outcome: rendezvous.RunFailed,
	}
	eq(t, "chain of 3", r.chain(), []store.RunSummary{first, middle, last})
	eq(t, "behind the first", must(f.ReadRunChain(ctx, r.WorkflowID, 1, 0))(t, "read the chain"), []store.RunSummary{middle, last})
	eq(t, "one behind the first", must(f.ReadRunChain(ctx, r.WorkflowID, 1, 1))(t, "read the chain"), []store.RunSummary{middle})
	eq(t, "behind the last", must(f.ReadRunChain(ctx, r.WorkflowID, 6, 0))(t, "read the chain"), nil)
	for _, s := range r.chain() {
		rec := r.History()[s.FirstSeq-1]
		eq(t, "run of the run.started record", fmt.Sprint(rec.Kind, rec.RunID), fmt.Sprint(rendezvous.RunStarted, s.RunID))
		named := must(f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: s.RunID}))(t, "describe by run")
		eq(t, "the run that was named", *named.Run, s)
		eq(t, "its workflow", named.WorkflowID, r.WorkflowID)
	}
}

// longChain is 2,500 runs long in make test.
func longChain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	first := f.Start()
	runs := 25 * h.Rounds(t)
	ids := []string{first.ID}
	for r := first; len(ids) < runs; {
		out := must(f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, ExpectedSeq: int64(2*len(ids) - 1), BatchID: ID("batch"), NextRun: ID("run")}, now))(t, "continue")
		r = &Flow{F: f, WorkflowID: first.WorkflowID, ID: out.RunID}
		ids = append(ids, r.ID)
	}
	var walked []store.RunSummary
	for after := int64(0); ; {
		page := must(f.ReadRunChain(ctx, first.WorkflowID, after, 0))(t, "read the chain")
		if len(page) == 0 {
			break
		}
		walked = append(walked, page...)
		after = page[len(page)-1].FirstSeq
	}
	eq(t, "runs", len(walked), runs)
	history := first.walk(0)
	for i, s := range walked {
		eq(t, "run", s.RunID, ids[i])
		if i > 0 {
			eq(t, "link", s.PreviousRun, ids[i-1])
			eq(t, "first seq", s.FirstSeq, walked[i-1].LastSeq+1)
		}
		segment := history[s.FirstSeq-1 : s.LastSeq]
		eq(t, "first of the segment", segment[0].Kind, rendezvous.RunStarted)
		for _, rec := range segment {
			eq(t, "run of a record of the segment", rec.RunID, s.RunID)
		}
	}
	eq(t, "records of all segments", walked[runs-1].LastSeq, int64(len(history)))
}

func brokenChain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	second := r.Continue()
	third := second.Continue()
	sound := f.Start()
	done(t, "break the link", h.Damage.Link(f.Name(), third.ID, r.ID))
	_, err := f.ReadRunChain(ctx, r.WorkflowID, 0, 0)
	code(t, "the broken chain", err, rendezvous.CodeCorrupt, "run", third.ID)
	_, err = f.ReadRunChain(ctx, r.WorkflowID, 3, 0)
	code(t, "a page that begins at the break", err, rendezvous.CodeCorrupt, "run", third.ID)
	eq(t, "another chain", len(sound.chain()), 1)
}

func rowAfterContinue(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	began := h.Now(t)
	h.Advance(time.Minute)
	next := r.Continue()
	row := r.Describe()
	eq(t, "run, status, times", fmt.Sprint(row.RunID, row.Status, row.StartedAt, row.CreatedAt, row.ClosedAt.IsZero()),
		fmt.Sprint(next.ID, rendezvous.StatusRunning, h.Now(t), began, true))
	eq(t, "workflow id", row.WorkflowID, r.WorkflowID)
	page := must(f.QueryWorkflows(ctx, store.WorkflowFilter{}, 0, ""))(t, "query")
	eq(t, "rows", len(page.Workflows), 1)
	eq(t, "the listed row", page.Workflows[0], row)
}

func listsOnlyRead(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range 3 {
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
	}
	f.Send(EventOf("paid", K("order", "1")))
	r := f.Start()
	h.Counting.Reset()
	for what, call := range map[string]func() error{
		"query": func() error { _, err := f.QueryWorkflows(ctx, store.WorkflowFilter{Prefix: "w"}, 2, ""); return err },
		"count": func() error { _, _, err := f.CountWorkflows(ctx, store.WorkflowFilter{}, 0); return err },
		"describe": func() error {
			_, err := f.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: r.WorkflowID})
			return err
		},
		"chain":   func() error { _, err := f.ReadRunChain(ctx, r.WorkflowID, 0, 0); return err },
		"waits":   func() error { _, err := f.Waiting(ctx, store.WaitFilter{}, 0, ""); return err },
		"stuck":   func() error { _, err := f.QuarantinedWaits(ctx, 0, ""); return err },
		"orphans": func() error { _, _, err := h.Store.AbandonedRuns(ctx, 0, ""); return err },
		"leases":  func() error { _, _, err := h.Store.DueLeases(ctx, 0, ""); return err },
		"depths":  func() error { _, err := h.Store.Depths(ctx); return err },
	} {
		h.Counting.Reset()
		done(t, what, call())
		got := h.Counting.Counts()
		eq(t, what+" asked of the backend", got, Counts{Views: got.Views})
		if got.Views == 0 {
			t.Fatalf("%s was not counted at all", what)
		}
	}
}

// query lists all workflows that pass, page by page.
func (f *Fix) query(filter store.WorkflowFilter, limit int) []store.Workflow {
	f.T.Helper()
	var all []store.Workflow
	for cursor := ""; ; {
		page := must(f.QueryWorkflows(ctx, filter, limit, cursor))(f.T, "query")
		all = append(all, page.Workflows...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

func queried(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var want []store.Workflow
	for i := range 10 {
		if i%3 == 0 {
			h.Advance(time.Second)
		}
		r := f.StartAs(store.Start{
			WorkflowID: ID([]string{"b", "a"}[i%2]), RunID: ID("run"), Type: []string{"order", "refund", "audit"}[i%3], Queue: []string{"default", "slow"}[i/5],
		})
		if i == 4 {
			r.Conclude(rendezvous.StatusCompleted)
		}
		want = append(want, r.Describe())
	}
	slices.SortFunc(want, func(a, b store.Workflow) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(a.WorkflowID, b.WorkflowID))
	})
	pass := func(keep func(w store.Workflow) bool) []store.Workflow {
		return slices.DeleteFunc(slices.Clone(want), func(w store.Workflow) bool { return !keep(w) })
	}
	for _, c := range []struct {
		name   string
		filter store.WorkflowFilter
		keep   func(w store.Workflow) bool
	}{
		{"all", store.WorkflowFilter{}, func(store.Workflow) bool { return true }},
		{"types", store.WorkflowFilter{Types: []string{"refund", "audit"}}, func(w store.Workflow) bool { return w.Type != "order" }},
		{"statuses", store.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusCompleted}}, func(w store.Workflow) bool { return w.Status.Terminal() }},
		{"queues", store.WorkflowFilter{Queues: []string{"slow"}}, func(w store.Workflow) bool { return w.Queue == "slow" }},
		{"prefix", store.WorkflowFilter{Prefix: "a-"}, func(w store.Workflow) bool { return strings.HasPrefix(w.WorkflowID, "a-") }},
		{
			"all parts",
			store.WorkflowFilter{Prefix: "a-", Queues: []string{"slow"}, Types: []string{"order"}},
			func(w store.Workflow) bool { return w.WorkflowID[0] == 'a' && w.Queue == "slow" && w.Type == "order" },
		},
		{"a pattern is text", store.WorkflowFilter{Prefix: "%"}, func(store.Workflow) bool { return false }},
	} {
		kept := pass(c.keep)
		for _, limit := range []int{1, 3, 10, 0} {
			eq(t, fmt.Sprintf("%s in pages of %d", c.name, limit), f.query(c.filter, limit), kept)
		}
		n, capped, err := f.CountWorkflows(ctx, c.filter, 0)
		done(t, "count", err)
		eq(t, c.name+" counted", fmt.Sprint(n, capped), fmt.Sprint(len(kept), false))
	}
	n, capped, err := f.CountWorkflows(ctx, store.WorkflowFilter{}, 4)
	done(t, "count", err)
	eq(t, "counted up to 4", fmt.Sprint(n, capped), "4 true")
	for what, filter := range map[string]store.WorkflowFilter{
		"no types": {Types: []string{}}, "no statuses": {Statuses: []rendezvous.Status{}}, "no queues": {Queues: []string{}}, "unknown status": {Statuses: []rendezvous.Status{"asleep"}},
	} {
		_, err := f.QueryWorkflows(ctx, filter, 0, "")
		code(t, what, err, rendezvous.CodeInvalid)
	}
	page := must(f.QueryWorkflows(ctx, store.WorkflowFilter{}, 2, ""))(t, "query")
	for what, cursor := range map[string]string{"cut": page.NextCursor[:len(page.NextCursor)-2], "damaged": "x" + page.NextCursor, "no cursor at all": "%%%"} {
		_, err := f.QueryWorkflows(ctx, store.WorkflowFilter{}, 2, cursor)
		code(t, what, err, rendezvous.CodeInvalid)
	}
	_, err = f.QueryWorkflows(ctx, store.WorkflowFilter{Prefix: "a"}, 2, page.NextCursor)
	code(t, "cursor of another filter", err, rendezvous.CodeInvalid)
}

// forgedCursors keeps the head of a good cursor, which no secret protects, and puts another position behind it.
func forgedCursors(t *testing.T, h *Harness) {
	f := h.Fix(t)
	f.Start()
	f.Start()
	cursor := must(f.QueryWorkflows(ctx, store.WorkflowFilter{}, 1, ""))(t, "query").NextCursor
	raw := must(base64.RawURLEncoding.DecodeString(cursor))(t, "decode the cursor")
	for _, forged := range []string{
		`{"s":"2026-11-29T22:03:06.354965Z","i":"a\u0000b"}`, `{"s":"0000-01-01T00:00:00Z","i":"x"}`, `{"s":"9999-12-31T23:59:59-23:00","i":"x"}`, `{}`, `null`,
		string(raw[9:]) + "}}",
	} {
		_, err := f.QueryWorkflows(ctx, store.WorkflowFilter{}, 1, base64.RawURLEncoding.EncodeToString(append(slices.Clone(raw[:9]), forged...)))
		code(t, forged, err, rendezvous.CodeInvalid, "field", "cursor")
	}
	eq(t, "workflows behind the good one", len(must(f.QueryWorkflows(ctx, store.WorkflowFilter{}, 1, cursor))(t, "query").Workflows), 1)
}

func rowRewritten(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	step := func(what string, change func(row *store.Workflow), records ...rendezvous.Record) {
		t.Helper()
		want := r.Describe()
		h.Advance(time.Second)
		out := r.AppendFree(records...)
		want.Head, want.UpdatedAt = out.Head, h.Now(t)
		change(&want)
		eq(t, "row after "+what, r.Describe(), want)
	}
	none := func(*store.Workflow) {}
	step("a note", none, r.Noted("n"))
	step("an effect began", func(w *store.Workflow) { w.OpenEffects = 1 }, r.Begun("a"))
	step("two waits", func(w *store.Workflow) { w.OpenWaits = 2 }, r.Waited(r.Wait("w1", "paid")), r.Waited(r.Wait("w2", "paid")))
	step("one withdrawn", func(w *store.Workflow) { w.OpenWaits = 1 }, r.Withdrawn("w1"))
	step("the effect failed", func(w *store.Workflow) { w.OpenEffects = 0 }, r.Failed("a", false))
	step("a pause", func(w *store.Workflow) { w.Status = rendezvous.StatusPaused }, r.Paused())
	step("a resume", func(w *store.Workflow) { w.Status = rendezvous.StatusRunning }, r.Resumed())
	step("the end", func(w *store.Workflow) {
		w.Status, w.ClosedAt, w.FailureCode, w.FailureReason, w.FailedEffect, w.OpenWaits = rendezvous.StatusFailed, w.UpdatedAt, "x", "it broke", "a", 0
	}, r.FailedAs("x"))
}

func tenantsApart(t *testing.T, h *Harness) {
	ours, theirs := h.Fix(t), h.FixOf(t, "globex")
	flows := map[*Fix]*Flow{}
	for _, f := range []*Fix{ours, theirs} {
		flows[f] = f.StartAs(store.Start{WorkflowID: "w", RunID: "r", Type: "order", Input: []byte(f.Name())})
		f.StartAs(store.Start{WorkflowID: "w2", RunID: "r2", Type: "order"})
		flows[f].Waits("wait", "paid", K("order", "1"))
	}
	for range 2 {
		ours.StartAs(store.Start{WorkflowID: ID("more"), RunID: ID("run"), Type: "order"})
	}
	a, b := flows[ours], flows[theirs]
	a.AppendFree(a.Noted("ours"))
	SamePayload(t, a.History()[0].Payload, []byte("acme"))
	SamePayload(t, b.History()[0].Payload, []byte("globex"))
	a.WantKinds(rendezvous.WaitRegistered, rendezvous.Note)
	b.WantKinds(rendezvous.WaitRegistered)
	eq(t, "heads", []int64{a.Head(), b.Head()}, []int64{3, 2})
	eq(t, "workflows listed", []int{len(ours.query(store.WorkflowFilter{}, 0)), len(theirs.query(store.WorkflowFilter{}, 0))}, []int{4, 2})
	eq(t, "waits listed", []int{len(ours.Listed(store.WaitFilter{})), len(theirs.Listed(store.WaitFilter{}))}, []int{1, 1})
	b.Continue()
	eq(t, "chains", []int{len(a.chain()), len(b.chain())}, []int{1, 2})
	eq(t, "current run of ours", a.Describe().RunID, "r")
	_, err := ours.DescribeWorkflow(ctx, store.WorkflowRef{RunID: must(theirs.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: "w"}))(t, "describe").RunID})
	code(t, "describe a run of the other tenant", err, rendezvous.CodeNotFound)

	cursor := must(ours.QueryWorkflows(ctx, store.WorkflowFilter{}, 1, ""))(t, "query").NextCursor
	_, err = theirs.QueryWorkflows(ctx, store.WorkflowFilter{}, 1, cursor)
	code(t, "cursor of the other tenant", err, rendezvous.CodeInvalid)
	a.Waits("wait 2", "paid")
	cursor = must(ours.Waiting(ctx, store.WaitFilter{}, 1, ""))(t, "list waits").NextCursor
	_, err = theirs.Waiting(ctx, store.WaitFilter{}, 1, cursor)
	code(t, "cursor of the other tenant's waits", err, rendezvous.CodeInvalid)
}

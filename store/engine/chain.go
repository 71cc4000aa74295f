package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// ReadRunChain implements [store.Histories].
func (t *tenant) ReadRunChain(ctx context.Context, workflowID string, afterSeq int64, limit int) ([]store.RunSummary, error) {
	if err := rendezvous.CheckID("workflow_id", workflowID); err != nil {
		return nil, err
	}
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return nil, err
	}
	key := backend.WorkflowKey{Tenant: t.name, ID: workflowID}
	var chain []store.RunSummary
	err = t.view(ctx, "read_run_chain", func(ctx context.Context, r backend.Reader) error {
		rows, err := r.Workflows(ctx, []backend.WorkflowKey{key})
		if err != nil {
			return err
		}
		w := rows[key]
		if w == nil {
			return nil
		}
		if w.Corrupt != nil {
			return w.Corrupt
		}
		runs, err := r.RunsOf(ctx, key, max(afterSeq, 0), limit)
		if err != nil {
			return err
		}
		parent, err := parentOf(ctx, r, runs)
		if err != nil {
			return err
		}
		if err := checkChain(w, parent, runs, len(runs) < limit); err != nil {
			return err
		}
		chain = make([]store.RunSummary, len(runs))
		for i, run := range runs {
			chain[i] = runSummary(w, run)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return chain, nil
}

// parentOf reads the run before a page, if the page names one.
func parentOf(ctx context.Context, r backend.Reader, page []*backend.Run) (*backend.Run, error) {
	if len(page) == 0 || page[0].PreviousRun == "" {
		return nil, nil
	}
	key := backend.RunKey{Tenant: page[0].Tenant, ID: page[0].PreviousRun}
	runs, err := r.Runs(ctx, []backend.RunKey{key})
	if err != nil {
		return nil, err
	}
	return runs[key], nil
}

// checkChain judges a page of a workflow's runs, ordered by first seq, behind parent: one root, which begins the history; every other run names the
// run before it, which names it back, and begins where that one ended. So no run has two children and none is missing (HI-23). last says that the page
// reaches the end, where the current run stands.
func checkChain(w *backend.Workflow, parent *backend.Run, page []*backend.Run, last bool) error {
	for _, run := range page {
		switch {
		case run.PreviousRun == "" && run.FirstSeq != 1:
			return broken(w, run, "it names no run before it, but does not begin the history")
		case run.PreviousRun != "" && (parent == nil || parent.ID != run.PreviousRun || parent.WorkflowID != w.ID):
			return broken(w, run, "the run before it is not the one it names")
		case run.PreviousRun != "" && parent.NextRun != run.ID:
			return broken(w, run, "the run before it names another as its next")
		case run.PreviousRun != "" && run.FirstSeq != parent.LastSeq+1:
			return broken(w, run, "it does not begin where the run before it ended")
		}
		parent = run
	}
	if last && parent != nil && parent.ID != w.RunID {
		return broken(w, parent, "it is the last run, but not the workflow's current one")
	}
	return nil
}

func broken(w *backend.Workflow, run *backend.Run, what string) error {
	return rendezvous.Errorf(rendezvous.CodeCorrupt, "the run chain of workflow %q is broken at run %q: %s", w.ID, run.ID, what).
		With("tenant", w.Tenant).With("workflow", w.ID).With("run", run.ID)
}

// runSummary is a run's row as answered. The last seq of the current run is the head: its row is not touched by ordinary appends (HI-48).
func runSummary(w *backend.Workflow, run *backend.Run) store.RunSummary {
	s := store.RunSummary{
		RunID: run.ID, PreviousRun: run.PreviousRun, Status: run.Status, FirstSeq: run.FirstSeq, LastSeq: run.LastSeq,
		StartedAt: run.StartedAt, ClosedAt: run.ClosedAt, Outcome: run.Outcome,
	}
	if run.ID == w.RunID {
		s.Status, s.LastSeq = w.Status, w.Head
	}
	return s
}

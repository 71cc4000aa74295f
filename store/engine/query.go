package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// DescribeWorkflow implements [store.Histories].
func (t *tenant) DescribeWorkflow(ctx context.Context, ref store.WorkflowRef) (store.Workflow, error) {
	if err := checkRef(ref); err != nil {
		return store.Workflow{}, err
	}
	var described store.Workflow
	err := t.view(ctx, "describe_workflow", func(ctx context.Context, r backend.Reader) error {
		run, err := t.namedRun(ctx, r, &ref)
		if err != nil {
			return err
		}
		key := backend.WorkflowKey{Tenant: t.name, ID: ref.WorkflowID}
		rows, err := r.Workflows(ctx, []backend.WorkflowKey{key})
		if err != nil {
			return err
		}
		w := rows[key]
		if w == nil {
			return workflowNotFound(ref)
		}
		if w.Corrupt != nil {
			return w.Corrupt
		}
		described = workflowSummary(w, r.Now())
		if run != nil {
			s := runSummary(w, run)
			described.Run = &s
		}
		return nil
	})
	if err != nil {
		return store.Workflow{}, err
	}
	return described, nil
}

// namedRun reads the run that ref names, if it names one, and completes ref with its workflow.
func (t *tenant) namedRun(ctx context.Context, r backend.Reader, ref *store.WorkflowRef) (*backend.Run, error) {
	if ref.RunID == "" {
		return nil, nil
	}
	key := backend.RunKey{Tenant: t.name, ID: ref.RunID}
	runs, err := r.Runs(ctx, []backend.RunKey{key})
	if err != nil {
		return nil, err
	}
	run := runs[key]
	if run == nil || (ref.WorkflowID != "" && ref.WorkflowID != run.WorkflowID) {
		return nil, workflowNotFound(*ref)
	}
	ref.WorkflowID = run.WorkflowID
	return run, nil
}

func checkRef(ref store.WorkflowRef) error {
	if ref.WorkflowID == "" && ref.RunID == "" {
		return rendezvous.InvalidField("workflow_id", "is empty; give a workflow id or a run id")
	}
	if ref.WorkflowID != "" {
		if err := rendezvous.CheckID("workflow_id", ref.WorkflowID); err != nil {
			return err
		}
	}
	if ref.RunID != "" {
		return rendezvous.CheckID("run_id", ref.RunID)
	}
	return nil
}

func workflowNotFound(ref store.WorkflowRef) error {
	if ref.RunID != "" {
		e := rendezvous.Errorf(rendezvous.CodeNotFound, "run %q is not known in this tenant", ref.RunID).With("run", ref.RunID)
		if ref.WorkflowID != "" {
			e = rendezvous.Errorf(rendezvous.CodeNotFound, "workflow %q has no run %q in this tenant", ref.WorkflowID, ref.RunID).
				With("workflow", ref.WorkflowID).With("run", ref.RunID)
		}
		return e
	}
	return rendezvous.Errorf(rendezvous.CodeNotFound, "workflow %q is not known in this tenant", ref.WorkflowID).With("workflow", ref.WorkflowID)
}

// workflowPosition is where a page of workflows ended, as a cursor carries it.
type workflowPosition struct {
	StartedAt time.Time `json:"s"`
	ID        string    `json:"i"`
}

func (p *workflowPosition) sound() bool {
	return soundAt(p.StartedAt) && rendezvous.CheckID("cursor", p.ID) == nil
}

// QueryWorkflows implements [store.Histories].
func (t *tenant) QueryWorkflows(ctx context.Context, f store.WorkflowFilter, limit int, cursor string) (store.WorkflowPage, error) {
	const verb = "query_workflows"
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.WorkflowPage{}, err
	}
	if f, err = checkWorkflowFilter(f); err != nil {
		return store.WorkflowPage{}, err
	}
	var after backend.WorkflowPosition
	if cursor != "" {
		var at workflowPosition
		if err := decodeCursor(cursor, verb, t.name, f, &at); err != nil {
			return store.WorkflowPage{}, err
		}
		after = backend.WorkflowPosition{Set: true, StartedAt: at.StartedAt, ID: at.ID}
	}
	var page store.WorkflowPage
	err = t.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, next, err := r.ListWorkflows(ctx, t.name, backend.WorkflowFilter(f), after, backend.Span{Limit: limit, Look: t.look})
		if err != nil {
			return err
		}
		page = store.WorkflowPage{}
		if next.Set {
			page.NextCursor = encodeCursor(verb, t.name, f, workflowPosition{next.StartedAt, next.ID})
		}
		for _, w := range rows {
			page.Workflows = append(page.Workflows, workflowSummary(w, r.Now()))
		}
		return nil
	})
	if err != nil {
		return store.WorkflowPage{}, err
	}
	return page, nil
}

// CountWorkflows implements [store.Histories].
func (t *tenant) CountWorkflows(ctx context.Context, f store.WorkflowFilter, most int) (n int, capped bool, err error) {
	if most < 0 {
		return 0, false, rendezvous.InvalidField("cap", "%d is negative; give how far to count, or 0 for all", most)
	}
	if f, err = checkWorkflowFilter(f); err != nil {
		return 0, false, err
	}
	reach := most
	if most > 0 && most < math.MaxInt {
		reach++ // one more tells a count at the cap from one beyond
	}
	err = t.view(ctx, "count_workflows", func(ctx context.Context, r backend.Reader) error {
		n, err = r.CountWorkflows(ctx, t.name, backend.WorkflowFilter(f), reach)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	if most > 0 && n > most {
		return most, true, nil
	}
	return n, false, nil
}

// checkWorkflowFilter judges a filter and answers it with its sets sorted and without repeats, so that equal filters have equal cursors.
func checkWorkflowFilter(f store.WorkflowFilter) (store.WorkflowFilter, error) {
	var err error
	if f.Types, err = filterSet("types", f.Types, rendezvous.CheckID); err != nil {
		return f, err
	}
	if f.Statuses, err = filterSet("statuses", f.Statuses, checkStatus); err != nil {
		return f, err
	}
	if f.Queues, err = filterSet("queues", f.Queues, func(_, q string) error { return rendezvous.CheckQueue(q) }); err != nil {
		return f, err
	}
	if f.Prefix != "" {
		return f, rendezvous.CheckID("workflow_id", f.Prefix)
	}
	return f, nil
}

// filterSet judges one part of a filter. An absent part is any; an empty one could never pass anything and is a mistake.
func filterSet[T ~string](field string, set []T, check func(field string, v T) error) ([]T, error) {
	if set == nil {
		return nil, nil
	}
	if len(set) == 0 {
		return nil, rendezvous.InvalidField(field, "is an empty set, which nothing passes; leave it out for any")
	}
	if len(set) > rendezvous.MaxList {
		return nil, rendezvous.OverLimit(field, rendezvous.MaxList, len(set))
	}
	for _, v := range set {
		if err := check(field, v); err != nil {
			return nil, err
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(set))), nil
}

func checkStatus(field string, s rendezvous.Status) error {
	if !s.Known() {
		return rendezvous.InvalidField(field, "%q is no status of a workflow", s)
	}
	return nil
}

// workflowSummary is a workflow's row as answered at now. A row that does not decode shows its ids alone (R9).
func workflowSummary(w *backend.Workflow, now time.Time) store.Workflow {
	if w.Corrupt != nil {
		return store.Workflow{WorkflowID: w.ID, Corrupt: w.Corrupt}
	}
	s := store.Workflow{
		WorkflowID: w.ID, Shard: w.Shard, RunID: w.RunID, Type: w.Type, Queue: w.Queue, Status: w.Status, Head: w.Head,
		CreatedAt: w.CreatedAt, StartedAt: w.StartedAt, ClosedAt: w.ClosedAt, UpdatedAt: w.UpdatedAt, Parent: w.Parent,
		FailureCode: w.FailureCode, FailureReason: w.FailureReason, FailedEffect: w.FailedEffect,
		OpenEffects: w.OpenEffects, OpenWaits: w.OpenWaits, LiveTimers: w.LiveTimers, Registrations: w.Registrations, LeaseEpoch: w.LeaseEpoch, Reclaims: w.Reclaims, Requests: requests(w),
	}
	if leased(w, now) {
		s.LeaseOwner, s.LeaseRemaining = w.LeaseOwner, w.LeaseExpires.Sub(now)
	}
	return s
}

package api

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Bounds of the long poll of runs.history. Between two looks it holds nothing of the store; the pauses grow, so that what comes soon is told soon.
const (
	maxWait   = 30 * time.Second
	pollFirst = 25 * time.Millisecond
	pollMost  = 400 * time.Millisecond
)

func readHistory(ctx context.Context, c call, req wire.ReadHistory) (wire.History, error) {
	if err := rendezvous.CheckID("workflow_id", req.WorkflowID); err != nil {
		return wire.History{}, err
	}
	wait := milliseconds(req.WaitMS)
	if wait < 0 || wait > maxWait {
		return wire.History{}, rendezvous.InvalidField("wait_ms", "%d is outside 0..%d", req.WaitMS, maxWait.Milliseconds())
	}
	end := c.cfg.Clock.Now().Add(wait)
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		page, err := c.tenant.ReadHistoryFrom(ctx, req.WorkflowID, req.FromSeq, req.Limit)
		if err != nil {
			return wire.History{}, err
		}
		if req.FromSeq > page.Head+1 {
			return wire.History{}, rendezvous.InvalidField("from_seq", "%d is beyond the head %d + 1", req.FromSeq, page.Head).With("head", page.Head)
		}
		left := end.Sub(c.cfg.Clock.Now())
		if len(page.Records) > 0 || left <= 0 {
			return wire.History{Records: wire.RecordsOf(page.Records), HeadSeq: page.Head, More: page.More}, nil
		}
		if !c.pollPause(ctx, min(pause, left)) {
			end = c.cfg.Clock.Now() // one more look
		}
		if ctx.Err() != nil {
			return wire.History{}, rendezvous.Errorf(rendezvous.CodeUnavailable, "the long poll was interrupted; ask again").Because(context.Cause(ctx))
		}
	}
}

// pollPause waits for d; false when the call has ended or polls do.
func (c call) pollPause(ctx context.Context, d time.Duration) bool {
	t := c.cfg.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-c.closing:
	case <-ctx.Done():
	}
	return false
}

func workflowRef(req wire.WorkflowRef) (store.WorkflowRef, error) {
	if (req.WorkflowID == "") == (req.RunID == "") {
		return store.WorkflowRef{}, rendezvous.InvalidField("workflow_id", "give either workflow_id or run_id")
	}
	if req.RunID != "" {
		return store.WorkflowRef{RunID: req.RunID}, rendezvous.CheckID("run_id", req.RunID)
	}
	return store.WorkflowRef{WorkflowID: req.WorkflowID}, rendezvous.CheckID("workflow_id", req.WorkflowID)
}

func getRun(ctx context.Context, c call, req wire.WorkflowRef) (wire.Workflow, error) {
	if req.AfterSeq != 0 || req.Limit != 0 {
		return wire.Workflow{}, rendezvous.InvalidField("limit", "after_seq and limit belong to runs.chain only")
	}
	ref, err := workflowRef(req)
	if err != nil {
		return wire.Workflow{}, err
	}
	w, err := c.tenant.DescribeWorkflow(ctx, ref)
	return workflowOf(w), err
}

func workflowOf(w store.Workflow) wire.Workflow {
	out := wire.Workflow{
		WorkflowID: w.WorkflowID, RunID: w.RunID, Type: w.Type, Queue: w.Queue, Status: w.Status, HeadSeq: w.Head, Shard: w.Shard, Parent: w.Parent,
		CreatedAt: wire.At(w.CreatedAt), StartedAt: wire.At(w.StartedAt), ClosedAt: wire.At(w.ClosedAt), UpdatedAt: wire.At(w.UpdatedAt),
		OpenEffects: w.OpenEffects, OpenWaits: w.OpenWaits, LiveTimers: w.LiveTimers, FailureCode: w.FailureCode, FailureReason: w.FailureReason, FailedEffect: w.FailedEffect,
		LeaseOwner: w.LeaseOwner, LeaseEpoch: w.LeaseEpoch, LeaseRemainingMS: w.LeaseRemaining.Milliseconds(), Reclaims: w.Reclaims,
		Requests: wire.RequestsOf(w.Requests), Corrupt: w.Corrupt != nil,
	}
	if w.Run != nil {
		r := runOf(*w.Run)
		out.Run = &r
	}
	return out
}

func runOf(r store.RunSummary) wire.Run {
	return wire.Run{
		RunID: r.RunID, PreviousRun: r.PreviousRun, Status: r.Status, FirstSeq: r.FirstSeq, LastSeq: r.LastSeq, StartedAt: wire.At(r.StartedAt),
		ClosedAt: wire.At(r.ClosedAt), Outcome: r.Outcome,
	}
}

func chainOfRuns(ctx context.Context, c call, req wire.WorkflowRef) (wire.Chain, error) {
	ref, err := workflowRef(req)
	if err != nil {
		return wire.Chain{}, err
	}
	if ref.WorkflowID == "" {
		w, err := c.tenant.DescribeWorkflow(ctx, ref)
		if err != nil {
			return wire.Chain{}, err
		}
		ref.WorkflowID = w.WorkflowID
	}
	rows, err := c.tenant.ReadRunChain(ctx, ref.WorkflowID, req.AfterSeq, req.Limit)
	out := wire.Chain{Runs: make([]wire.Run, len(rows))}
	for i, r := range rows {
		out.Runs[i] = runOf(r)
	}
	return out, err
}

func listRuns(ctx context.Context, c call, req wire.ListRuns) (wire.RunList, error) {
	if req.Sort != nil {
		return wire.RunList{}, rendezvous.NotBuilt("sort")
	}
	page, err := c.tenant.QueryWorkflows(ctx, store.WorkflowFilter(req.Filter), req.Limit, req.Cursor)
	out := wire.RunList{Runs: make([]wire.Workflow, len(page.Workflows)), NextCursor: page.NextCursor}
	for i, w := range page.Workflows {
		out.Runs[i] = workflowOf(w)
	}
	return out, err
}

func countRuns(ctx context.Context, c call, req wire.CountRuns) (wire.RunCount, error) {
	n, capped, err := c.tenant.CountWorkflows(ctx, store.WorkflowFilter(req.Filter), req.Cap)
	return wire.RunCount{Count: n, Capped: capped}, err
}

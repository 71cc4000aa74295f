package api

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

func startRun(ctx context.Context, c call, req wire.StartRun) (wire.Started, error) {
	if err := req.Refuse(); err != nil {
		return wire.Started{}, err
	}
	input, contentType, err := req.Input.Bytes()
	if err != nil {
		return wire.Started{}, err
	}
	deadline, after, err := dueOf("deadline", req.Deadline, "deadline_after_ms", req.DeadlineAfterMS)
	if err != nil {
		return wire.Started{}, err
	}
	pushes, err := c.placed(req.Push)
	if err != nil {
		return wire.Started{}, err
	}
	got, err := c.tenant.StartRun(ctx, store.Start{
		WorkflowID: req.WorkflowID, RunID: req.RunID, Type: req.Type, Queue: req.Queue, Input: input, ContentType: contentType, Parent: req.Parent,
		CodeVersion: req.CodeVersion, Deadline: deadline, DeadlineAfter: after, Push: pushes, Operator: c.caller.vouched(req.Operator),
	}, time.Time{})
	if err != nil {
		return wire.Started{}, err
	}
	c.try(ctx, got.Notices)
	return wire.Started{WorkflowID: got.WorkflowID, RunID: got.RunID, HeadSeq: got.Seq, First: got.First, Status: got.Status}, nil
}

func appendRecords(ctx context.Context, c call, req wire.Append) (wire.Appended, error) {
	records := make([]rendezvous.Record, len(req.Records))
	for i, w := range req.Records {
		if w.Omitted || w.Size != 0 {
			return wire.Appended{}, rendezvous.InvalidField("records", "record %d carries payload_omitted or payload_size, which replies alone have", i+1)
		}
		r, err := w.Domain()
		if err != nil {
			return wire.Appended{}, err
		}
		if r.Seq != 0 || !r.RecordedAt.IsZero() || r.Batch != "" || r.Unknown {
			return wire.Appended{}, rendezvous.InvalidField("records", "record %d carries seq, recorded_at, batch or unknown, which the store gives", i+1)
		}
		if r.RunID == "" {
			r.RunID = req.RunID
		}
		r.Operator = c.caller.vouched(r.Operator)
		records[i] = r
	}
	got, err := c.tenant.Append(ctx, store.Append{
		RunID: req.RunID, WorkflowID: req.WorkflowID, Epoch: req.Epoch, ExpectedSeq: req.ExpectedSeq, BatchID: req.BatchID, Records: records,
	}, time.Time{})
	if err != nil {
		return wire.Appended{}, err
	}
	c.try(ctx, got.Notices)
	out := wire.Appended{
		FirstSeq: got.FirstSeq, HeadSeq: got.Head, Requests: wire.RequestsOf(got.Requests), Mail: got.Mail.Mail, Again: got.Again, Answers: []wire.Answer{},
	}
	for _, a := range got.Answers {
		out.Answers = append(out.Answers, wire.Answer{Effect: a.Effect, Seq: a.Seq, Record: wire.RecordOf(a.Record)})
	}
	return out, nil
}

func conclude(ctx context.Context, c call, req wire.Conclude) (wire.Concluded, error) {
	if req.Outcome == rendezvous.StatusContinued {
		return continueAsNew(ctx, c, req)
	}
	if req.Next != nil {
		return wire.Concluded{}, rendezvous.InvalidField("next", "belongs to the outcome continued_as_new only")
	}
	given, field := req.Result, "result"
	if req.Outcome == rendezvous.StatusFailed {
		given, field = req.Detail, "detail"
	}
	if other := map[string]*wire.Payload{"result": req.Detail, "detail": req.Result}[field]; other != nil {
		return wire.Concluded{}, rendezvous.InvalidField("outcome", "%s carries %s only", req.Outcome, field)
	}
	payload, contentType, err := given.Bytes()
	if err != nil {
		return wire.Concluded{}, err
	}
	got, err := c.tenant.Conclude(ctx, store.Conclusion{
		RunID: req.RunID, Epoch: req.Epoch, ExpectedSeq: req.ExpectedSeq, BatchID: req.BatchID, Outcome: req.Outcome, Result: payload, ContentType: contentType,
		Code: req.Code, Reason: req.Reason, Operator: c.caller.vouched(req.Operator),
	}, time.Time{})
	if err != nil {
		return wire.Concluded{}, err
	}
	c.try(ctx, got.Notices)
	return concludedOf(got.Seq, got.Retired, got.Again, ""), nil
}

func continueAsNew(ctx context.Context, c call, req wire.Conclude) (wire.Concluded, error) {
	next := req.Next
	if next == nil {
		next = &wire.StartRun{}
	}
	if err := next.Refuse(); err != nil {
		return wire.Concluded{}, err
	}
	if next.Push != nil {
		return wire.Concluded{}, rendezvous.InvalidField("push", "belongs to runs.start; push.put registers on a continuation")
	}
	if next.WorkflowID != "" || next.Parent != "" {
		return wire.Concluded{}, rendezvous.InvalidField("next", "a continuation keeps its workflow and parent; leave them out")
	}
	if req.Result != nil || req.Detail != nil || req.Code != "" || req.Reason != "" {
		return wire.Concluded{}, rendezvous.InvalidField("outcome", "continued_as_new carries next only")
	}
	input, contentType, err := next.Input.Bytes()
	if err != nil {
		return wire.Concluded{}, err
	}
	deadline, after, err := dueOf("deadline", next.Deadline, "deadline_after_ms", next.DeadlineAfterMS)
	if err != nil {
		return wire.Concluded{}, err
	}
	got, err := c.tenant.ContinueAsNew(ctx, store.Continuation{
		RunID: req.RunID, Epoch: req.Epoch, ExpectedSeq: req.ExpectedSeq, BatchID: req.BatchID, NextRun: next.RunID, Input: input, ContentType: contentType,
		Type: next.Type, Queue: next.Queue, CodeVersion: next.CodeVersion, Deadline: deadline, DeadlineAfter: after, Operator: c.caller.vouched(req.Operator),
	}, time.Time{})
	if err != nil {
		return wire.Concluded{}, err
	}
	c.try(ctx, got.Notices)
	return concludedOf(got.Seq, got.Retired, got.Again, got.RunID), nil
}

func concludedOf(seq int64, r store.Retired, again bool, next string) wire.Concluded {
	return wire.Concluded{Seq: seq, Waits: r.Waits, Timers: r.Timers, Released: orEmpty(r.Released), Dead: orEmpty(r.Dead), NextRun: next, Again: again}
}

func cancelRun(ctx context.Context, c call, req wire.ActOnRun) (wire.Acted, error) {
	got, err := c.tenant.CancelRun(ctx, req.RunID, c.caller.operator(req.Operator), req.Reason, req.Now, time.Time{})
	if err != nil {
		return wire.Acted{}, err
	}
	c.try(ctx, got.Notices)
	out := wire.Acted{Outcome: string(got.Outcome), Seq: got.Seq, RunOutcome: got.Status, Released: got.Retired.Released, Dead: got.Retired.Dead}
	if r := got.Request; r != nil {
		out.Operator, out.Reason, out.At = r.Operator, r.Reason, wire.At(r.At)
	}
	return out, nil
}

// reopenRun lifts the seal of a workflow's last run (runs.md section 5).
func reopenRun(ctx context.Context, c call, req wire.ReopenRun) (wire.Reopened, error) {
	got, err := c.tenant.ReopenRun(ctx, store.Reopening{
		RunID: req.RunID, BatchID: req.BatchID, Operator: c.caller.operator(req.Operator), Reason: req.Reason,
	}, time.Time{})
	if err != nil {
		return wire.Reopened{}, err
	}
	c.try(ctx, got.Notices)
	return wire.Reopened{Outcome: wire.OutcomeReopened, Seq: got.Seq, Timers: got.Timers, Again: got.Again}, nil
}

func pauseRun(ctx context.Context, c call, req wire.ActOnRun) (wire.Acted, error) {
	return actOnPause(ctx, c, req, c.tenant.PauseRun)
}

func resumeRun(ctx context.Context, c call, req wire.ActOnRun) (wire.Acted, error) {
	return actOnPause(ctx, c, req, c.tenant.ResumeRun)
}

func actOnPause(ctx context.Context, c call, req wire.ActOnRun,
	do func(ctx context.Context, run string, o *rendezvous.Operator, reason string, at time.Time) (store.Paused, error),
) (wire.Acted, error) {
	if req.Now {
		return wire.Acted{}, rendezvous.InvalidField("now", "belongs to runs.cancel only")
	}
	got, err := do(ctx, req.RunID, c.caller.operator(req.Operator), req.Reason, time.Time{})
	if err != nil {
		return wire.Acted{}, err
	}
	c.try(ctx, got.Notices)
	return wire.Acted{Outcome: string(got.Outcome), Seq: got.Seq, Operator: got.Operator, Since: wire.At(got.Since)}, nil
}

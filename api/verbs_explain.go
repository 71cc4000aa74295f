package api

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

func explainEvent(ctx context.Context, c call, req wire.ExplainEvent) (wire.Explanation, error) {
	event := rendezvous.EventID{Source: req.Source, ID: req.ID}
	if req.RunID != "" || req.Effect != "" {
		return explanation(c.tenant.ExplainPair(ctx, event, rendezvous.WaitID{RunID: req.RunID, Effect: req.Effect}))
	}
	return explanation(c.tenant.ExplainEvent(ctx, event))
}

func explainWait(ctx context.Context, c call, req wire.ExplainWait) (wire.Explanation, error) {
	wait := rendezvous.WaitID{RunID: req.RunID, Effect: req.Effect}
	if req.Source != "" || req.ID != "" {
		return explanation(c.tenant.ExplainPair(ctx, rendezvous.EventID{Source: req.Source, ID: req.ID}, wait))
	}
	return explanation(c.tenant.ExplainWait(ctx, wait))
}

func explanation(x store.Explanation, err error) (wire.Explanation, error) {
	if err != nil {
		return wire.Explanation{}, err
	}
	out := wire.Explanation{
		Verdict: x.Verdict, Facts: factsOf(x.Facts), Reasons: reasonsOf(x.Reasons), Hints: hintsOf(x.Hints),
		NearMisses: make([]wire.NearMiss, len(x.NearMisses)), Partial: x.Partial,
	}
	for i, m := range x.NearMisses {
		out.NearMisses[i] = wire.NearMiss{
			Event: m.Event, Wait: m.Wait, Number: m.Number, Type: m.Type, Keys: orEmpty(m.Keys), From: m.From, Target: m.Target,
			Reasons: reasonsOf(m.Reasons), Hints: hintsOf(m.Hints),
		}
	}
	return out, nil
}

func factsOf(f store.Facts) wire.Facts {
	out := wire.Facts{
		Number: f.Number, Type: f.Type, Keys: f.Keys, From: f.From, Target: f.Target, RegisteredAt: wire.At(f.RegisteredAt), Deadline: wire.At(f.Deadline), ReceivedAt: wire.At(f.ReceivedAt),
		Event: f.Event, Wait: f.Wait, WorkflowID: f.WorkflowID, Seq: f.Seq, Since: wire.At(f.Since), At: wire.At(f.At), WaitedMS: f.Waited.Milliseconds(),
		Erased: f.Erased, Purged: f.Purged, Requeues: f.Requeues, OfferFailures: f.OfferFailures, Similar: f.Similar, Released: f.Released, Dead: f.Dead,
	}
	if h := f.Hold; h != nil {
		out.Hold = &wire.Hold{
			State: h.State, Owner: h.Owner, RemainingMS: h.Remaining.Milliseconds(), Attempts: h.Attempts, NextAttemptAt: wire.At(h.NextAttemptAt),
			LastError: h.LastError, QuarantinedAt: wire.At(h.QuarantinedAt),
		}
	}
	if o := f.Other; o != nil {
		out.Other = &wire.Wants{Type: o.Type, Keys: orEmpty(o.Keys), From: o.From, Deadline: wire.At(o.Deadline)}
	}
	if d := f.Death; d != nil {
		out.Reason, out.Detail = d.Reason, d.Detail
	}
	if r := f.Run; r != nil {
		out.Run = &wire.ExplainedRun{RunID: r.RunID, State: r.State, WorkflowID: r.WorkflowID, Outcome: r.Outcome, SealedAt: wire.At(r.SealedAt)}
	}
	return out
}

func reasonsOf(reasons []store.Reason) []wire.Reason {
	out := make([]wire.Reason, len(reasons))
	for i, r := range reasons {
		out[i] = wire.Reason{
			Code: r.Code, Event: r.Event, Wait: r.Wait, Seq: r.Seq, Since: wire.At(r.Since), Dead: r.Dead, Closed: r.Closed, Outcome: r.Outcome,
		}
	}
	return out
}

func hintsOf(hints []store.Hint) []wire.Hint {
	out := make([]wire.Hint, len(hints))
	for i, h := range hints {
		out[i] = wire.Hint(h)
	}
	return out
}

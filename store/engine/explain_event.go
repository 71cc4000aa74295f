package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// event is the verdict on a stored event with its facts; nil is one that never was buffered.
func (x *explaining) event(ctx context.Context, e *backend.Event) (store.Explanation, error) {
	if e == nil {
		return store.Explanation{Verdict: rendezvous.VerdictUnknown}, nil
	}
	out := store.Explanation{Facts: store.Facts{
		Number: e.Number, Type: e.Type, Keys: e.Keys, Target: e.Target, ReceivedAt: e.ReceivedAt,
		Erased: e.Erased, Purged: e.Purged, Requeues: e.Requeues, OfferFailures: e.OfferFailures,
	}}
	var err error
	switch {
	case e.State == rendezvous.EventConsumed:
		err = x.delivered(ctx, e, &out)
	case e.State == rendezvous.EventClaimed:
		err = x.heldEvent(ctx, e, &out)
	case e.State == rendezvous.EventDead:
		out.Verdict, out.Facts.At, out.Facts.Death = rendezvous.VerdictDead, e.DeadAt, &store.Death{Reason: e.DeadReason, Detail: e.DeadDetail}
	case expired(e, x.now):
		out.Verdict, out.Facts.Since = rendezvous.VerdictExpired, e.ExpiresAt
	case e.Target == "" && len(e.Keys) == 0:
		out.Verdict, out.Facts.Since = rendezvous.VerdictNoKeys, e.LiveSince
	default:
		err = x.liveEvent(ctx, e, &out)
	}
	return out, err
}

// delivered says which record holds the answer. The history itself says when it was written.
func (x *explaining) delivered(ctx context.Context, e *backend.Event, out *store.Explanation) error {
	out.Verdict = rendezvous.VerdictDelivered
	f := &out.Facts
	f.WorkflowID, f.Wait, f.Seq = e.Workflow, &rendezvous.WaitID{RunID: e.Run, Effect: e.Effect}, e.Seq
	records, err := x.effect(ctx, *f.Wait)
	for _, r := range records {
		if r.Seq == e.Seq {
			f.At, f.Waited = r.RecordedAt, r.RecordedAt.Sub(e.ReceivedAt)
		}
	}
	return err
}

func (x *explaining) heldEvent(ctx context.Context, e *backend.Event, out *store.Explanation) error {
	out.Verdict = rendezvous.VerdictHeld
	f := &out.Facts
	f.Wait, f.Since = &rendezvous.WaitID{RunID: e.ClaimRun, Effect: e.ClaimEffect}, e.ClaimedAt
	key := backend.WaitKey{Tenant: x.tenant, RunID: e.ClaimRun, Effect: e.ClaimEffect}
	rows, err := x.r.Waits(ctx, []backend.WaitKey{key})
	if err != nil {
		return err
	}
	return x.hold(ctx, rows[key], f)
}

// hold says what a standing claim waits for. A claim without its wait's row, possible only after a restore, waits for its repair.
func (x *explaining) hold(ctx context.Context, w *backend.Wait, f *store.Facts) error {
	f.Hold = &store.Hold{State: rendezvous.HoldDue}
	if w == nil {
		return nil
	}
	if w.Corrupt != nil {
		return w.Corrupt
	}
	flow, err := x.flow(ctx, w.WorkflowID)
	if err != nil {
		return err
	}
	f.WorkflowID = w.WorkflowID
	h := f.Hold
	h.Attempts, h.NextAttemptAt, h.LastError, h.QuarantinedAt = w.Attempts, w.NextAttemptAt, w.LastError, w.QuarantinedAt
	switch {
	case !w.QuarantinedAt.IsZero():
		h.State = rendezvous.HoldQuarantined
	case flow != nil && leased(flow, x.now):
		h.State, h.Owner, h.Remaining = rendezvous.HoldLeased, flow.LeaseOwner, flow.LeaseExpires.Sub(x.now)
	case w.NextAttemptAt.After(x.now):
		h.State = rendezvous.HoldBackoff
	}
	return nil
}

// liveEvent is the verdict on an event that may meet somebody.
func (x *explaining) liveEvent(ctx context.Context, e *backend.Event, out *store.Explanation) error {
	low, first, err := x.meetOfEvent(ctx, x.plan.x.event(e))
	if err != nil {
		return err
	}
	f := &out.Facts
	switch {
	case low == nil && e.Target != "":
		out.Verdict, f.Since = rendezvous.VerdictKept, e.LiveSince
		f.Run, err = x.runFacts(ctx, e.Target)
		return err
	case low == nil:
		out.Verdict, f.Since = rendezvous.VerdictNoWait, e.LiveSince
		return nil
	}
	f.Wait, f.WorkflowID = waitID(low.Wait), low.WorkflowID
	if first.Number < e.Number {
		out.Verdict, f.Event, f.Since, out.Reasons = rendezvous.VerdictBehind, eventID(first.Event), later(e.LiveSince, low.OpenSince), []store.Reason{olderEvent(first.Event)}
		return nil
	}
	due := offerDue(e, low.Wait)
	out.Verdict, f.Since, out.Reasons = rendezvous.VerdictOfferDue, due.Since, []store.Reason{due}
	return nil
}

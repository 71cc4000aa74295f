package engine

import (
	"context"
	"math"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// remains is a wait, or what is left of it: its row, else what its registration says; nil when it never was registered. Its closing and its run tell the rest.
type remains struct {
	*backend.Wait
	id     rendezvous.WaitID
	run    *backend.Run
	stands standing
	by     *rendezvous.EventID // the event that answered it
	due    time.Time           // its deadline as registered; zero for none
	left   *rendezvous.Record  // the conclusion that left it open, if its run was reopened since: it does not return (G9)
}

// sealed reports whether the wait's run is concluded.
func (w *remains) sealed() bool { return w.run == nil || w.run.Status.Terminal() }

// unnumbered is the place of a wait without a row: behind all, where its row would come.
const unnumbered = math.MaxInt64

// remains reads a wait.
func (x *explaining) remains(ctx context.Context, id rendezvous.WaitID) (*remains, error) {
	key := backend.WaitKey{Tenant: x.tenant, RunID: id.RunID, Effect: id.Effect}
	rows, err := x.r.Waits(ctx, []backend.WaitKey{key})
	if err != nil {
		return nil, err
	}
	if row := rows[key]; row != nil && row.Corrupt != nil {
		return nil, row.Corrupt
	}
	return x.side(ctx, id, rows[key])
}

// side is a wait's side of a pair; row is nil where there is none.
func (x *explaining) side(ctx context.Context, id rendezvous.WaitID, row *backend.Wait) (*remains, error) {
	w := &remains{Wait: row, id: id}
	var err error
	if w.run, err = x.run(ctx, id.RunID); err != nil || w.run == nil && row == nil { // of a pruned run records may be left
		return w, err
	}
	if w.stands, err = x.standing(ctx, id); err != nil {
		return nil, err
	}
	if w.stands.opened != nil {
		if err := w.register(x.tenant); err != nil {
			return nil, err
		}
	}
	if row == nil && w.stands.opened != nil && w.stands.closed == nil && !w.sealed() {
		if w.left, err = x.leftBy(ctx, w); err != nil {
			return nil, err
		}
	}
	if w.stands.closing() == rendezvous.ClosedAnswered {
		var d rendezvous.WaitAnsweredData
		if err := rendezvous.DecodeData(*w.stands.closed, &d); err != nil {
			return nil, err
		}
		w.by = &rendezvous.EventID{Source: d.EventSource, ID: d.EventID}
	}
	return w, nil
}

// register fills in what the history says of a wait: its deadline, and of one without a row all.
func (w *remains) register(tenant string) error {
	var d rendezvous.WaitRegisteredData
	if err := rendezvous.DecodeData(*w.stands.opened, &d); err != nil {
		return err
	}
	if d.Deadline != "" {
		var err error
		if w.due, err = rendezvous.ParseInstant("deadline", d.Deadline); err != nil {
			return corruptInstant(*w.stands.opened, err)
		}
	}
	if w.Wait != nil {
		return nil
	}
	at := w.stands.opened.RecordedAt
	w.Wait = &backend.Wait{
		Tenant: tenant, RunID: w.id.RunID, Effect: w.id.Effect, Number: unnumbered, Type: d.Type, Keys: d.Keys, From: d.From, RegisteredAt: at, OpenSince: at,
		Deadline: w.due,
	}
	if !w.due.IsZero() && !w.due.After(at) {
		w.Deadline = pollDeadline(at)
	}
	if w.run != nil {
		w.WorkflowID = w.run.WorkflowID
	}
	return nil
}

// leftBy is the conclusion of an earlier life of the run that left the wait open, nil for none: the record before the run's RunReopened.
func (x *explaining) leftBy(ctx context.Context, w *remains) (*rendezvous.Record, error) {
	flow, err := x.flow(ctx, w.run.WorkflowID)
	if err != nil || flow == nil || flow.RunID != w.run.ID || flow.Reopened < w.stands.opened.Seq {
		return nil, err
	}
	key := backend.RecordKey{Tenant: x.tenant, WorkflowID: flow.ID, Seq: flow.Reopened - 1}
	records, err := x.r.RecordsAt(ctx, []backend.RecordKey{key})
	if r, ok := records[key]; ok && err == nil {
		return &r, nil
	}
	return nil, err
}

// node is the wait in the index. One that its history has open and that has no row stands there as it would behind its next registration.
func (x *explaining) node(w *remains) *waitNode {
	if n := x.plan.x.waits[w.Number]; n != nil || w.Number != unnumbered {
		return x.plan.x.wait(w.Wait)
	}
	return x.plan.x.add(w.Wait)
}

// wait is the verdict on a wait with its facts.
func (x *explaining) wait(ctx context.Context, w *remains) (store.Explanation, error) {
	if w.Wait == nil {
		return x.unregistered(ctx, w.id)
	}
	out := store.Explanation{Facts: store.Facts{
		Type: w.Type, Keys: w.Keys, From: w.From, RegisteredAt: w.RegisteredAt, Deadline: w.due, WorkflowID: w.WorkflowID,
	}}
	f := &out.Facts
	if w.Number != unnumbered {
		f.Number = w.Number
	}
	var err error
	switch closed := w.stands.closed; {
	case closed != nil:
		out.Verdict, f.Seq, f.At, f.Event = rendezvous.Verdict(w.stands.closing()), closed.Seq, closed.RecordedAt, w.by
	case w.sealed(), w.left != nil:
		err = x.ended(ctx, w, &out)
	case w.Held != nil:
		out.Verdict, f.Event, f.Since = rendezvous.VerdictHeld, &rendezvous.EventID{Source: w.Held.Source, ID: w.Held.ID}, w.ParkedAt
		err = x.hold(ctx, w.Wait, f)
	default:
		err = x.openWait(ctx, w, &out)
	}
	return out, err
}

// openWait is the verdict on a wait that may meet an event.
func (x *explaining) openWait(ctx context.Context, w *remains, out *store.Explanation) error {
	n := x.node(w)
	first, low, err := x.meetOfWait(ctx, n)
	if err != nil {
		return err
	}
	f := &out.Facts
	if first == nil {
		out.Verdict, f.Since = rendezvous.VerdictNoEvent, w.OpenSince
		if !w.Deadline.IsZero() && !w.Deadline.After(x.now) {
			out.Verdict, f.Since = rendezvous.VerdictOverdue, w.due
			f.Hold, err = x.lag(ctx, w)
		}
		return err
	}
	due := offerDue(first.Event, w.Wait)
	f.Event, f.Since = eventID(first.Event), due.Since
	if low != n {
		out.Verdict, f.Wait, out.Reasons = rendezvous.VerdictBehind, waitID(low.Wait), []store.Reason{olderWait(low.Wait)}
		return nil
	}
	out.Verdict, out.Reasons = rendezvous.VerdictOfferDue, []store.Reason{due}
	return nil
}

// lag says what the time-out of an overdue wait waits for: the end of a lease, or the timer-worker.
func (x *explaining) lag(ctx context.Context, w *remains) (*store.Hold, error) {
	h := &store.Hold{State: rendezvous.HoldTimerLag}
	key := backend.TimerKey{Tenant: x.tenant, WorkflowID: w.WorkflowID, TimerID: rendezvous.WaitTimerID(w.RunID, w.Effect)}
	timers, err := x.r.Timers(ctx, []backend.TimerKey{key})
	if err != nil {
		return nil, err
	}
	if t := timers[key]; t != nil { // one that was lost is written again by ReconcileTimers
		h.Attempts, h.LastError, h.NextAttemptAt = t.Attempts, t.LastError, t.DueAt
	}
	flow, err := x.flow(ctx, w.WorkflowID)
	if err == nil && flow != nil && leased(flow, x.now) {
		h.State, h.Owner, h.Remaining = rendezvous.HoldLeased, flow.LeaseOwner, flow.LeaseExpires.Sub(x.now)
	}
	return h, err
}

// ended says how the run concluded over the wait, and what its conclusion let go of.
func (x *explaining) ended(ctx context.Context, w *remains, out *store.Explanation) error {
	out.Verdict = rendezvous.VerdictEnded
	f := &out.Facts
	var err error
	if f.Run, err = x.runFacts(ctx, w.id.RunID); err != nil || w.run == nil {
		return err
	}
	if f.At = w.run.SealedAt; w.left != nil {
		f.At, f.Run.Outcome = w.left.RecordedAt, w.left.Kind
	}
	kept, err := keptRetired(w.run)
	f.Released, f.Dead = firstOf(kept.Released), firstOf(kept.Dead)
	return err
}

// firstOf is as much of a list as an explanation tells.
func firstOf[T any](list []T) []T { return list[:min(len(list), store.MaxExplainList)] }

// unregistered says whether there is such a run, and what it calls its effects.
func (x *explaining) unregistered(ctx context.Context, id rendezvous.WaitID) (store.Explanation, error) {
	out := store.Explanation{Verdict: rendezvous.VerdictUnregistered}
	var err error
	if out.Facts.Run, err = x.runFacts(ctx, id.RunID); err != nil {
		return store.Explanation{}, err
	}
	if out.Facts.WorkflowID = out.Facts.Run.WorkflowID; out.Facts.Run.State == rendezvous.RunStateUnknown {
		return out, nil
	}
	names, err := x.r.EffectNames(ctx, backend.RunKey{Tenant: x.tenant, ID: id.RunID}, store.MaxNearSearch)
	if err != nil {
		return store.Explanation{}, err
	}
	out.Facts.Similar, out.Partial = firstOf(similarNames(id.Effect, names)), len(names) == store.MaxNearSearch
	return out, nil
}

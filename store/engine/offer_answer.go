package engine

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// answerOf is what an item is told. Items come in input order: the second that names a thing sees what the first did.
func (o *offering) answerOf(l *look) store.Offer {
	if l.err != nil {
		return failedOffer(l.err)
	}
	if l.item.Wait != nil {
		return o.answerWait(l)
	}
	return o.answerEvent(l)
}

func (o *offering) answerEvent(l *look) store.Offer {
	if l.e == nil {
		return store.Offer{Outcome: store.OfferUnknown}
	}
	if d := l.e.dealt; d != nil {
		return o.tell(d)
	}
	e := l.e.Event
	switch {
	case e.Corrupt != nil && (e.State == rendezvous.EventLive || e.State == ""):
		o.failOffer(e, e.Corrupt)
		return failedOffer(e.Corrupt)
	case e.State == rendezvous.EventConsumed:
		return o.consumed(e)
	case e.State == rendezvous.EventDead:
		return store.Offer{Outcome: store.OfferDead, Reason: e.DeadReason}
	case expired(e, o.at):
		o.settleTake(e)
		return store.Offer{Outcome: store.OfferExpired, EventTrace: e.Trace}
	case l.fate == fateLater:
		o.settleTake(e)
		return store.Offer{Outcome: store.OfferLater, EventTrace: e.Trace}
	}
	return o.alone(l.e)
}

// alone answers for a live event that nothing waits for. A kept one whose run is sealed cannot be asked for any more.
func (o *offering) alone(n *eventNode) store.Offer {
	e := n.Event
	if e.Target != "" {
		if run, _ := o.match.plan.x.addressee(n); run != nil && !run.SealedAt.IsZero() {
			o.kill(e, rendezvous.DeadAddresseeConcluded, "")
			return store.Offer{Outcome: store.OfferDead, Reason: e.DeadReason, EventTrace: e.Trace}
		}
	}
	o.settleTake(e)
	return store.Offer{Outcome: store.OfferNoWaiter, EventTrace: e.Trace}
}

func (o *offering) answerWait(l *look) store.Offer {
	if l.w == nil {
		return o.closed(waitKeyOf(l.item))
	}
	if d := l.w.dealt; d != nil {
		if d.told && d.offer.Outcome == store.OfferDelivered {
			return store.Offer{
				Outcome: store.OfferClosed, Closed: rendezvous.ClosedAnswered, WorkflowID: d.f.ID, Seq: d.offer.Seq, Event: d.offer.Event, WaitTrace: l.w.Trace,
			}
		}
		return o.tell(d)
	}
	out := store.Offer{Outcome: store.OfferNoEvent, WorkflowID: l.w.WorkflowID, WaitTrace: l.w.Trace}
	switch {
	case l.w.passed:
		out.Outcome, out.Closed = store.OfferClosed, rendezvous.ClosedEnded
	case l.fate == fateLater:
		out.Outcome = store.OfferLater
	}
	return out
}

// tell answers with a deal: to its first item as it was made, to later ones as it stands.
func (o *offering) tell(d *deal) store.Offer {
	out := d.offer
	if d.told && out.Outcome == store.OfferDelivered {
		out.Outcome, out.Resume = store.OfferAlreadyDelivered, false
		out.Woken = d.f.woken != nil
	}
	d.told = true
	return out
}

// consumed answers for an event that was answered earlier. Whether its run is still to be woken is its mark's to say: it goes with the next driver.
func (o *offering) consumed(e *backend.Event) store.Offer {
	key := backend.WorkflowKey{Tenant: e.Tenant, ID: e.Workflow}
	out := store.Offer{
		Outcome: store.OfferAlreadyDelivered, Wait: rendezvous.WaitID{RunID: e.Run, Effect: e.Effect}, WorkflowID: e.Workflow, Seq: e.Seq, EventTrace: e.Trace,
	}
	if w := o.workflows[key]; w != nil {
		out.Queue = w.Queue
	}
	if m := o.marks[key]; m != nil && m.RunID == e.Run && !o.givenBefore(e, m.Since) {
		out.Woken = true
		o.owed = append(o.owed, m)
	}
	return out
}

// givenBefore reports whether the event's answer was recorded before that instant, or is not there any more.
func (o *offering) givenBefore(e *backend.Event, at time.Time) bool {
	for _, r := range o.given[backend.WaitKey{Tenant: e.Tenant, RunID: e.Run, Effect: e.Effect}] {
		if r.Seq == e.Seq {
			return r.RecordedAt.Before(at)
		}
	}
	return true
}

// notice repeats the notices of runs that are woken still and may have one: they were lost, as a rule, with the worker that answered (EV-59). A run that
// this batch wakes anew has its notice already.
func (o *offering) notice() {
	for _, m := range distinct(o.owed) {
		key := m.Key()
		w := o.workflows[key]
		if w == nil || w.Corrupt != nil || w.RunID != m.RunID || w.Status != rendezvous.StatusRunning || leased(w, o.now) {
			continue
		}
		if f := o.flows[key]; f != nil && f.woken != nil {
			continue
		}
		o.notices.Resume = append(o.notices.Resume, repeatOf(m))
	}
}

// repeatOf is a mark's notice once more.
func repeatOf(m *backend.Woken) store.ResumeRef {
	return store.ResumeRef{
		Tenant: m.Tenant, Queue: m.Queue, WorkflowID: m.WorkflowID, RunID: m.RunID, Seq: m.Seq, Cause: m.Cause, Notices: m.Notices, Links: m.Links,
	}
}

// closed says how a wait without a row ended. One that never was has no ending.
func (o *offering) closed(key backend.WaitKey) store.Offer {
	out := store.Offer{Outcome: store.OfferClosed}
	run := o.runs[backend.RunKey{Tenant: key.Tenant, ID: key.RunID}]
	if run != nil {
		out.WorkflowID = run.WorkflowID
	}
	switch s := standingOf(o.effects[key]); {
	case s.closed != nil:
		out.Closed, out.Seq = s.closing(), s.closed.Seq
	case s.opened != nil && run != nil && !run.SealedAt.IsZero():
		out.Closed, out.Seq = rendezvous.ClosedEnded, run.LastSeq
	}
	return out
}

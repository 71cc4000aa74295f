package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// pair is the verdict on the event, with what stands between it and the wait.
func (x *explaining) pair(ctx context.Context, e *backend.Event, w *remains) (store.Explanation, error) {
	out, err := x.event(ctx, e)
	if err != nil {
		return store.Explanation{}, err
	}
	out.Hints = hints(e, w.Wait)
	out.Facts.Other = &store.Wants{Type: w.Type, Keys: w.Keys, From: w.From, Deadline: w.due}
	if out.Reasons = pairReasons(e, w, x.now); len(out.Reasons) == 0 {
		out.Reasons, err = x.firsts(ctx, e, w)
	}
	return out, err
}

// pairReasons is why an event does not meet a wait, all that holds, in the order of the closed set; none where the two meet. Who goes first is not judged.
func pairReasons(e *backend.Event, w *remains, at time.Time) []store.Reason {
	return append(eventReasons(e, w.Wait, at), waitReasons(w)...)
}

// eventReasons is M1 to M4: what the two want, and where the event is; and of M5 whether it came in time.
func eventReasons(e *backend.Event, w *backend.Wait, at time.Time) []store.Reason {
	var why []store.Reason
	add := func(holds bool, r store.Reason) {
		if holds {
			why = append(why, r)
		}
	}
	add(e.Type != w.Type, store.Reason{Code: rendezvous.PairOtherType})
	add(w.From != "" && w.From != e.Source, store.Reason{Code: rendezvous.PairOtherSource})
	add(!keysMeet(e, w), store.Reason{Code: rendezvous.PairNoSharedKey})
	add(e.Target != "" && e.Target != w.RunID, store.Reason{Code: rendezvous.PairOtherAddressee})
	add(e.State == rendezvous.EventLive && expired(e, at), store.Reason{Code: rendezvous.PairEventExpired, Since: e.ExpiresAt})
	add(e.State == rendezvous.EventClaimed, store.Reason{
		Code: rendezvous.PairEventClaimed, Wait: &rendezvous.WaitID{RunID: e.ClaimRun, Effect: e.ClaimEffect}, Since: e.ClaimedAt,
	})
	add(e.State == rendezvous.EventConsumed, store.Reason{
		Code: rendezvous.PairEventConsumed, Wait: &rendezvous.WaitID{RunID: e.Run, Effect: e.Effect}, Seq: e.Seq,
	})
	dead := e.State == rendezvous.EventDead
	add(dead && e.DeadReason != rendezvous.DeadErased, store.Reason{Code: rendezvous.PairEventDead, Dead: e.DeadReason, Since: e.DeadAt})
	erased := store.Reason{Code: rendezvous.PairEventErased}
	if dead {
		erased.Dead, erased.Since = e.DeadReason, e.DeadAt
	}
	add(e.Erased, erased)
	add(arrivedLate(e, w), store.Reason{Code: rendezvous.PairArrivedLate, Since: w.Deadline})
	return why
}

// keysMeet is M3 without the addressee: of a targeted event a side without keys does not restrict.
func keysMeet(e *backend.Event, w *backend.Wait) bool {
	if e.Target != "" && (len(e.Keys) == 0 || len(w.Keys) == 0) {
		return true
	}
	_, shared := rendezvous.SharedKey(w.Keys, e.Keys)
	return shared
}

// waitReasons is M5: where the wait is. Of a wait of which only the row is known, its closing and its run say nothing.
func waitReasons(w *remains) []store.Reason {
	var why []store.Reason
	if w.Held != nil {
		why = append(why, store.Reason{Code: rendezvous.PairWaitParked, Event: &rendezvous.EventID{Source: w.Held.Source, ID: w.Held.ID}, Since: w.ParkedAt})
	}
	if c := w.stands.closed; c != nil {
		why = append(why, store.Reason{Code: rendezvous.PairWaitClosed, Closed: w.stands.closing(), Event: w.by, Seq: c.Seq, Since: c.RecordedAt})
	}
	if c := w.left; c != nil {
		why = append(why, store.Reason{Code: rendezvous.PairWaitClosed, Closed: rendezvous.ClosedEnded, Outcome: c.Kind, Seq: c.Seq, Since: c.RecordedAt})
	}
	if w.run != nil && w.run.Status.Terminal() {
		why = append(why, store.Reason{Code: rendezvous.PairRunSealed, Outcome: w.run.Outcome, Since: w.run.SealedAt})
	}
	return why
}

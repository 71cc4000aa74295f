package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// meetOfEvent is the lowest wait that e meets (O1) and the oldest event that this wait meets (O2), as an offer would find them; nil when it meets none.
func (x *explaining) meetOfEvent(ctx context.Context, e *eventNode) (low *waitNode, first *eventNode, err error) {
	for {
		err = x.plan.complete(ctx, func(p *plan) {
			if low, _ = p.x.lowestWait(e); low != nil {
				first, _ = p.x.oldestEvent(low, e)
			}
		})
		if err != nil || low == nil {
			return nil, nil, err
		}
		if more, err := x.plan.x.passOver(ctx, x.r, []*waitNode{low}); !more || err != nil {
			return low, first, err
		}
	}
}

// meetOfWait is the oldest event that w meets and the lowest wait that this event meets; nil when it meets none.
func (x *explaining) meetOfWait(ctx context.Context, w *waitNode) (first *eventNode, low *waitNode, err error) {
	for {
		err = x.plan.complete(ctx, func(p *plan) {
			if first, _ = p.x.oldestEvent(w, nil); first != nil {
				low, _ = p.x.lowestWait(first)
			}
		})
		if err != nil || first == nil {
			return nil, nil, err
		}
		if low == nil || low.Number >= w.Number {
			return first, w, nil
		}
		if more, err := x.plan.x.passOver(ctx, x.r, []*waitNode{low}); !more || err != nil {
			return first, low, err
		}
	}
}

// firsts is what O3 says of a pair that meets: what goes first on either side, or that nothing does.
func (x *explaining) firsts(ctx context.Context, e *backend.Event, w *remains) ([]store.Reason, error) {
	en, wn := x.plan.x.event(e), x.node(w)
	low, _, err := x.meetOfEvent(ctx, en)
	if err != nil {
		return nil, err
	}
	first, _, err := x.meetOfWait(ctx, wn)
	if err != nil {
		return nil, err
	}
	var why []store.Reason
	if first != nil && first.Number < e.Number {
		why = append(why, olderEvent(first.Event))
	}
	if low != nil && low.Number < wn.Number {
		why = append(why, olderWait(low.Wait))
	}
	if len(why) == 0 {
		why = append(why, offerDue(e, wn.Wait))
	}
	return why, nil
}

func olderEvent(first *backend.Event) store.Reason {
	return store.Reason{Code: rendezvous.PairOlderEventFirst, Event: eventID(first), Since: first.LiveSince}
}

func olderWait(low *backend.Wait) store.Reason {
	return store.Reason{Code: rendezvous.PairOlderWaitFirst, Wait: waitID(low), Since: low.OpenSince}
}

func offerDue(e *backend.Event, w *backend.Wait) store.Reason {
	return store.Reason{Code: rendezvous.PairOfferDue, Since: later(e.LiveSince, w.OpenSince)}
}

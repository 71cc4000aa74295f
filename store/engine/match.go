package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// MatchWaiter implements [store.Events].
func (t *tenant) MatchWaiter(ctx context.Context, id rendezvous.EventID, at time.Time) (store.Match, error) {
	if err := checkEventID(id); err != nil {
		return store.Match{}, err
	}
	memory := newMatchMemory()
	var found store.Match
	_, err := t.update(ctx, "match_waiter", at, func(ctx context.Context, u *unit) (err error) {
		found, err = u.matchWaiter(ctx, backend.EventKey{Tenant: t.name, Source: id.Source, ID: id.ID}, memory)
		return err
	})
	if err != nil {
		return store.Match{}, err
	}
	return found, nil
}

// matchWaiter says where an event went, or claims for a live one the lowest wait it meets, unless an older event stands before it there (EV-28..EV-34).
func (u *unit) matchWaiter(ctx context.Context, key backend.EventKey, memory *matchMemory) (store.Match, error) {
	rows, err := u.tx.EventsByKey(ctx, []backend.EventKey{key}, false)
	if err != nil {
		return store.Match{}, err
	}
	row := rows[key]
	switch {
	case row == nil:
		return store.Match{}, eventNotFound(rendezvous.EventID{Source: key.Source, ID: key.ID})
	case row.Corrupt != nil:
		return store.Match{}, row.Corrupt
	case row.State != rendezvous.EventLive:
		return store.Match{Outcome: store.MatchOutcome(row.State), Place: placeOf(row)}, nil
	case expired(row, u.at):
		return store.Match{Outcome: store.MatchExpired}, nil
	}
	return u.matchLive(ctx, row, memory)
}

// matchLive is matchWaiter for an event that may meet somebody.
func (u *unit) matchLive(ctx context.Context, row *backend.Event, memory *matchMemory) (store.Match, error) {
	m := u.matching(memory)
	e := m.plan.x.event(row)
	var older *eventNode
	err := m.settle(ctx, nil, func(p *plan) { older = p.match(e) })
	switch {
	case err != nil:
		return store.Match{}, err
	case older != nil:
		return store.Match{Outcome: store.MatchOlder, Older: rendezvous.EventID{Source: older.Source, ID: older.ID}}, nil
	case len(m.plan.pairs) == 0:
		return store.Match{Outcome: store.MatchNoWaiter}, u.unmoved(ctx, row)
	}
	w := m.plan.pairs[0].w.Wait
	if f := u.flows[flowKey(w)]; f.Corrupt != nil {
		return store.Match{}, f.Corrupt
	}
	u.claim(w, e.Event)
	matched := waitRow(w)
	return store.Match{Outcome: store.MatchMatched, Wait: &matched}, nil
}

// match pairs e with the lowest wait it meets, unless an older event meets that too: that one is answered.
func (p *plan) match(e *eventNode) (older *eventNode) {
	w, known := p.x.lowestWait(e)
	if !known || w == nil {
		return nil
	}
	p.judged = append(p.judged, w)
	first, known := p.x.oldestEvent(w, e)
	if !known {
		return nil
	}
	if first != e {
		return first
	}
	p.take(e, w)
	return nil
}

// unmoved judges an answer that found no partner: it is stale if the row it speaks of moved on since it was read, for the reason recheck gives.
func (u *unit) unmoved(ctx context.Context, e *backend.Event) error {
	now, err := u.tx.EventsByNumber(ctx, []int64{e.Number}, false)
	if err != nil {
		return err
	}
	if n := now[e.Number]; n == nil || n.Version != e.Version {
		return backend.ErrStale
	}
	return nil
}

// unmovedWait is unmoved for a wait.
func (u *unit) unmovedWait(ctx context.Context, w *backend.Wait) error {
	now, err := u.tx.Waits(ctx, []backend.WaitKey{w.Key()})
	if err != nil {
		return err
	}
	if n := now[w.Key()]; n == nil || n.Version != w.Version {
		return backend.ErrStale
	}
	return nil
}

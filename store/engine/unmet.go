package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// mostUnmet is the longest a take holds an event back; the hold doubles with each take in a row.
const mostUnmet = 10 * time.Minute

// TakeUnmet implements [store.Repairer].
func (e *Engine) TakeUnmet(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (store.Taken[store.UnmetPair], string, error) {
	limit, hold, err := checkUnmet(grace, limit, hold)
	if err != nil {
		return store.Taken[store.UnmetPair]{}, "", err
	}
	after, err := unmetCursor(cursor)
	if err != nil {
		return store.Taken[store.UnmetPair]{}, "", err
	}
	var page store.Taken[store.UnmetPair]
	var next string
	_, err = e.update(ctx, "take_unmet", time.Time{}, func(ctx context.Context, u *unit) error {
		rows, on, err := u.tx.UnmetEvents(ctx, u.now.Add(-grace), after, limit)
		if err != nil {
			return err
		}
		page = store.Taken[store.UnmetPair]{Saturated: on != 0 && len(rows) == limit}
		if n := atOnce(rows); n < len(rows) {
			if before := rows[n].Number - 1; on == 0 || before < on { // one that got no place may stand before it
				on = before
			}
			rows, page.Saturated = rows[:n], true
		}
		if next = ""; on != 0 {
			next = strconv.FormatInt(on, 10)
		}
		page.Rows, err = u.takeUnmet(ctx, rows, hold)
		return err
	})
	if err != nil {
		return store.Taken[store.UnmetPair]{}, "", err
	}
	return page, next, nil
}

// checkUnmet resolves what both verbs are given.
func checkUnmet(grace time.Duration, limit int, hold time.Duration) (int, time.Duration, error) {
	limit, err := rendezvous.PageLimit(limit, rendezvous.MaxBatchItems, rendezvous.MaxBatchItems)
	if err != nil {
		return 0, 0, err
	}
	if hold, err = checkHold(hold); err != nil {
		return 0, 0, err
	}
	if grace < 0 {
		return 0, 0, rendezvous.InvalidField("grace", "%s is negative; give 0s or more", grace)
	}
	return limit, hold, nil
}

// atOnce is how many of the rows one page takes. Of takes that ran out together nobody knows which event it was that ended its worker: each of those makes a
// page of its own, so that the others are settled by their offers, which ends their count (EV-60, SW-22).
func atOnce(rows []*backend.Event) int {
	for i, e := range rows {
		if e.TakeOpen {
			return max(i, 1)
		}
	}
	return len(rows)
}

func unmetCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, rendezvous.InvalidField("cursor", "malformed cursor; give one that a page answered, or none to start")
	}
	return n, nil
}

// lowestWaits is, for each event, its node in the index and the lowest-numbered open wait that it meets, nil for none.
func (u *unit) lowestWaits(ctx context.Context, x *index, rows []*backend.Event) ([]*eventNode, []*waitNode, error) {
	p := &plan{x: x}
	nodes, waits := make([]*eventNode, len(rows)), make([]*waitNode, len(rows))
	for i, row := range rows {
		nodes[i] = x.event(row)
	}
	err := p.complete(ctx, func(p *plan) {
		for i, n := range nodes {
			if waits[i] = nil; n.Corrupt == nil {
				waits[i], _ = p.x.lowestWait(n)
			}
		}
	})
	return nodes, waits, err
}

// lostTake counts a take that ran out unsettled, of a lost worker, as a failed offer: an event that kills its worker ends as undeliverable.
func (u *unit) lostTake(e *backend.Event) {
	if e.TakeOpen {
		u.failOffer(e, rendezvous.Errorf(rendezvous.CodeUnavailable, "an offer of the event was taken and never came to an end"))
	}
}

// takeUnmet takes the events and names their lowest waits.
func (u *unit) takeUnmet(ctx context.Context, rows []*backend.Event, hold time.Duration) ([]store.UnmetPair, error) {
	nodes, waits, err := u.lowestWaits(ctx, newIndex(u.tx, u.at), rows)
	if err != nil {
		return nil, err
	}
	var taken []int
	for i, n := range nodes {
		u.lostTake(n.Event)
		if n.State != rendezvous.EventDead && (waits[i] != nil || n.Corrupt != nil) {
			taken = append(taken, i)
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	tokens, err := u.tx.NewTakes(ctx, len(taken))
	if err != nil {
		return nil, err
	}
	pairs := make([]store.UnmetPair, len(taken))
	for k, i := range taken {
		e := nodes[i].Event
		e.Take, e.TakeOpen, e.TakeUntil = tokens[k], true, u.now.Add(doubled(hold, e.Takes, mostUnmet))
		e.Takes++
		u.saveEvent(e)
		pairs[k] = store.UnmetPair{Tenant: e.Tenant, Event: eventRef(e), Take: e.Take}
		if w := waits[i]; w != nil {
			pairs[k].Wait = rendezvous.WaitID{RunID: w.RunID, Effect: w.Effect}
		}
	}
	return pairs, nil
}

// GiveBackUnmet implements [store.Repairer].
func (e *Engine) GiveBackUnmet(ctx context.Context, pairs []store.UnmetPair, retryIn time.Duration) error {
	if err := checkItems(len(pairs), time.Time{}); err != nil {
		return err
	}
	if err := checkRetryIn(retryIn); err != nil {
		return err
	}
	keys := make([]backend.EventKey, len(pairs))
	for i, p := range pairs {
		keys[i] = backend.EventKey{Tenant: p.Tenant, Source: p.Event.Source, ID: p.Event.ID}
	}
	_, err := e.update(ctx, "give_back_unmet", time.Time{}, func(ctx context.Context, u *unit) error {
		rows, err := u.tx.EventsByKey(ctx, distinct(keys), false)
		for i, p := range pairs {
			if row := rows[keys[i]]; row != nil && row.TakeOpen && row.Take == p.Take {
				row.TakeOpen, row.TakeUntil, row.Takes = false, rendezvous.DueInstant(u.now.Add(retryIn)), row.Takes-1
				u.saveEvent(row)
			}
		}
		return err
	})
	return err
}

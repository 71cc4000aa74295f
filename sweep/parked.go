package sweep

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

const (
	parkedPage = 500
	parkedHold = 30 * time.Second // how long a lost worker keeps a page from the others
	parkedMost = 30 * time.Second // a leased wait is looked at again after so long
)

// parked tries parked waits whose runs are free (events.md section 7).
func (w *Worker) parked(ctx context.Context) (page, error) {
	taken, err := w.shards.TakeParked(ctx, parkedPage, parkedHold)
	if err != nil || len(taken.Rows) == 0 {
		return page{saturated: taken.Saturated}, err
	}
	p := page{Counts: Counts{Handed: len(taken.Rows)}, saturated: taken.Saturated, oldest: w.age(ctx, dueFirst(taken.Rows))}
	refs := make([]store.WaitRef, len(taken.Rows))
	for i, r := range taken.Rows {
		refs[i] = store.WaitRef{Tenant: r.Tenant, WaitID: r.WaitID}
	}
	got, err := w.shards.DeliverParked(ctx, refs, time.Time{})
	if err != nil {
		return page{}, errors.Join(err, w.giveBack(ctx, taken.Rows))
	}
	w.deps.Sender.Try(ctx, got.Notices) // it is committed, whatever comes of what is left
	var back []store.ParkItem
	for i, o := range got.Items {
		if item, again := deferral(taken.Rows[i], o); again {
			back = append(back, item)
		}
		countOffer(o, &p.Counts)
	}
	if len(back) == 0 {
		return p, nil
	}
	results, err := w.shards.ParkWait(ctx, back, time.Time{})
	for _, r := range results {
		if r.Quarantined {
			p.Quarantined++
		}
	}
	return p, err
}

// deferral is when a wait that could not be answered is tried again, if it is.
func deferral(row store.TakenWait, o store.Offer) (store.ParkItem, bool) {
	item := store.ParkItem{Tenant: row.Tenant, WaitID: row.WaitID, Take: row.Take}
	switch {
	case o.Outcome == store.OfferParked && !o.Quarantined:
		item.Cause, item.RetryIn = store.ParkLeased, min(o.Remaining+jitter(500*time.Millisecond), parkedMost)
	case o.Outcome == store.OfferFailed && !o.Quarantined: // the store has counted most failures, and a take only once
		item.Cause, item.RetryIn = store.ParkFailed, failedPause(row.Attempts)
		item.Error = string(rendezvous.AsError(o.Err).Code)
	default:
		return item, false
	}
	return item, true
}

// countOffer counts what an offer came to.
func countOffer(o store.Offer, c *Counts) {
	switch {
	case o.Quarantined || o.Outcome == store.OfferQuarantined:
		c.Quarantined++
	case o.Outcome == store.OfferParked || o.Outcome == store.OfferLater:
		c.Deferred++
	case o.Outcome == store.OfferFailed:
		c.Failed++
	case o.Outcome == store.OfferReleased:
		c.Released++
	default:
		c.Done++
	}
}

// dueFirst is when the row was due that was due first.
func dueFirst(rows []store.TakenWait) time.Time {
	first := rows[0].NextAttemptAt
	for _, r := range rows {
		if r.NextAttemptAt.Before(first) {
			first = r.NextAttemptAt
		}
	}
	return first
}

// giveBack settles the takes of a page that failed as a whole: left to run out, they would count as failed attempts of waits that nothing is wrong with.
func (w *Worker) giveBack(ctx context.Context, rows []store.TakenWait) error {
	items := make([]store.ParkItem, len(rows))
	for i, r := range rows {
		items[i] = store.ParkItem{Tenant: r.Tenant, WaitID: r.WaitID, Take: r.Take, Cause: store.ParkLeased, RetryIn: jitter(w.cfg.Tick)}
	}
	return w.handBack(ctx, func(ctx context.Context) error {
		_, err := w.shards.ParkWait(ctx, items, time.Time{})
		return err
	})
}

// handBack gives a page back, whether or not its budget is used up or the worker stops.
func (w *Worker) handBack(ctx context.Context, give func(ctx context.Context) error) error {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), w.deps.Clock, w.cfg.Page)
	defer cancel()
	return give(ctx)
}

// failedPause is full jitter over 1 s doubling to 5 min.
func failedPause(attempts int) time.Duration {
	return rand.N(min(time.Second<<min(attempts, 10), 5*time.Minute))
}

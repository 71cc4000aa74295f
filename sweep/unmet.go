package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
)

const (
	unmetPage = 500
	unmetHold = 30 * time.Second // how long a lost worker keeps a page from the others, at the first time
	// unmetLook is how long a page looks on, slice after slice of the live events, where it finds nothing: how soon it is once around a large stock.
	unmetLook = 100 * time.Millisecond
)

// unmetPairs offers live events left apart from a wait they meet: a MATCH notice was lost (EV-41).
func (w *Worker) unmetPairs(ctx context.Context) (page, error) {
	taken, err := w.takeUnmet(ctx)
	if err != nil {
		return page{}, errors.Join(err, w.giveBackUnmet(ctx, taken.Rows))
	}
	p := page{Counts: Counts{Handed: len(taken.Rows)}, saturated: taken.Saturated}
	if len(taken.Rows) == 0 {
		return p, nil
	}
	items := make([]store.OfferItem, len(taken.Rows))
	for i, r := range taken.Rows {
		id := r.Event.EventID
		items[i] = store.OfferItem{Tenant: r.Tenant, Event: &id}
	}
	got, err := w.store.OfferBatch(ctx, items, time.Time{})
	if err != nil { // left to run out, the takes would count as failed offers of events that nothing is wrong with
		return page{}, errors.Join(err, w.giveBackUnmet(ctx, taken.Rows))
	}
	for _, o := range got.Items {
		countOffer(o, &p.Counts)
	}
	w.deps.Sender.Try(ctx, got.Notices)
	return p, nil
}

// giveBackUnmet ends takes that nobody is to blame for.
func (w *Worker) giveBackUnmet(ctx context.Context, taken []store.UnmetPair) error {
	if len(taken) == 0 {
		return nil
	}
	return w.handBack(ctx, func(ctx context.Context) error { return w.store.GiveBackUnmet(ctx, taken, jitter(w.cfg.Tick)) })
}

// takeUnmet takes what became matchable lately, and then, where there is room, the next events left apart of the first slice of all that has any.
func (w *Worker) takeUnmet(ctx context.Context) (store.Taken[store.UnmetPair], error) {
	taken, next, err := w.store.TakeNews(ctx, w.cfg.Grace, unmetPage, unmetHold, w.news)
	if err != nil {
		return taken, err
	}
	w.news = next
	room := unmetPage - len(taken.Rows)
	for began := w.deps.Clock.Now(); room > 0 && !taken.Saturated; {
		more, next, err := w.store.TakeUnmet(ctx, w.cfg.Grace, room, unmetHold, w.unmet)
		if err != nil {
			return taken, err
		}
		w.unmet = next
		if len(more.Rows) > 0 || next == "" || w.deps.Clock.Now().Sub(began) >= unmetLook {
			return store.Taken[store.UnmetPair]{Rows: append(taken.Rows, more.Rows...), Saturated: more.Saturated}, nil
		}
	}
	return taken, nil
}

package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// parkedPosition is where a list of parked waits goes on.
type parkedPosition struct {
	Quarantined bool      `json:"quarantined,omitempty"`
	At          time.Time `json:"at"`
	Number      int64     `json:"number"`
}

func (p *parkedPosition) sound() bool { return p.Number > 0 && soundAt(p.At) }

// after is the position in the storage's words; the zero position is before all.
func (p parkedPosition) after() backend.ParkedPosition {
	return backend.ParkedPosition{Set: p.Number != 0, Quarantined: p.Quarantined, At: p.At, Number: p.Number}
}

// ParkedWaits implements [store.Parked].
func (t *tenant) ParkedWaits(ctx context.Context, f store.WaitFilter, limit int, cursor string) (store.ParkedPage, error) {
	const verb = "parked_waits"
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.ParkedPage{}, err
	}
	if err := checkWaitFilter(f); err != nil {
		return store.ParkedPage{}, err
	}
	var after parkedPosition
	if err := decodeCursor(cursor, verb, t.name, f, &after); err != nil {
		return store.ParkedPage{}, err
	}
	var page store.ParkedPage
	for range releaseTries {
		list, err := t.listParked(ctx, verb, f, after.after(), limit)
		if err != nil {
			return store.ParkedPage{}, err
		}
		page.WaitPage = list.page(func(last *backend.Wait) string {
			return encodeCursor(verb, t.name, f, parkedPosition{!last.QuarantinedAt.IsZero(), last.NextAttemptAt, last.Number})
		})
		if len(list.left) == 0 || len(page.Released) >= limit {
			break
		}
		if err := t.releaseLeft(ctx, list.left, &page); err != nil {
			return store.ParkedPage{}, err
		}
	}
	return page, nil
}

// releaseTries bounds how often a page is read again because it began with rows of sealed runs. What is left of them then is left out of the page.
const releaseTries = 4

// parkedList is a page of parked waits and one row beyond it.
type parkedList struct {
	rows  []*backend.Wait
	limit int
	left  []*backend.Wait // those of sealed runs: never shown
}

// page is the page without the rows of sealed runs; those count for where the next page begins.
func (l parkedList) page(cursor func(last *backend.Wait) string) store.WaitPage {
	page := waitPage(l.rows, l.limit, cursor)
	page.Waits = page.Waits[:0]
	for _, w := range l.rows[:min(l.limit, len(l.rows))] {
		if !slices.Contains(l.left, w) {
			page.Waits = append(page.Waits, waitRow(w))
		}
	}
	return page
}

func (t *tenant) listParked(ctx context.Context, verb string, f store.WaitFilter, after backend.ParkedPosition, limit int) (parkedList, error) {
	list := parkedList{limit: limit}
	err := t.view(ctx, verb, func(ctx context.Context, r backend.Reader) (err error) {
		if list.rows, err = r.ListParked(ctx, t.name, backend.WaitFilter(f), after, limit+1); err != nil || len(list.rows) == 0 {
			return err
		}
		keys := make([]backend.RunKey, len(list.rows))
		for i, w := range list.rows {
			keys[i] = backend.RunKey{Tenant: w.Tenant, ID: w.RunID}
		}
		runs, err := r.Runs(ctx, distinct(keys))
		if err != nil {
			return err
		}
		for i, w := range list.rows {
			if run := runs[keys[i]]; run != nil && run.Status.Terminal() && w.Corrupt == nil {
				list.left = append(list.left, w)
			}
		}
		return nil
	})
	return list, err
}

// releaseLeft lets go of what rows of sealed runs hold, which are possible only after a restore, and names their events.
func (t *tenant) releaseLeft(ctx context.Context, left []*backend.Wait, page *store.ParkedPage) error {
	refs := make([]store.WaitRef, len(left))
	for i, w := range left {
		refs[i] = waitRef(w)
	}
	for len(refs) > 0 {
		n := min(len(refs), rendezvous.MaxBatchItems)
		done, err := t.DeliverParked(ctx, refs[:n], time.Time{})
		if err != nil {
			return err
		}
		for _, o := range done.Items {
			if o.Err != nil {
				return o.Err
			}
			if o.Outcome == store.OfferReleased {
				page.Released = append(page.Released, o.Event)
			}
		}
		page.Notices.Append(done.Notices)
		refs = refs[n:]
	}
	return nil
}

// QuarantinedWaits implements [store.Parked].
func (t *tenant) QuarantinedWaits(ctx context.Context, limit int, cursor string) (store.WaitPage, error) {
	const verb = "quarantined_waits"
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.WaitPage{}, err
	}
	var after parkedPosition
	if err := decodeCursor(cursor, verb, t.name, nil, &after); err != nil {
		return store.WaitPage{}, err
	}
	var rows []*backend.Wait
	err = t.view(ctx, verb, func(ctx context.Context, r backend.Reader) (err error) {
		rows, err = r.ListQuarantined(ctx, t.name, after.after(), limit+1)
		return err
	})
	if err != nil {
		return store.WaitPage{}, err
	}
	return waitPage(rows, limit, func(last *backend.Wait) string {
		return encodeCursor(verb, t.name, nil, parkedPosition{true, last.QuarantinedAt, last.Number})
	}), nil
}

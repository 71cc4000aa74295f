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
		page.WaitPage = store.WaitPage{Waits: list.shown()}
		if at := list.next; at.Set {
			page.NextCursor = encodeCursor(verb, t.name, f, parkedPosition{at.Quarantined, at.At, at.Number})
		}
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

// parkedList is a page of parked waits.
type parkedList struct {
	rows []*backend.Wait
	next backend.ParkedPosition
	left []*backend.Wait // those of sealed runs: never shown
}

// shown is the page without the rows of sealed runs.
func (l parkedList) shown() []store.WaitRow {
	return waitRows(slices.DeleteFunc(slices.Clone(l.rows), func(w *backend.Wait) bool { return slices.Contains(l.left, w) }))
}

func (t *tenant) listParked(ctx context.Context, verb string, f store.WaitFilter, after backend.ParkedPosition, limit int) (parkedList, error) {
	var list parkedList
	err := t.view(ctx, verb, func(ctx context.Context, r backend.Reader) (err error) {
		list = parkedList{}
		list.rows, list.next, err = r.ListParked(ctx, t.name, backend.WaitFilter(f), after, backend.Span{Limit: limit, Look: t.look})
		if err != nil || len(list.rows) == 0 {
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
	var page store.WaitPage
	if len(rows) > limit { // one more tells whether this is the last page
		rows = rows[:limit]
		last := rows[limit-1]
		page.NextCursor = encodeCursor(verb, t.name, nil, parkedPosition{true, last.QuarantinedAt, last.Number})
	}
	page.Waits = waitRows(rows)
	return page, nil
}

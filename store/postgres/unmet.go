package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// How many rows a walk goes over in one call: what bounds a pass over a large stock of events nobody waits for.
const (
	unmetSlice = 20_000 // key rows, of the walk through all
	newsSlice  = 5_000  // of each walk over the news: a wait costs several looks into indexes
)

// UnmetEvents implements [backend.Tx].
func (t *transaction) UnmetEvents(ctx context.Context, before time.Time, after int64, limit int) ([]*backend.Event, int64, error) {
	slice, err := t.slice(ctx, before, after, unmetSlice)
	if err != nil {
		return nil, 0, err
	}
	due := map[string][]int64{}
	for _, f := range slice.Finds {
		due[f.Tenant] = append(due[f.Tenant], f.Event)
	}
	for _, own := range due {
		slices.Sort(own)
	}
	var next int64
	if slice.Cut {
		next = slice.End.Number
	}
	numbers, left := fair.Numbers(due, limit)
	if left != 0 {
		next = left - 1
	}
	rows, err := t.takeUnmet(ctx, numbers)
	return rows, next, err
}

func (t *transaction) takeUnmet(ctx context.Context, numbers []int64) ([]*backend.Event, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	return t.eventRows(ctx, takeUnmetSQL, bigints(numbers, func(n int64) int64 { return n }), t.now)
}

// slice looks at the next live events by number.
func (t *transaction) slice(ctx context.Context, before time.Time, after, most int64) (fair.Look, error) {
	w := fair.Look{End: backend.Place{Number: after}}
	err := t.query(ctx, unmetSQL, func(c *columns) error {
		if c.Absent() { // the slice itself; an empty one ends nowhere
			if !c.Absent() {
				w.End.Number = c.Bigint()
				if w.Cut = c.Count() == most; w.Cut {
					w.End = w.End.Before() // an event's key rows may have been cut apart
				}
			}
			return nil
		}
		f := fair.Find{Tenant: c.Text(), Event: c.Bigint()}
		f.Number = f.Event
		w.Finds = append(w.Finds, f)
		return nil
	}, t.now, before, after, most)
	return w, err
}

// UnmetNews implements [backend.Tx].
func (t *transaction) UnmetNews(ctx context.Context, before time.Time, from backend.News, limit int) (page backend.NewsPage, err error) {
	var walks [backend.NewsWalks]fair.Look
	for i, place := range from {
		walks[i].End = place
	}
	if walks[backend.NewEvents], err = t.slice(ctx, before, from[backend.NewEvents].Number, newsSlice); err != nil {
		return page, err
	}
	events, waits, fresh := from[backend.LiveAgain], from[backend.OpenAgain], from[backend.NewWaits]
	if err := t.walks(ctx, &walks, newsOfEventsSQL, t.now, before, events.At, events.Number, int64(newsSlice)); err != nil {
		return page, err
	}
	if err := t.walks(ctx, &walks, newsOfWaitsSQL, t.now, before, fresh.Number, waits.At, waits.Number, int64(newsSlice)); err != nil {
		return page, err
	}
	numbers, page := fair.News(&walks, limit)
	page.Rows, err = t.takeUnmet(ctx, numbers)
	return page, err
}

// walks reads what walks found, and where they ended.
func (t *transaction) walks(ctx context.Context, walks *[backend.NewsWalks]fair.Look, sql string, args ...any) error {
	return t.query(ctx, sql, func(c *columns) error {
		w := &walks[c.Tally()]
		at := backend.Place{At: c.InstantOrNone(), Number: c.Bigint()}
		if c.Absent() { // where it ended
			w.End, w.Cut = at, c.Bigint() == 1
			return nil
		}
		w.Finds = append(w.Finds, fair.Find{Place: at, Tenant: c.Text(), Event: c.Bigint()})
		return nil
	}, args...)
}

// LastNumbers implements [backend.Tx].
func (t *transaction) LastNumbers(ctx context.Context) (backend.Numbers, error) { return t.Given(ctx) }

package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

const (
	// newsOverlap, and the grace, is how long a transaction may take from drawing its numbers, or its now, to its commit, without the looks at the news missing
	// its rows. What takes longer is the walk's through all.
	newsOverlap = 10 * time.Second
	// How far back a pass looks that has no cursor: so many numbers, and so long for what is live or open again.
	firstNumbers = 50_000
	firstWindow  = 5 * time.Minute
)

// newsCursor is where looks at the news go on. A look begins at a mark and ends, maybe some pages later, at what was there by then.
type newsCursor struct {
	From  backend.News
	Cut   bool      // the look goes on at From; else the next one begins
	Began time.Time // when the look did
	Marks []newsMark
}

// newsMark says how far numbers were drawn at an instant. What draws a higher one, or has a later instant, is new then.
type newsMark struct {
	At          time.Time
	Event, Wait int64
}

func (c *newsCursor) sound() bool {
	for _, m := range c.Marks {
		if !soundAt(m.At) {
			return false
		}
	}
	for _, p := range c.From {
		if !p.At.IsZero() && !soundAt(p.At) {
			return false
		}
	}
	return len(c.Marks) > 0 && soundAt(c.Began)
}

// begin begins a look: at the latest mark that is older than the look before by the overlap. So every row behind it was looked at when the transactions that drew
// its number, or may have drawn a lower one, were over, and when both sides of a pair had had their grace.
func (c *newsCursor) begin(now time.Time, last backend.Numbers, overlap time.Duration) {
	if len(c.Marks) == 0 {
		c.Marks = []newsMark{{now.Add(-firstWindow), max(last.Event-firstNumbers, 0), max(last.Wait-firstNumbers, 0)}}
	}
	for len(c.Marks) > 1 && !c.Marks[1].At.After(c.Began.Add(-overlap)) {
		c.Marks = c.Marks[1:]
	}
	if ago := now.Sub(c.Marks[len(c.Marks)-1].At); ago >= overlap/4 || ago < 0 { // pages may follow each other at once
		c.Marks = append(c.Marks, newsMark{now, last.Event, last.Wait})
	}
	m := c.Marks[0]
	c.Began, c.From = now, backend.News{
		backend.NewEvents: {Number: m.Event}, backend.NewWaits: {Number: m.Wait}, backend.LiveAgain: {At: m.At}, backend.OpenAgain: {At: m.At},
	}
}

// TakeNews implements [store.Repairer].
func (e *Engine) TakeNews(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (store.Taken[store.UnmetPair], string, error) {
	limit, hold, err := checkUnmet(grace, limit, hold)
	if err != nil {
		return store.Taken[store.UnmetPair]{}, "", err
	}
	var from newsCursor
	if err := decodeCursor(cursor, "take_news", "", nil, &from); err != nil {
		return store.Taken[store.UnmetPair]{}, "", err
	}
	var page store.Taken[store.UnmetPair]
	var c newsCursor
	_, err = e.update(ctx, "take_news", time.Time{}, func(ctx context.Context, u *unit) error {
		c = from
		c.Marks = slices.Clone(from.Marks) // the transaction may be made anew
		if !c.Cut {
			last, err := u.tx.LastNumbers(ctx)
			if err != nil {
				return err
			}
			c.begin(u.now, last, grace+newsOverlap)
		}
		found, err := u.tx.UnmetNews(ctx, u.now.Add(-grace), c.From, limit)
		if err != nil {
			return err
		}
		c.From, c.Cut = found.Next, found.More
		page.Saturated = found.More
		// Takes that ran out are TakeUnmet's, which takes each alone.
		page.Rows, err = u.takeUnmet(ctx, slices.DeleteFunc(found.Rows, func(e *backend.Event) bool { return e.TakeOpen }), hold)
		return err
	})
	if err != nil {
		return store.Taken[store.UnmetPair]{}, "", err
	}
	return page, encodeCursor("take_news", "", nil, c), nil
}

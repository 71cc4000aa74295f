package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// choice is the letters that a requeue or a purge is about, and under which name.
type choice struct {
	tenant   string
	op       string
	operator *rendezvous.Operator
	ids      []rendezvous.EventID
	events   map[rendezvous.EventID]*backend.Event
}

// sign keeps with the row who asked last, and under which name.
func (c *choice) sign(e *backend.Event) {
	operator := *c.operator
	e.Op, e.OpBy = c.op, &operator
}

// each treats the letters in order. What is not there, or does not decode, fails alone (SW-12).
func (c *choice) each(one func(e *backend.Event) store.Requeued) []store.Requeued {
	items := make([]store.Requeued, len(c.ids))
	for i, id := range c.ids {
		switch e := c.events[id]; {
		case e == nil:
			items[i].Outcome = store.RequeueNotFound
		case e.Corrupt != nil:
			items[i].Err = e.Corrupt
		default:
			items[i] = one(e)
		}
		items[i].EventID = id
	}
	return items
}

// treat has a selection of letters treated in one transaction.
func (t *tenant) treat(
	ctx context.Context, verb string, s store.Selection, operator rendezvous.Operator, op string, at time.Time,
	fn func(ctx context.Context, u *unit, c choice) ([]store.Requeued, error),
) (store.Requeuing, error) {
	if err := operator.Check("operator"); err != nil {
		return store.Requeuing{}, err
	}
	if err := rendezvous.CheckID("op", op); err != nil {
		return store.Requeuing{}, err
	}
	walk, err := t.checkSelection(verb, s)
	if err != nil {
		return store.Requeuing{}, err
	}
	var done store.Requeuing
	notices, err := t.update(ctx, verb, at, func(ctx context.Context, u *unit) error {
		c := choice{tenant: t.name, op: op, operator: &operator, ids: s.Events, events: map[rendezvous.EventID]*backend.Event{}}
		done = store.Requeuing{}
		var next int64
		var err error
		if s.Filter == nil {
			err = c.readNamed(ctx, u)
		} else {
			next, err = c.readFiltered(ctx, u, walk, s.Bound, verb == purgeVerb)
		}
		if err != nil {
			return err
		}
		if next != 0 {
			done.More = true
			done.NextCursor = encodeCursor(verb, t.name, walk.Filter, numberPosition{Number: next})
		}
		done.Items, err = fn(ctx, u, c)
		return err
	})
	if err != nil {
		return store.Requeuing{}, err
	}
	done.Notices = notices
	return done, nil
}

// checkSelection judges a selection and answers the walk that a filter asks for.
func (t *tenant) checkSelection(verb string, s store.Selection) (backend.DeadWalk, error) {
	if s.Filter == nil {
		return backend.DeadWalk{}, checkNamed(s)
	}
	switch {
	case len(s.Events) > 0:
		return backend.DeadWalk{}, rendezvous.InvalidField("events", "are given, and a filter too; give one of them")
	case s.Bound < 1:
		return backend.DeadWalk{}, rendezvous.InvalidField("bound", "%d is outside 1..%d", s.Bound, rendezvous.MaxBatchItems).
			With("limit", rendezvous.MaxBatchItems).With("value", s.Bound)
	case s.Bound > rendezvous.MaxBatchItems:
		return backend.DeadWalk{}, rendezvous.OverLimit("bound", rendezvous.MaxBatchItems, s.Bound)
	}
	f, err := checkDeadFilter(*s.Filter)
	if err != nil {
		return backend.DeadWalk{}, err
	}
	walk := backend.DeadWalk{Filter: backend.DeadFilter(f), Up: true}
	var after numberPosition
	err = decodeCursor(s.Cursor, verb, t.name, walk.Filter, &after)
	walk.After = after.Number
	return walk, err
}

func checkNamed(s store.Selection) error {
	switch {
	case s.Cursor != "":
		return rendezvous.InvalidField("cursor", "belongs to a filter; identities have none")
	case s.Bound != 0:
		return rendezvous.InvalidField("bound", "belongs to a filter; leave it out beside identities")
	case len(s.Events) == 0:
		return rendezvous.InvalidField("events", "is empty, and there is no filter; give 1..%d identities or a filter", rendezvous.MaxBatchItems)
	case len(s.Events) > rendezvous.MaxBatchItems:
		return rendezvous.OverLimit("events", rendezvous.MaxBatchItems, len(s.Events))
	}
	for _, id := range s.Events {
		if err := checkEventID(id); err != nil {
			return err
		}
	}
	return nil
}

// readNamed reads the letters that the selection names.
func (c *choice) readNamed(ctx context.Context, u *unit) error {
	keys := make([]backend.EventKey, len(c.ids))
	for i, id := range c.ids {
		keys[i] = backend.EventKey{Tenant: c.tenant, Source: id.Source, ID: id.ID}
	}
	rows, err := u.tx.EventsByKey(ctx, distinct(keys), false)
	for _, e := range rows {
		c.events[rendezvous.EventID{Source: e.Source, ID: e.ID}] = e
	}
	return err
}

// readFiltered reads the letters that a filter chooses behind the walk's position. An operation that was made before is about what it was about then: its name is
// on those rows (I17). They are read last: of two calls of one operation at once the later sees what the earlier wrote, or chose the same rows and is made anew.
func (c *choice) readFiltered(ctx context.Context, u *unit, walk backend.DeadWalk, bound int, purge bool) (next int64, err error) {
	rows, next, err := u.tx.DeadLetters(ctx, c.tenant, walk, bound)
	if err != nil {
		return 0, err
	}
	before, err := u.tx.EventsOfOp(ctx, c.tenant, c.op, purge, walk.After, rendezvous.MaxBatchItems)
	if err != nil {
		return 0, err
	}
	if len(before) > 0 {
		if rows = before[:min(bound, len(before))]; len(rows) < len(before) {
			next = rows[len(rows)-1].Number
		} else if next, err = c.behind(ctx, u, walk, rows[len(rows)-1].Number); err != nil {
			return 0, err
		}
	}
	for _, e := range rows {
		id := rendezvous.EventID{Source: e.Source, ID: e.ID}
		c.ids = append(c.ids, id)
		c.events[id] = e
	}
	return next, nil
}

// behind is where the walk goes on behind a number, 0 where nothing is left.
func (c *choice) behind(ctx context.Context, u *unit, walk backend.DeadWalk, number int64) (next int64, err error) {
	walk.After = number
	more, next, err := u.tx.DeadLetters(ctx, c.tenant, walk, 1)
	if len(more) == 0 && next == 0 {
		return 0, err
	}
	return number, err
}

package postgres

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// decodeEvent reads an event, and remembers it where something may be changed.
func (r *reader) decodeEvent(c *columns) *backend.Event {
	e := row.Event(c)
	if r.loaded != nil {
		r.loaded[e.Number] = *e
	}
	return e
}

// EventsByKey implements [backend.Reader].
func (r *reader) EventsByKey(ctx context.Context, keys []backend.EventKey, payload bool) (map[backend.EventKey]*backend.Event, error) {
	found := make(map[backend.EventKey]*backend.Event, len(keys))
	err := r.query(ctx, eventsByKeySQL, func(c *columns) error {
		e := r.decodeEvent(c)
		found[e.Key()] = e
		return nil
	}, texts(keys, func(k backend.EventKey) string { return k.Tenant }), texts(keys, func(k backend.EventKey) string { return k.Source }),
		texts(keys, func(k backend.EventKey) string { return k.ID }), payload)
	return found, err
}

// EventsByNumber implements [backend.Reader].
func (r *reader) EventsByNumber(ctx context.Context, numbers []int64, payload bool) (map[int64]*backend.Event, error) {
	found := make(map[int64]*backend.Event, len(numbers))
	err := r.query(ctx, eventsByNumberSQL, func(c *columns) error {
		e := r.decodeEvent(c)
		found[e.Number] = e
		return nil
	}, bigints(numbers, func(n int64) int64 { return n }), payload)
	return found, err
}

// LiveEvents implements [backend.Reader].
func (r *reader) LiveEvents(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Event, error) {
	found := make([][]*backend.Event, len(lookups))
	err := r.query(ctx, liveEventsSQL, func(c *columns) error {
		place := c.Bigint() - 1
		found[place] = append(found[place], r.decodeEvent(c))
		return nil
	}, lookupColumns(lookups)...)
	return found, err
}

func lookupColumns(lookups []backend.Lookup) []any {
	return []any{
		texts(lookups, func(l backend.Lookup) string { return l.Tenant }),
		texts(lookups, func(l backend.Lookup) string { return l.Key.Namespace }),
		texts(lookups, func(l backend.Lookup) string { return l.Key.Value }),
		texts(lookups, func(l backend.Lookup) string { return l.Type }),
		bigints(lookups, func(l backend.Lookup) int64 { return l.After }),
		bigints(lookups, func(l backend.Lookup) int64 { return int64(max(l.Limit, 0)) }),
	}
}

// ClaimedEvents implements [backend.Reader].
func (r *reader) ClaimedEvents(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Event, error) {
	found := make(map[backend.WaitKey]*backend.Event, len(keys))
	err := r.query(ctx, claimedEventsSQL, func(c *columns) error {
		place := c.Bigint() - 1
		found[keys[place]] = r.decodeEvent(c)
		return nil
	}, texts(keys, waitTenant), texts(keys, waitRun), texts(keys, waitEffect))
	return found, err
}

// KeptCounts implements [backend.Reader].
func (r *reader) KeptCounts(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return r.counts(ctx, keptCountsSQL, keys)
}

// counts reads one number for each run that has any.
func (r *reader) counts(ctx context.Context, sql string, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	found := make(map[backend.RunKey]int, len(keys))
	err := r.query(ctx, sql, func(c *columns) error {
		found[keys[c.Bigint()-1]] = int(c.Bigint())
		return nil
	}, texts(keys, runTenant), texts(keys, runID))
	return found, err
}

// KeptEvents implements [backend.Reader].
func (r *reader) KeptEvents(ctx context.Context, keys []backend.RunKey) ([]*backend.Event, error) {
	keys = backend.SortedKeys(keys)
	return r.eventRows(ctx, keptEventsSQL, texts(keys, runTenant), texts(keys, runID))
}

func (r *reader) eventRows(ctx context.Context, sql string, args ...any) ([]*backend.Event, error) {
	var rows []*backend.Event
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, r.decodeEvent(c))
		return nil
	}, args...)
	return rows, err
}

package sqlite

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// Columns of an event, with its payload and without: then its pages are not read.
const (
	eventColumns = `
	e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
	e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
	e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
	octet_length(e.payload)`
	barePayload  = `, '', NULL`
	wholePayload = `, e.content_type, e.payload`
)

// decodeEvent reads an event, and remembers it where something may be changed.
func (r *reader) decodeEvent(c *columns) *backend.Event {
	e := row.Event(c)
	if r.loaded != nil {
		r.loaded[e.Number] = *e
	}
	return e
}

func (r *reader) eventRows(ctx context.Context, sql string, args ...any) ([]*backend.Event, error) {
	var rows []*backend.Event
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, r.decodeEvent(c))
		return nil
	}, args...)
	return rows, err
}

const (
	fromKey    = ` FROM events e WHERE e.tenant = ? AND e.source = ? AND e.id = ?`
	fromNumber = ` FROM events e WHERE e.number = ?`

	eventByKeySQL         = `SELECT` + eventColumns + barePayload + fromKey
	wholeEventByKeySQL    = `SELECT` + eventColumns + wholePayload + fromKey
	eventByNumberSQL      = `SELECT` + eventColumns + barePayload + fromNumber
	wholeEventByNumberSQL = `SELECT` + eventColumns + wholePayload + fromNumber
)

// EventsByKey implements [backend.Reader].
func (r *reader) EventsByKey(ctx context.Context, keys []backend.EventKey, payload bool) (map[backend.EventKey]*backend.Event, error) {
	sql := eventByKeySQL
	if payload {
		sql = wholeEventByKeySQL
	}
	found := make(map[backend.EventKey]*backend.Event, len(keys))
	for _, k := range keys {
		if !payload {
			if e := r.rememberedBy(k); e != nil {
				found[k] = e
				continue
			}
		}
		if err := r.query(ctx, sql, func(c *columns) error { found[k] = r.decodeEvent(c); return nil }, k.Tenant, k.Source, k.ID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// EventsByNumber implements [backend.Reader].
func (r *reader) EventsByNumber(ctx context.Context, numbers []int64, payload bool) (map[int64]*backend.Event, error) {
	sql := eventByNumberSQL
	if payload {
		sql = wholeEventByNumberSQL
	}
	found := make(map[int64]*backend.Event, len(numbers))
	for _, n := range numbers {
		if err := r.query(ctx, sql, func(c *columns) error { found[n] = r.decodeEvent(c); return nil }, n); err != nil {
			return nil, err
		}
	}
	return found, nil
}

const liveEventsSQL = `
SELECT` + eventColumns + barePayload + ` FROM event_keys i CROSS JOIN events e ON e.number = i.number
WHERE i.tenant = ? AND i.namespace = ? AND i.value = ? AND i.type = ? AND i.number > ?
ORDER BY i.number LIMIT ? + 0`

// LiveEvents implements [backend.Reader].
func (r *reader) LiveEvents(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Event, error) {
	found := make([][]*backend.Event, len(lookups))
	for i, l := range lookups {
		rows, all, err := r.rememberedUnder(ctx, l)
		if !all && err == nil {
			rows, err = r.eventRows(ctx, liveEventsSQL, lookupArgs(l)...)
		}
		if err != nil {
			return nil, err
		}
		found[i] = rows
	}
	return found, nil
}

func lookupArgs(l backend.Lookup) []any {
	return []any{l.Tenant, l.Key.Namespace, l.Key.Value, l.Type, l.After, max(l.Limit, 0)}
}

const claimedEventSQL = `
SELECT` + eventColumns + barePayload + ` FROM events e INDEXED BY events_claimed
WHERE e.tenant = ? AND e.claim_run = ? AND e.claim_effect = ? AND e.claim_run <> ''`

// ClaimedEvents implements [backend.Reader].
func (r *reader) ClaimedEvents(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Event, error) {
	found := make(map[backend.WaitKey]*backend.Event)
	for _, k := range keys {
		err := r.query(ctx, claimedEventSQL, func(c *columns) error { found[k] = r.decodeEvent(c); return nil }, k.Tenant, k.RunID, k.Effect)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

const keptCountSQL = `SELECT count(*) FROM event_keys i WHERE i.tenant = ? AND i.namespace = '' AND i.value = ?`

// KeptCounts implements [backend.Reader].
func (r *reader) KeptCounts(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return r.counts(ctx, keptCountSQL, keys)
}

// counts reads one number for each run that has any.
func (r *reader) counts(ctx context.Context, sql string, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	found := make(map[backend.RunKey]int)
	for _, k := range keys {
		err := r.query(ctx, sql, func(c *columns) error {
			if n := c.Tally(); n > 0 {
				found[k] = n
			}
			return nil
		}, k.Tenant, k.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

const keptEventsSQL = `
SELECT` + eventColumns + barePayload + ` FROM event_keys i CROSS JOIN events e ON e.number = i.number
WHERE i.tenant = ? AND i.namespace = '' AND i.value = ?
ORDER BY e.number`

// KeptEvents implements [backend.Reader].
func (r *reader) KeptEvents(ctx context.Context, keys []backend.RunKey) ([]*backend.Event, error) {
	var found []*backend.Event
	for _, k := range backend.SortedKeys(keys) {
		rows, err := r.eventRows(ctx, keptEventsSQL, k.Tenant, k.ID)
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

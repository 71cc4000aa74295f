package sqlite

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// What nearly meets: the match index by its keys alone, and the newest rows, of which those of a type are told apart. Parameters of the first two are the
// tenant, the key and the limit, of the others the type, the tenant and how many rows are looked at.
const (
	nearWaitsSQL = `
SELECT` + waitColumns + ` FROM wait_keys i CROSS JOIN waits w ON w.number = i.number
WHERE i.tenant = ? AND i.namespace = ? AND i.value = ?
ORDER BY i.type, i.number LIMIT ? + 0`
	nearEventsSQL = `
SELECT` + eventColumns + barePayload + ` FROM event_keys i CROSS JOIN events e ON e.number = i.number
WHERE i.tenant = ? AND i.namespace = ? AND i.value = ?
ORDER BY i.type, i.number LIMIT ? + 0`
	newestWaitsSQL = `
SELECT w.number, w.type = ? FROM waits w INDEXED BY waits_listed
WHERE w.tenant = ?
ORDER BY w.number DESC LIMIT ? + 0`
	newestEventsSQL = `
SELECT i.number, i.type = ? FROM event_keys i INDEXED BY event_keys_since
WHERE i.tenant = ? AND i.expires_at IS NULL
ORDER BY i.live_since DESC, i.number DESC LIMIT ? + 0`
	lastEventsSQL = `
SELECT i.number, i.type = ? FROM event_keys i INDEXED BY event_keys_expiring
WHERE i.tenant = ? AND i.expires_at IS NOT NULL
ORDER BY i.expires_at DESC, i.number DESC LIMIT ? + 0`
	waitByNumberSQL = `SELECT` + waitColumns + ` FROM waits w WHERE w.number = ?`
)

// NearWaits implements [backend.Reader].
func (r *reader) NearWaits(ctx context.Context, n backend.Near) (near backend.Nearby[backend.Wait], err error) {
	if near.Under, err = underKeys(ctx, n, nearWaitsSQL, r.waitRows); err != nil {
		return near, err
	}
	numbers, cut, err := r.ofType(ctx, n, newestWaitsSQL)
	near.Cut = cut
	for _, number := range numbers {
		rows, err := r.waitRows(ctx, waitByNumberSQL, number)
		if err != nil {
			return near, err
		}
		near.Newest = append(near.Newest, rows...)
	}
	return near, err
}

// NearEvents implements [backend.Reader].
func (r *reader) NearEvents(ctx context.Context, n backend.Near) (near backend.Nearby[backend.Event], err error) {
	if near.Under, err = underKeys(ctx, n, nearEventsSQL, r.eventRows); err != nil {
		return near, err
	}
	numbers, cut, err := r.ofType(ctx, n, newestEventsSQL, lastEventsSQL)
	if err != nil {
		return near, err
	}
	near.Cut = cut
	near.Newest, err = r.inOrder(ctx, numbers)
	return near, err
}

// ofType walks through the newest rows: the numbers of those of the type, highest first, and whether a walk ended at its bound.
func (r *reader) ofType(ctx context.Context, n backend.Near, walks ...string) (numbers []int64, cut bool, err error) {
	for _, sql := range walks {
		looked := 0
		err := r.query(ctx, sql, func(c *columns) error {
			looked++
			if number := c.Count(); c.Boolean() {
				numbers = append(numbers, number)
			}
			return nil
		}, n.Type, n.Tenant, n.Walk)
		if err != nil {
			return nil, false, err
		}
		cut = cut || looked == n.Walk
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	numbers = slices.Compact(numbers) // an event is there once for each of its keys
	return numbers[:min(n.Newest(), len(numbers))], cut, nil
}

// underKeys reads the rows under each key.
func underKeys[V any](
	ctx context.Context, n backend.Near, sql string, rows func(ctx context.Context, sql string, args ...any) ([]*V, error),
) ([][]*V, error) {
	found := make([][]*V, len(n.Keys))
	for i, k := range n.Keys {
		under, err := rows(ctx, sql, n.Tenant, k.Namespace, k.Value, n.PerKey())
		if err != nil {
			return nil, err
		}
		found[i] = under
	}
	return found, nil
}

const effectNamesSQL = `
SELECT DISTINCT h.effect FROM history h INDEXED BY history_effects
WHERE h.tenant = ? AND h.run_id = ? AND h.effect <> ''
ORDER BY h.effect LIMIT ? + 0`

// EffectNames implements [backend.Reader].
func (r *reader) EffectNames(ctx context.Context, key backend.RunKey, limit int) ([]string, error) {
	var names []string
	err := r.query(ctx, effectNamesSQL, func(c *columns) error {
		names = append(names, c.Text())
		return nil
	}, key.Tenant, key.ID, max(limit, 0))
	return names, err
}

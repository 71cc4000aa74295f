package sqlite

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// What nearly meets: the match index by its keys alone, and what is newest. Parameters of the first two are the tenant, the key and the limit.
const (
	nearWaitsSQL = `
SELECT` + waitColumns + ` FROM wait_keys i CROSS JOIN waits w ON w.number = i.number
WHERE i.tenant = ? AND i.namespace = ? AND i.value = ?
ORDER BY i.type, i.number LIMIT ? + 0`
	nearEventsSQL = `
SELECT` + eventColumns + barePayload + ` FROM event_keys i CROSS JOIN events e ON e.number = i.number
WHERE i.tenant = ? AND i.namespace = ? AND i.value = ?
ORDER BY i.type, i.number LIMIT ? + 0`
	newestEventsSQL = `
SELECT` + eventColumns + barePayload + ` FROM event_keys i INDEXED BY event_keys_since CROSS JOIN events e ON e.number = i.number
WHERE i.tenant = ? AND i.expires_at IS NULL
ORDER BY i.live_since DESC, i.number DESC LIMIT ? + 0`
	lastEventsSQL = `
SELECT` + eventColumns + barePayload + ` FROM event_keys i INDEXED BY event_keys_expiring CROSS JOIN events e ON e.number = i.number
WHERE i.tenant = ? AND i.expires_at IS NOT NULL
ORDER BY i.expires_at DESC, i.number DESC LIMIT ? + 0`
	newestWaitsSQL = `
SELECT` + waitColumns + ` FROM waits w INDEXED BY waits_typed
WHERE w.tenant = ? AND w.type = ?
ORDER BY w.number DESC LIMIT ? + 0`
)

// NearWaits implements [backend.Reader].
func (r *reader) NearWaits(ctx context.Context, n backend.Near) ([][]*backend.Wait, error) {
	found, err := underKeys(ctx, n, nearWaitsSQL, r.waitRows)
	if err != nil {
		return nil, err
	}
	newest, err := r.waitRows(ctx, newestWaitsSQL, n.Tenant, n.Type, n.Newest())
	return append(found, newest), err
}

// NearEvents implements [backend.Reader].
func (r *reader) NearEvents(ctx context.Context, n backend.Near) ([][]*backend.Event, error) {
	found, err := underKeys(ctx, n, nearEventsSQL, r.eventRows)
	if err != nil {
		return nil, err
	}
	for _, sql := range [...]string{newestEventsSQL, lastEventsSQL} {
		rows, err := r.eventRows(ctx, sql, n.Tenant, n.Newest()/2)
		if err != nil {
			return nil, err
		}
		found = append(found, rows)
	}
	return found, nil
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

package postgres

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// NearWaits implements [backend.Reader].
func (r *reader) NearWaits(ctx context.Context, n backend.Near) ([][]*backend.Wait, error) {
	found := make([][]*backend.Wait, len(n.Keys)+1)
	if err := r.underKeys(ctx, nearWaitsSQL, n, func(place int, c *columns) { found[place] = append(found[place], row.Wait(c)) }); err != nil {
		return nil, err
	}
	newest, err := r.waitRows(ctx, newestWaitsSQL, n.Tenant, n.Type, int64(n.Newest()))
	found[len(n.Keys)] = newest
	return found, err
}

// NearEvents implements [backend.Reader].
func (r *reader) NearEvents(ctx context.Context, n backend.Near) ([][]*backend.Event, error) {
	found := make([][]*backend.Event, len(n.Keys)+2)
	if err := r.underKeys(ctx, nearEventsSQL, n, func(place int, c *columns) { found[place] = append(found[place], r.decodeEvent(c)) }); err != nil {
		return nil, err
	}
	err := r.query(ctx, newestEventsSQL, func(c *columns) error {
		place := len(n.Keys) + int(c.Bigint()) - 1
		found[place] = append(found[place], r.decodeEvent(c))
		return nil
	}, n.Tenant, int64(n.Newest()/2))
	return found, err
}

// underKeys reads rows that come with the place of their key.
func (r *reader) underKeys(ctx context.Context, sql string, n backend.Near, each func(place int, c *columns)) error {
	if len(n.Keys) == 0 {
		return nil
	}
	return r.query(ctx, sql, func(c *columns) error {
		each(int(c.Bigint())-1, c)
		return nil
	}, n.Tenant, texts(n.Keys, func(k rendezvous.Key) string { return k.Namespace }), texts(n.Keys, func(k rendezvous.Key) string { return k.Value }), int64(n.PerKey()))
}

// EffectNames implements [backend.Reader].
func (r *reader) EffectNames(ctx context.Context, key backend.RunKey, limit int) ([]string, error) {
	var names []string
	err := r.query(ctx, effectNamesSQL, func(c *columns) error {
		names = append(names, c.Text())
		return nil
	}, key.Tenant, key.ID, int64(max(limit, 0)))
	return names, err
}

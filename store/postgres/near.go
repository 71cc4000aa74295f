package postgres

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// NearWaits implements [backend.Reader].
func (r *reader) NearWaits(ctx context.Context, n backend.Near) (backend.Nearby[backend.Wait], error) {
	return nearby(ctx, r, n, nearWaitsSQL, newestWaitsSQL, row.Wait)
}

// NearEvents implements [backend.Reader].
func (r *reader) NearEvents(ctx context.Context, n backend.Near) (backend.Nearby[backend.Event], error) {
	return nearby(ctx, r, n, nearEventsSQL, newestEventsSQL, r.decodeEvent)
}

// nearby reads what stands under each key, its place first, and what is of the type, first in each row how many the walk looked at and whether there is any.
func nearby[R any](ctx context.Context, r *reader, n backend.Near, underSQL, newestSQL string, decode func(c *columns) *R) (backend.Nearby[R], error) {
	near := backend.Nearby[R]{Under: make([][]*R, len(n.Keys))}
	if len(n.Keys) > 0 {
		namespaces, values := texts(n.Keys, func(k rendezvous.Key) string { return k.Namespace }), texts(n.Keys, func(k rendezvous.Key) string { return k.Value })
		err := r.query(ctx, underSQL, func(c *columns) error {
			place := c.Bigint() - 1
			near.Under[place] = append(near.Under[place], decode(c))
			return nil
		}, n.Tenant, namespaces, values, int64(n.PerKey()))
		if err != nil {
			return near, err
		}
	}
	err := r.query(ctx, newestSQL, func(c *columns) error {
		near.Cut = c.Bigint() == int64(n.Walk)
		if c.Boolean() {
			near.Newest = append(near.Newest, decode(c))
		}
		return nil
	}, n.Tenant, n.Type, int64(n.Newest()), int64(n.Walk))
	return near, err
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

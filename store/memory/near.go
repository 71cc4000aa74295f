package memory

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// NearWaits implements [backend.Reader].
func (r *reader) NearWaits(ctx context.Context, n backend.Near) ([][]*backend.Wait, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := underKeys(r, n, waitSide, r.waitsByNum, copyWait)
	var newest []*backend.Wait
	if typed := r.tenant(n.Tenant).typed[n.Type]; typed != nil {
		for number := range typed.back() {
			if len(newest) >= n.Newest() {
				break
			}
			newest = append(newest, copyWait(r.waitsByNum[number]))
		}
	}
	return append(found, newest), nil
}

// NearEvents implements [backend.Reader].
func (r *reader) NearEvents(ctx context.Context, n backend.Near) ([][]*backend.Event, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := underKeys(r, n, eventSide, r.eventsByNum, eventCopier(false))
	o := r.tenant(n.Tenant)
	return append(found, r.newest(o.ageing, n.Newest()/2), r.newest(o.expiring, n.Newest()/2)), nil
}

// newest reads live events from the last on, each once for each of its keys.
func (r *reader) newest(order *sorted[instant], most int) []*backend.Event {
	var rows []*backend.Event
	for x := range order.back() {
		e := r.eventsByNum[x.number]
		for range e.MatchKeys() {
			if len(rows) >= most {
				return rows
			}
			rows = append(rows, copyEvent(e, false))
		}
	}
	return rows
}

// underKeys reads one side of all meetings under each key.
func underKeys[V any](r *reader, n backend.Near, half side, rows map[int64]*V, copy func(*V) *V) [][]*V {
	found := make([][]*V, len(n.Keys))
	for i, k := range n.Keys {
		for number := range r.underKey(n.Tenant, k, half) {
			if len(found[i]) >= n.PerKey() {
				break
			}
			found[i] = append(found[i], copy(rows[number]))
		}
	}
	return found
}

// underKey yields the numbers of one side under a key, by type.
func (r *reader) underKey(tenant string, k rendezvous.Key, half side) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		kinds := r.kinds[spot{tenant, k}]
		if kinds == nil {
			return
		}
		for kind := range kinds.all() {
			for number := range half(r.meets[meeting{tenant, kind, k}]).all() {
				if !yield(number) {
					return
				}
			}
		}
	}
}

// EffectNames implements [backend.Reader].
func (r *reader) EffectNames(ctx context.Context, key backend.RunKey, limit int) ([]string, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var names []string
	if named := r.named[key]; named != nil {
		for name := range named.all() {
			if len(names) >= limit {
				break
			}
			names = append(names, name)
		}
	}
	return names, nil
}

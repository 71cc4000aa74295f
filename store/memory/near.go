package memory

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// NearWaits implements [backend.Reader].
func (r *reader) NearWaits(ctx context.Context, n backend.Near) (backend.Nearby[backend.Wait], error) {
	if err := alive(ctx); err != nil {
		return backend.Nearby[backend.Wait]{}, err
	}
	near := backend.Nearby[backend.Wait]{Under: underKeys(r, n, waitSide, r.waitsByNum, copyWait)}
	looked := 0
	for number := range r.tenant(n.Tenant).waits.back() {
		if looked == n.Walk {
			break
		}
		looked++
		if w := r.waitsByNum[number]; w.Type == n.Type && len(near.Newest) < n.Newest() {
			near.Newest = append(near.Newest, copyWait(w))
		}
	}
	near.Cut = looked == n.Walk
	return near, nil
}

// NearEvents implements [backend.Reader].
func (r *reader) NearEvents(ctx context.Context, n backend.Near) (backend.Nearby[backend.Event], error) {
	if err := alive(ctx); err != nil {
		return backend.Nearby[backend.Event]{}, err
	}
	near := backend.Nearby[backend.Event]{Under: underKeys(r, n, eventSide, r.eventsByNum, eventCopier(false))}
	var typed []int64
	for _, order := range [...]*sorted[instant]{r.tenant(n.Tenant).ageing, r.tenant(n.Tenant).expiring} {
		looked := 0 // at an event once for each of its keys
		for x := range order.back() {
			if looked >= n.Walk {
				break
			}
			e := r.eventsByNum[x.number]
			looked += len(e.MatchKeys())
			if e.Type == n.Type {
				typed = append(typed, x.number)
			}
		}
		near.Cut = near.Cut || looked >= n.Walk
	}
	slices.Sort(typed)
	slices.Reverse(typed)
	for _, number := range typed[:min(n.Newest(), len(typed))] {
		near.Newest = append(near.Newest, copyEvent(r.eventsByNum[number], false))
	}
	return near, nil
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

package fair

import (
	"cmp"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// DuePushes is where due push registrations are found.
type DuePushes struct {
	Since  map[string]time.Time // tenants with unleased due rows, and since when the first is due
	Lapsed []*backend.Push      // rows that are due but for a lease that has run out
	// Next answers unleased due rows behind the places it is given, by tenant in due order.
	Next func(places []Place[backend.Push]) ([]*backend.Push, error)
	// Heads answers the first most unleased due rows of each of a tenant's gates, in any order.
	Heads func(tenant string, most int) ([]*backend.Push, error)
}

// TakePushes chooses among them, as [backend.PushTx.TakeDuePushes] says.
func TakePushes(c backend.PushClaim, d DuePushes) (backend.PushesTaken, error) {
	lapsed := byTenant(d.Lapsed, backend.TenantOfPush)
	since := map[string]time.Time{}
	for tenant, at := range d.Since {
		since[tenant] = at
	}
	for tenant, own := range lapsed {
		backend.SortDue(own)
		if at, ok := since[tenant]; !ok || own[0].NextAttemptAt.Before(at) {
			since[tenant] = own[0].NextAttemptAt
		}
	}
	g := Gates[backend.Push]{
		Limit: c.Limit, PerGate: c.PerGate, Room: c.Room, Look: backend.MostPassedPushes, GateOf: func(p *backend.Push) string { return p.Gate }, Compare: backend.CompareDue,
		Next: func(places []Place[backend.Push]) ([]*backend.Push, error) {
			found, err := d.Next(places)
			if err != nil || len(lapsed) == 0 {
				return found, err
			}
			own := byTenant(found, backend.TenantOfPush)
			var all []*backend.Push
			for _, p := range places {
				all = append(all, backend.MergeDue(own[p.Tenant], behind(lapsed[p.Tenant], p.After), p.Most)...)
			}
			return all, nil
		},
		Heads: func(tenant string, most int) ([]*backend.Push, error) {
			found, err := d.Heads(tenant, most)
			return append(found, lapsed[tenant]...), err
		},
	}
	if len(c.Room) > 0 { // the rows in front are likely to be those that have to wait, and one place that became free is no reason to go over them all
		g.First, g.Look = backend.FewPassedPushes, 2*backend.FewPassedPushes
	}
	for tenant := range since {
		g.Tenants = append(g.Tenants, tenant)
	}
	slices.SortFunc(g.Tenants, func(a, b string) int { return cmp.Or(since[a].Compare(since[b]), cmp.Compare(a, b)) })
	rows, more, err := g.Rows(backend.TenantOfPush)
	return backend.PushesTaken{Rows: rows, More: more, Crowded: g.Crowded()}, err
}

// behind is what of rows in due order comes behind one; nil is all.
func behind(rows []*backend.Push, after *backend.Push) []*backend.Push {
	if after == nil {
		return rows
	}
	i := slices.IndexFunc(rows, func(p *backend.Push) bool { return backend.CompareDue(p, after) > 0 })
	if i < 0 {
		return nil
	}
	return rows[i:]
}

// ChoosePushes chooses among rows that are at hand those of a claim that are due.
func ChoosePushes(c backend.PushClaim, rows []*backend.Push, now time.Time) (backend.PushesTaken, error) {
	due := slices.DeleteFunc(rows, func(p *backend.Push) bool { return p.Namespace != c.Namespace || !p.Due(c.At, now) })
	none := func([]Place[backend.Push]) ([]*backend.Push, error) { return nil, nil }
	return TakePushes(c, DuePushes{Lapsed: due, Next: none, Heads: func(string, int) ([]*backend.Push, error) { return nil, nil }})
}

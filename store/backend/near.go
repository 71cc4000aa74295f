package backend

import "github.com/rendezvous-events/rendezvous"

// Near asks for rows of one tenant that share a key or the type with one that meets nothing. How many are looked at is bounded, whatever is stored.
type Near struct {
	Tenant, Type string
	Keys         []rendezvous.Key
	Most         int // rows in all
	Walk         int // of the tenant's newest rows, whatever their type, so many are looked at for those of the type
}

// PerKey is how many rows are looked at under each key: half of all, in equal parts.
func (n Near) PerKey() int {
	if len(n.Keys) == 0 {
		return 0
	}
	return max(n.Most/2/len(n.Keys), 1)
}

// Newest is how many of the newest rows of the type are answered.
func (n Near) Newest() int { return n.Most - n.PerKey()*len(n.Keys) }

// Nearby is what a Near found.
type Nearby[R any] struct {
	Under  [][]*R // for each key what stands under it, lowest type first, then lowest number, at most PerKey
	Newest []*R   // of the type, highest number first, at most Newest
	Cut    bool   // the walk for the newest ended at its bound: there may be more of the type
}

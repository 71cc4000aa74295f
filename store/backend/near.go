package backend

import "github.com/rendezvous-events/rendezvous"

// Near asks for rows of one tenant that share a key or the type with one that meets nothing. How many are looked at is bounded, whatever is stored.
type Near struct {
	Tenant, Type string
	Keys         []rendezvous.Key
	Most         int // rows in all
}

// PerKey is how many rows are looked at under each key: half of all, in equal parts.
func (n Near) PerKey() int {
	if len(n.Keys) == 0 {
		return 0
	}
	return max(n.Most/2/len(n.Keys), 1)
}

// Newest is how many of the newest rows are looked at for the type.
func (n Near) Newest() int { return n.Most - n.PerKey()*len(n.Keys) }

package fair

import (
	"maps"
	"slices"
)

// Gates shares the places of a page among tenants, as Rows does, and gives no gate more than a few of them: where many rows in front are of gates that are full,
// those of others are found behind them.
type Gates[R any] struct {
	Tenants []string // that have due rows, the longest due first
	Limit   int
	PerGate int
	Room    map[string]int // of gates that get fewer than PerGate
	Look    int            // rows of full gates that are gone over in a tenant's queue, before its gates are asked for one by one
	First   int            // rows that a tenant's queue is asked for first, at most; 0 is as many as it may get

	GateOf  func(*R) string
	Compare func(a, b *R) int // the order of the page
	// Next answers due rows behind the places it is given, by tenant in their order.
	Next func(places []Place[R]) ([]*R, error)
	// Heads answers the first most rows of each of a tenant's gates, in any order. How many gates it looks at is bounded.
	Heads func(tenant string, most int) ([]*R, error)

	tenantOf func(*R) string
	took     map[string]int // of a gate
	rows     []*R
	more     bool
	crowded  map[string]bool // gates that left rows
	cut      bool            // and so did others, or nobody looked
}

// Bounds of how many tenants are looked at, the longest due first: so many together behind the first, as many as there are places, and all in all.
const (
	fewTenants  = 64
	mostTenants = 1000
)

// lane is what is known of a tenant's queue.
type lane[R any] struct {
	tenant string
	rows   []*R // not taken yet
	last   *R
	asked  int
	passed int
	done   bool // nothing comes behind rows
	got    int
}

// Rows takes the rows, in the order of the page, and says whether more was due.
func (g *Gates[R]) Rows(tenantOf func(*R) string) (rows []*R, more bool, err error) {
	g.tenantOf, g.took, g.crowded = tenantOf, map[string]int{}, map[string]bool{}
	left := g.Tenants
	for looked := 0; len(left) > 0 && looked < mostTenants && len(g.rows) < g.Limit; {
		n := g.Limit - len(g.rows)
		if looked > 0 {
			n = max(n, fewTenants)
		}
		n = min(n, len(left))
		if err := g.share(left[:n]); err != nil {
			return nil, false, err
		}
		left, looked = left[n:], looked+n
	}
	if len(left) > 0 {
		g.more, g.cut = true, true
	}
	slices.SortFunc(g.rows, g.Compare)
	return g.rows, g.more, nil
}

// Crowded are the gates that alone kept due rows from being taken, in order; none where other rows may be left, too.
func (g *Gates[R]) Crowded() []string {
	if g.cut {
		return nil
	}
	return slices.Sorted(maps.Keys(g.crowded))
}

// share gives each of some tenants its share of the places that are left, in their order, and what they leave of those to the longest due.
func (g *Gates[R]) share(tenants []string) error {
	share := max(1, (g.Limit-len(g.rows))/len(tenants))
	lanes := make([]*lane[R], len(tenants))
	for i, t := range tenants {
		lanes[i] = &lane[R]{tenant: t, asked: share + 1}
		if g.First > 0 {
			lanes[i].asked = min(g.First, share+1)
		}
	}
	if err := g.fill(lanes); err != nil {
		return err
	}
	for _, l := range lanes {
		for l.got < share && len(g.rows) < g.Limit {
			head, err := g.head(l)
			if err != nil {
				return err
			}
			if head == nil {
				break
			}
			g.take(l)
		}
	}
	return g.rest(lanes)
}

// rest gives what places are left to the longest due.
func (g *Gates[R]) rest(lanes []*lane[R]) error {
	for {
		var longest *lane[R]
		for _, l := range lanes {
			head, err := g.head(l)
			if err != nil {
				return err
			}
			if head != nil && (longest == nil || g.Compare(head, longest.rows[0]) < 0) {
				longest = l
			}
		}
		if longest == nil {
			return nil
		}
		if len(g.rows) == g.Limit {
			g.more, g.cut = true, true
			return nil
		}
		g.take(longest)
	}
}

func (g *Gates[R]) take(l *lane[R]) {
	row := l.rows[0]
	g.rows, l.rows = append(g.rows, row), l.rows[1:]
	l.got++
	g.took[g.GateOf(row)]++
}

// head is the queue's next row whose gate has room, nil for none.
func (g *Gates[R]) head(l *lane[R]) (*R, error) {
	for {
		for len(l.rows) > 0 {
			gate := g.GateOf(l.rows[0])
			if g.took[gate] < g.room(gate) {
				return l.rows[0], nil
			}
			l.rows, g.more, g.crowded[gate] = l.rows[1:], true, true // it is due, and has to wait
			l.passed++
		}
		if l.done {
			return nil, nil
		}
		if l.passed > g.Look {
			if err := g.heads(l); err != nil {
				return nil, err
			}
			continue
		}
		if err := g.fill([]*lane[R]{l}); err != nil {
			return nil, err
		}
	}
}

func (g *Gates[R]) room(gate string) int {
	if n, less := g.Room[gate]; less {
		return min(n, g.PerGate)
	}
	return g.PerGate
}

// fill fetches for queues that have run empty.
func (g *Gates[R]) fill(lanes []*lane[R]) error {
	places := make([]Place[R], len(lanes))
	for i, l := range lanes {
		places[i] = Place[R]{Tenant: l.tenant, After: l.last, Most: l.asked}
	}
	rows, err := g.Next(places)
	if err != nil {
		return err
	}
	own := byTenant(rows, g.tenantOf)
	for _, l := range lanes {
		l.rows = append(l.rows, own[l.tenant]...)
		if l.done = len(own[l.tenant]) < l.asked; len(l.rows) > 0 {
			l.last = l.rows[len(l.rows)-1]
		}
		l.asked = min(2*l.asked, 1000)
	}
	return nil
}

// heads goes on with the first rows of each of the tenant's gates behind what was gone over.
func (g *Gates[R]) heads(l *lane[R]) error {
	rows, err := g.Heads(l.tenant, g.PerGate)
	if err != nil {
		return err
	}
	of := map[string]int{}
	for _, r := range rows {
		gate := g.GateOf(r)
		if of[gate]++; of[gate] >= g.PerGate { // there may be more behind
			g.crowded[gate] = true
		}
		if l.last == nil || g.Compare(r, l.last) > 0 {
			l.rows = append(l.rows, r)
		}
	}
	slices.SortFunc(l.rows, g.Compare)
	l.done, g.more = true, true
	return nil
}

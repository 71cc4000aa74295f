package fair

import "slices"

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
}

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
	if len(g.Tenants) == 0 || g.Limit <= 0 {
		return nil, len(g.Tenants) > 0, nil
	}
	g.tenantOf, g.took = tenantOf, map[string]int{}
	tenants := g.Tenants
	if len(tenants) > g.Limit {
		tenants, g.more = tenants[:g.Limit], true
	}
	share := g.Limit / len(tenants)
	lanes := make([]*lane[R], len(tenants))
	for i, t := range tenants {
		lanes[i] = &lane[R]{tenant: t, asked: share + 1}
		if g.First > 0 {
			lanes[i].asked = min(g.First, share+1)
		}
	}
	if err := g.fill(lanes); err != nil {
		return nil, false, err
	}
	for _, l := range lanes {
		for l.got < share {
			head, err := g.head(l)
			if err != nil {
				return nil, false, err
			}
			if head == nil {
				break
			}
			g.take(l)
		}
	}
	if err := g.rest(lanes); err != nil {
		return nil, false, err
	}
	slices.SortFunc(g.rows, g.Compare)
	return g.rows, g.more, nil
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
			g.more = true
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
			if gate := g.GateOf(l.rows[0]); g.took[gate] < g.room(gate) {
				return l.rows[0], nil
			}
			l.rows, g.more = l.rows[1:], true // it is due, and has to wait
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
	for _, r := range rows {
		if l.last == nil || g.Compare(r, l.last) > 0 {
			l.rows = append(l.rows, r)
		}
	}
	slices.SortFunc(l.rows, g.Compare)
	l.done, g.more = true, true
	return nil
}

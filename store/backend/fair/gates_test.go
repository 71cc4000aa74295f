package fair_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

type gated struct {
	tenant, gate string
	at           int
}

func (g *gated) String() string { return fmt.Sprintf("%s/%s/%d", g.tenant, g.gate, g.at) }

func compareGated(a, b *gated) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.gate, b.gate))
}

// choose runs the chooser over rows and counts how many it was given.
func choose(t *testing.T, rows []*gated, limit, perGate, look int) (got []*gated, more bool, crowded string, fetched int) {
	t.Helper()
	queues := map[string][]*gated{}
	for _, r := range rows {
		queues[r.tenant] = append(queues[r.tenant], r)
	}
	var tenants []string
	for name, q := range queues {
		slices.SortFunc(q, compareGated)
		tenants = append(tenants, name)
	}
	slices.SortFunc(tenants, func(a, b string) int { return compareGated(queues[a][0], queues[b][0]) })
	g := fair.Gates[gated]{
		Tenants: tenants, Limit: limit, PerGate: perGate, Look: look, GateOf: func(r *gated) string { return r.gate }, Compare: compareGated,
		Next: func(places []fair.Place[gated]) ([]*gated, error) {
			var out []*gated
			for _, p := range places {
				n := 0
				for _, r := range queues[p.Tenant] {
					if n < p.Most && (p.After == nil || compareGated(r, p.After) > 0) {
						out, n = append(out, r), n+1
					}
				}
			}
			fetched += len(out)
			return out, nil
		},
		Heads: func(tenant string, most int) ([]*gated, error) {
			var out []*gated
			n := map[string]int{}
			for _, r := range queues[tenant] {
				if n[r.gate]++; n[r.gate] <= most {
					out = append(out, r)
				}
			}
			fetched += len(out)
			return out, nil
		},
	}
	got, more, err := g.Rows(func(r *gated) string { return r.tenant })
	if err != nil {
		t.Fatal(err)
	}
	return got, more, fmt.Sprint(g.Crowded()), fetched
}

// PU-35: no gate has more than its places, each tenant its share, and many rows of a full gate hide none behind them.
func TestPU35GatesAndTenantsShareAPage(t *testing.T) {
	var rows []*gated
	for i := range 10_000 {
		rows = append(rows, &gated{"a", fmt.Sprintf("ga%d", i%50), i})
	}
	for i := range 10 {
		rows = append(rows, &gated{"b", "gb", 20_000 + i})
	}
	got, more, _, _ := choose(t, rows, 100, 100, 2000)
	own := 0
	for _, r := range got {
		if r.tenant == "b" {
			own++
		}
	}
	if own != 10 || len(got) != 100 || !more {
		t.Errorf("%d rows, %d of them of b, more %v", len(got), own, more)
	}
	if !slices.IsSortedFunc(got, compareGated) {
		t.Error("not in order")
	}

	rows = nil
	for i := range 5000 {
		rows = append(rows, &gated{"a", "dead", i})
	}
	for i := range 20 {
		rows = append(rows, &gated{"a", fmt.Sprintf("g%d", i), 9000 + i})
	}
	for i := range 9 {
		rows = append(rows, &gated{"a", "k", 9100 + i})
	}
	for _, look := range []int{100, 100_000} { // by its gates, and by going over all of them
		got, more, crowded, fetched := choose(t, rows, 100, 8, look)
		gates := map[string]int{}
		for _, r := range got {
			gates[r.gate]++
		}
		if gates["dead"] != 8 || gates["k"] != 8 || len(got) != 36 || !more || crowded != "[dead k]" {
			t.Errorf("look %d: %d rows, %v, more %v, crowded %s", look, len(got), gates, more, crowded)
		}
		if look == 100 && fetched > 2000 {
			t.Errorf("%d rows were fetched", fetched)
		}
	}
}

// PU-36: more is said exactly when more was due.
func TestPU36MoreIsSaidWhenMoreWasDue(t *testing.T) {
	row := func(tenant, gate string, at int) *gated { return &gated{tenant, gate, at} }
	for name, c := range map[string]struct {
		rows  []*gated
		limit int
		want  int
		more  bool
		gates string // that alone keep the rest
	}{
		"none":             {nil, 2, 0, false, "[]"},
		"all fit":          {[]*gated{row("a", "g", 1), row("b", "g", 2)}, 2, 2, false, "[]"},
		"one over":         {[]*gated{row("a", "g", 1), row("a", "h", 2), row("b", "g", 3)}, 2, 2, true, "[]"},
		"a gate is full":   {[]*gated{row("a", "g", 1), row("a", "g", 2), row("b", "g", 3)}, 9, 2, true, "[g]"},
		"and tenants over": {[]*gated{row("a", "g", 1), row("b", "g", 2), row("a", "g", 3), row("c", "h", 4)}, 2, 2, true, "[]"},
		"tenants over":     {[]*gated{row("a", "g", 1), row("b", "h", 2), row("c", "i", 3)}, 2, 2, true, "[]"},
		"exactly the page": {[]*gated{row("a", "g", 1), row("a", "h", 2)}, 2, 2, false, "[]"},
	} {
		if got, more, gates, _ := choose(t, c.rows, c.limit, 2, 100); len(got) != c.want || more != c.more || gates != c.gates {
			t.Errorf("%s: %v, more %v, crowded %s", name, got, more, gates)
		}
	}
}

package fair

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous"
)

// due is an event of the model, with its key rows.
type due struct {
	KeyRow
	own  bool
	keys int
}

// whole chooses as Queues does from lists that are there as a whole.
func whole(lists map[string][]due, tenants []string, limit int) (taken, near []int64, more bool) {
	more = len(tenants) > limit
	tenants = tenants[:min(limit, len(tenants))]
	var rows []KeyRow
	pop := func(t string) bool {
		e := lists[t][0]
		lists[t] = lists[t][1:]
		if !e.Near {
			rows = append(rows, e.KeyRow)
		} else if !e.Held {
			near = append(near, e.Number)
		}
		return !e.Near
	}
	for _, t := range tenants {
		for got := 0; got < limit/len(tenants) && len(lists[t]) > 0; {
			if pop(t) {
				got++
			}
		}
	}
	for {
		var best string
		for _, t := range tenants {
			if len(lists[t]) > 0 && (best == "" || before(lists[t][0].KeyRow, lists[best][0].KeyRow) < 0) {
				best = t
			}
		}
		if best == "" {
			break
		}
		if !lists[best][0].Near && len(rows) == limit {
			more = true
			break
		}
		pop(best)
	}
	slices.SortFunc(rows, before)
	for _, r := range rows {
		taken = append(taken, r.Number)
	}
	slices.Sort(near)
	return taken, near, more
}

// S3: what Queues takes from ranges, chunk by chunk, is what it would take from the whole.
func TestQueuesTakeWhatTheWholeWouldGive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := map[string][]due{}
		for n := range rapid.IntRange(0, 120).Draw(t, "events") {
			e := due{keys: rapid.IntRange(1, rendezvous.MaxKeys).Draw(t, "keys")}
			tenant := fmt.Sprint("t", rapid.IntRange(0, 4).Draw(t, "tenant"))
			e.own, e.Late, e.Number = rapid.Bool().Draw(t, "own"), rapid.Int64Range(0, 9).Draw(t, "late"), int64(n+1)
			e.Near = !e.own && rapid.IntRange(0, 3).Draw(t, "near") == 0
			e.Held = e.Near && rapid.Bool().Draw(t, "held")
			lists[tenant] = append(lists[tenant], e)
		}
		for _, own := range lists {
			slices.SortFunc(own, func(a, b due) int { return before(a.KeyRow, b.KeyRow) })
		}
		tenants := slices.SortedFunc(maps.Keys(lists), func(a, b string) int {
			return cmp.Or(before(lists[a][0].KeyRow, lists[b][0].KeyRow), cmp.Compare(a, b))
		})
		q := Queues{Tenants: tenants, Limit: rapid.IntRange(1, 40).Draw(t, "limit"), Near: 1000, Look: 1000}
		ranges := maps.Clone(lists)
		q.Fetch = func(asked []Range) (rows [][]KeyRow, err error) {
			rows = make([][]KeyRow, len(asked))
			for i, r := range asked {
				left := r.Most
				for _, e := range ranges[r.Tenant] {
					if e.own != r.Own || r.After != nil && before(e.KeyRow, *r.After) <= 0 {
						continue
					}
					for k := range e.keys {
						if left--; left < 0 {
							break
						}
						row := e.KeyRow
						row.Near = e.Near && k == e.keys/2 // by one of its keys
						row.Held = row.Near && e.Held
						rows[i] = append(rows[i], row)
					}
				}
			}
			return rows, nil
		}
		got, near, more, err := q.Take()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(near)
		wantTaken, wantNear, wantMore := whole(maps.Clone(lists), tenants, q.Limit)
		if !slices.Equal(got, wantTaken) || !slices.Equal(near, wantNear) || more != wantMore {
			t.Fatalf("took %v, near %v, more %v; want %v, %v, %v", got, near, more, wantTaken, wantNear, wantMore)
		}
	})
}

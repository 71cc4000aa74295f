package fair

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is taken of many queues is what one queue of all their rows begins with, and little more is fetched.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*dueRow
		var queues []Fetch[dueRow]
		read, n := 0, rapid.IntRange(0, 8).Draw(t, "queues")
		for i := range n {
			var own []*dueRow
			for at := range rapid.IntRange(0, 40).Draw(t, "rows") {
				if own = append(own, &dueRow{at: at*8 + i}); rapid.Bool().Draw(t, "skip") {
					own = own[:len(own)-1]
				}
			}
			all = append(all, own...)
			queues = append(queues, func(after *dueRow, limit int) ([]*dueRow, error) {
				from := 0
				if after != nil {
					from, _ = slices.BinarySearchFunc(own, after.at+1, func(r *dueRow, at int) int { return r.at - at })
				}
				page := own[from:min(from+limit, len(own))]
				read += len(page)
				return page, nil
			})
		}
		slices.SortFunc(all, compareDue)
		var after *dueRow
		if len(all) > 0 && rapid.Bool().Draw(t, "behind") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "after")
			after, all = all[i], all[i+1:]
		}
		limit := rapid.IntRange(0, 30).Draw(t, "limit")
		rows, err := Merge(queues, after, limit, compareDue)
		if err != nil || !slices.Equal(rows, all[:min(limit, len(all))]) {
			t.Fatalf("%v, want %v (%v)", rows, all[:min(limit, len(all))], err)
		}
		if most := 3*limit + 2*n; read > most {
			t.Fatalf("%d rows were read for %d of %d queues", read, limit, n)
		}
	})
}

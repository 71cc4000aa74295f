package fair

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type dueRow struct {
	tenant string
	at     int
}

// queueOf takes rows of due behind places, as the statements do.
func queueOf(due map[string][]*dueRow) func(places []Place[dueRow]) ([]*dueRow, error) {
	return func(places []Place[dueRow]) ([]*dueRow, error) {
		var rows []*dueRow
		for _, p := range places {
			n := 0
			for _, r := range due[p.Tenant] {
				if (p.After == nil || r.at > p.After.at) && n < p.Most {
					rows, n = append(rows, r), n+1
				}
			}
		}
		slices.SortFunc(rows, compareDue)
		return rows, nil
	}
}

func compareDue(a, b *dueRow) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tenant, b.tenant))
}

// S3: every tenant gets its share, the rest goes to the longest due, and `more` tells exactly whether something was left.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		due, limit, total := map[string][]*dueRow{}, rapid.IntRange(1, 12).Draw(t, "limit"), 0
		var tenants []string
		for i := range rapid.IntRange(0, 15).Draw(t, "tenants") {
			name := fmt.Sprintf("t%02d", i)
			for j := range rapid.IntRange(1, 20).Draw(t, "due") {
				due[name] = append(due[name], &dueRow{name, j*16 + i}) // no two at once
				total++
			}
			tenants = append(tenants, name)
		}
		slices.SortFunc(tenants, func(a, b string) int { return cmp.Compare(due[a][0].at, due[b][0].at) })
		rows, more, err := Rows(tenants, limit, func(r *dueRow) string { return r.tenant }, compareDue, queueOf(due))
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != min(limit, total) || more != (total > limit) {
			t.Fatalf("%d rows of %d, more %v, limit %d", len(rows), total, more, limit)
		}
		if !slices.IsSortedFunc(rows, compareDue) {
			t.Fatalf("not in order: %v", rows)
		}
		got := byTenant(rows, func(r *dueRow) string { return r.tenant })
		share := 0
		if len(tenants) > 0 && len(tenants) <= limit {
			share = limit / len(tenants)
		}
		var youngest, waiting *dueRow
		for name, own := range due {
			if n := len(got[name]); n < min(share, len(own)) {
				t.Fatalf("%s got %d of %d, its share is %d", name, n, len(own), share)
			}
			for i, r := range got[name] {
				if r != own[i] {
					t.Fatalf("%s was not served from its front", name)
				}
				if i >= share && (youngest == nil || r.at > youngest.at) {
					youngest = r
				}
			}
			if n := len(got[name]); n < len(own) && n >= share && (waiting == nil || own[n].at < waiting.at) {
				waiting = own[n]
			}
		}
		if share > 0 && youngest != nil && waiting != nil && waiting.at < youngest.at {
			t.Fatalf("%v was served beyond its tenant's share before %v, which is due longer", youngest, waiting)
		}
	})
}

// S3 for any division of due rows among tenants.
func TestChoose(t *testing.T) {
	type row struct {
		tenant string
		due    int
	}
	byDue := func(a, b row) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.tenant, b.tenant)) }
	rapid.Check(t, func(t *rapid.T) {
		due := map[string][]row{}
		total := 0
		for i, n := range rapid.SliceOfN(rapid.IntRange(1, 20), 0, 8).Draw(t, "rows of the tenants") {
			tenant := fmt.Sprint("t", i)
			for _, at := range slices.Sorted(slices.Values(rapid.SliceOfNDistinct(rapid.IntRange(0, 1000), n, n, rapid.ID).Draw(t, tenant))) {
				due[tenant] = append(due[tenant], row{tenant, at})
				total++
			}
		}
		limit := rapid.IntRange(1, 30).Draw(t, "limit")
		rows, left := Choose(due, limit, byDue)
		if len(rows) != min(limit, total) || len(rows)+len(left) != total || !slices.IsSortedFunc(rows, byDue) || !slices.IsSortedFunc(left, byDue) {
			t.Fatalf("%d rows of %d, limit %d: %v and %v", len(rows), total, limit, rows, left)
		}
		got := map[string][]row{}
		for _, r := range rows {
			got[r.tenant] = append(got[r.tenant], r)
		}
		for tenant, own := range due {
			if !slices.Equal(got[tenant], own[:len(got[tenant])]) {
				t.Fatalf("%s: %v is not the longest due of %v", tenant, got[tenant], own)
			}
			if len(due) <= limit && len(got[tenant]) < min(len(own), limit/len(due)) {
				t.Fatalf("%s has %d of %d places, %d tenants and limit %d", tenant, len(got[tenant]), len(own), len(due), limit)
			}
			if len(due) > limit && len(got[tenant]) > 1 {
				t.Fatalf("%s has %d places although %d tenants share %d", tenant, len(got[tenant]), len(due), limit)
			}
		}
	})
}

// S1 and S3: unmet events are chosen in the same way, and nothing below the next page is left out.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		due, limit, n := map[string][]int64{}, rapid.IntRange(1, 12).Draw(t, "limit"), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			n++
			name := fmt.Sprint("t", rapid.IntRange(0, 9).Draw(t, "tenant"))
			due[name] = append(due[name], n)
		}
		numbers, left := Numbers(due, limit)
		if int64(len(numbers)) != min(int64(limit), n) || !slices.IsSorted(numbers) {
			t.Fatalf("%d numbers of %d, limit %d: %v", len(numbers), n, limit, numbers)
		}
		chosen := map[int64]bool{}
		for _, x := range numbers {
			chosen[x] = true
		}
		var lowest int64
		for i := int64(1); i <= n && lowest == 0; i++ {
			if !chosen[i] {
				lowest = i
			}
		}
		if left != lowest {
			t.Fatalf("the lowest left out is %d, told is %d", lowest, left)
		}
		if share := limit / len(due); share > 0 {
			for name, own := range due {
				got := 0
				for _, x := range own {
					if chosen[x] {
						got++
					}
				}
				if got < min(share, len(own)) {
					t.Fatalf("%s got %d of %d, its share is %d", name, got, len(own), share)
				}
			}
		}
	})
}

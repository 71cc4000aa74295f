package memory

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFairGivesEachTenantItsShare checks S3 for any division of due rows among tenants.
func TestFairGivesEachTenantItsShare(t *testing.T) {
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
		rows, more := fairly(due, limit, byDue)
		if len(rows) != min(limit, total) || more != (total > limit) || !slices.IsSortedFunc(rows, byDue) {
			t.Fatalf("%d rows of %d, limit %d, more %v: %v", len(rows), total, limit, more, rows)
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

// Package fair shares the places of a page among tenants (sweep.md S3), for backends whose tenants' queues are ranges of an index.
package fair

import (
	"cmp"
	"slices"
)

// Place is where in a tenant's queue a page goes on, and how many rows the tenant gets.
type Place[R any] struct {
	Tenant string
	After  *R // the last row taken; nil where the queue begins
	Most   int
}

// Rows takes limit due rows fairly by tenant. tenants are those that have any, the longest due first; take answers rows behind the places it is given, by
// tenant in their order, and compare is the order of the page. With T ≤ limit tenants each gets its ⌊limit/T⌋ places in a first round, the rest goes to the
// longest due in a second; with more tenants than places each place is another tenant's. more says that more was due.
func Rows[R any](tenants []string, limit int, tenantOf func(*R) string, compare func(a, b *R) int, take func(places []Place[R]) ([]*R, error)) (
	rows []*R, more bool, err error,
) {
	if len(tenants) == 0 || limit <= 0 {
		return nil, len(tenants) > 0, nil
	}
	if len(tenants) > limit {
		tenants, more = tenants[:limit], true
	}
	share := limit / len(tenants)
	places := make([]Place[R], len(tenants))
	for i, t := range tenants {
		places[i] = Place[R]{Tenant: t, Most: share}
	}
	if rows, err = take(places); err != nil {
		return nil, false, err
	}
	places = places[:0]
	for t, own := range byTenant(rows, tenantOf) {
		if len(own) == share { // one more than fits tells whether more was due
			places = append(places, Place[R]{Tenant: t, After: own[share-1], Most: limit + 1 - len(rows)})
		}
	}
	if len(places) > 0 {
		slices.SortFunc(places, func(a, b Place[R]) int { return cmp.Compare(a.Tenant, b.Tenant) })
		rest, err := take(places)
		if err != nil {
			return nil, false, err
		}
		slices.SortFunc(rest, compare)
		if room := limit - len(rows); len(rest) > room {
			rest, more = rest[:room], true
		}
		rows = append(rows, rest...)
	}
	slices.SortFunc(rows, compare)
	return rows, more, nil
}

func byTenant[R any](rows []*R, tenantOf func(*R) string) map[string][]*R {
	own := map[string][]*R{}
	for _, row := range rows {
		own[tenantOf(row)] = append(own[tenantOf(row)], row)
	}
	return own
}

// Choose chooses limit of the due rows, each tenant's in order, as Rows does: each tenant has its share of the places first, and the rest goes to the longest due.
// It answers them, and those that got no place, in order.
func Choose[R any](due map[string][]R, limit int, compare func(a, b R) int) (rows, left []R) {
	if len(due) == 0 {
		return nil, nil
	}
	share := max(limit/len(due), 1)
	for _, own := range due {
		n := min(share, len(own))
		rows, left = append(rows, own[:n]...), append(left, own[n:]...)
	}
	slices.SortFunc(rows, compare)
	if len(rows) > limit { // more tenants than places
		rows, left = rows[:limit], append(left, rows[limit:]...)
	}
	slices.SortFunc(left, compare)
	n := min(limit-len(rows), len(left))
	rows, left = append(rows, left[:n]...), left[n:]
	slices.SortFunc(rows, compare)
	return rows, left
}

// Numbers is Choose of numbers: those that have a place, rising, and the lowest that has none, 0 where there is none.
func Numbers(due map[string][]int64, limit int) (numbers []int64, lowest int64) {
	numbers, left := Choose(due, limit, cmp.Compare[int64])
	if len(left) > 0 {
		lowest = left[0]
	}
	return numbers, lowest
}

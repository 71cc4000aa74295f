package fair

import "slices"

// Walk is Rows for a queue whose rows may stay where they are when they were handed out: last is the row behind which the following page begins, below every due
// row that got no place, and nil when there is none. Each page has the lowest due row, so a walk gets on.
func Walk[R any](tenants []string, limit int, tenantOf func(*R) string, compare func(a, b *R) int, take func(places []Place[R]) ([]*R, error)) (
	rows []*R, last *R, err error,
) {
	var seen []*R
	look := func(places []Place[R]) ([]*R, error) {
		found, err := take(places)
		seen = append(seen, found...)
		return found, err
	}
	rows, more, err := Rows(tenants, limit, tenantOf, compare, look)
	if err != nil || !more {
		return rows, nil, err
	}
	// The first that got no place is among what was seen, but for tenants beyond the limit, whose rows are all behind those that have a place.
	slices.SortFunc(seen, compare)
	for i, r := range seen {
		if i == len(rows) || rows[i] != r {
			break
		}
		last = r
	}
	return rows, last, nil
}

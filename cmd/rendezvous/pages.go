package main

import "github.com/rendezvous-events/rendezvous"

// mostPages bounds how far a list is walked whose filter matches little: a page looks at 10,000 rows.
const mostPages = 100

// walk reads pages of a list until there are as many rows as one asked for, 0 being a page of 100, or the list ends, or the bound is met: next says where to go on.
func walk[R any](limit int, cursor string, page func(limit int, cursor string) (rows []R, next string, err error)) (rows []R, next string, err error) {
	if rows, next, err = page(limit, cursor); err != nil {
		return nil, "", err
	}
	if limit == 0 {
		limit = rendezvous.DefaultList
	}
	for n := 1; n < mostPages && next != "" && len(rows) < limit; n++ {
		var more []R
		if more, next, err = page(limit-len(rows), next); err != nil {
			return nil, "", err
		}
		rows = append(rows, more...)
	}
	if next != "" && len(rows) < limit {
		hint("few rows pass the filter: %d pages were read, and the list has more; go on behind them with --cursor, or choose more narrowly", mostPages)
	}
	return rows, next, nil
}

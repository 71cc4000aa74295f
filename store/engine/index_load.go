package engine

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// wanted notes that more of the line is asked for in a turn, and how often: each asker may use up a row.
func (l *line[N]) wanted(turn int, wants []*line[N]) []*line[N] {
	if l.turn != turn {
		l.turn, l.want = turn, 0
		wants = append(wants, l)
	}
	l.want++
	return wants
}

// Bounds of a page of a line: a later page takes as much as all before it together.
const (
	minLaterPage = 16
	maxLinePage  = 2000
)

// page is the next lookup of the line.
func (l *line[N]) page() backend.Lookup {
	n := l.want + 1
	if l.loaded {
		n = max(n, len(l.rows), minLaterPage)
	}
	return backend.Lookup{Tenant: l.slot.tenant, Type: l.slot.typ, Key: l.slot.key, After: l.last, Limit: min(n, maxLinePage)}
}

// extend adds a page that was asked for with that limit.
func (l *line[N]) extend(nodes []N, last int64, limit int) {
	l.rows = append(l.rows, nodes...)
	l.loaded, l.complete = true, len(nodes) < limit
	if len(nodes) > 0 {
		l.last = last
	}
}

// load fetches all that this turn wants.
func (x *index) load(ctx context.Context) error {
	if err := x.loadWaits(ctx); err != nil {
		return err
	}
	if err := x.loadEvents(ctx); err != nil {
		return err
	}
	return x.loadRuns(ctx)
}

func (x *index) loadWaits(ctx context.Context) error {
	if len(x.wantWaits) == 0 {
		return nil
	}
	lookups := pages(x.wantWaits)
	found, err := x.r.OpenWaits(ctx, lookups)
	if err != nil {
		return err
	}
	for i, l := range x.wantWaits {
		nodes, last := make([]*waitNode, len(found[i])), int64(0)
		for j, row := range found[i] {
			nodes[j], last = x.wait(row), row.Number
		}
		l.extend(nodes, last, lookups[i].Limit)
	}
	return nil
}

func (x *index) loadEvents(ctx context.Context) error {
	if len(x.wantEvents) == 0 {
		return nil
	}
	lookups := pages(x.wantEvents)
	found, err := x.r.LiveEvents(ctx, lookups)
	if err != nil {
		return err
	}
	for i, l := range x.wantEvents {
		nodes, last := make([]*eventNode, len(found[i])), int64(0)
		for j, row := range found[i] {
			nodes[j], last = x.event(row), row.Number
		}
		l.extend(nodes, last, lookups[i].Limit)
	}
	return nil
}

func pages[N any](wants []*line[N]) []backend.Lookup {
	lookups := make([]backend.Lookup, len(wants))
	for i, l := range wants {
		lookups[i] = l.page()
	}
	return lookups
}

func (x *index) loadRuns(ctx context.Context) error {
	var waitsOf, rows []backend.RunKey
	for _, r := range x.wantRuns {
		if r.wants {
			waitsOf = append(waitsOf, r.key)
			r.wants, r.haveWaits = false, true
		}
		if r.wantsR {
			rows = append(rows, r.key)
			r.wantsR, r.haveRun = false, true
		}
	}
	if len(waitsOf) > 0 {
		found, err := x.r.WaitsOf(ctx, waitsOf)
		if err != nil {
			return err
		}
		for _, row := range found {
			r := x.runs[backend.RunKey{Tenant: row.Tenant, ID: row.RunID}]
			if n := x.wait(row); !slices.Contains(r.added, n) {
				r.waits = append(r.waits, n)
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	found, err := x.r.Runs(ctx, rows)
	for _, key := range rows {
		x.runs[key].run = found[key]
	}
	return err
}

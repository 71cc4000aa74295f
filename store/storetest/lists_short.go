package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// looking is the tenant on a store whose pages of lists look at so many rows.
func (f *Fix) looking(rows int) store.Tenant {
	f.T.Helper()
	o := f.H.options.Engine
	o.Look = rows
	var s store.Store = must(engine.New(f.H.Faults, o))(f.T, "make a store of the backend")
	if f.H.options.Decorate != nil {
		s = f.H.options.Decorate(s)
	}
	return must(s.Tenant(f.Name()))(f.T, "take the tenant's handle")
}

// shortWalk walks a list of total rows whose pages look at so many of them: what it met. Between two pages it does what between says.
func shortWalk[R any](t *testing.T, total, look, limit int, page func(cursor string) ([]R, string), between func()) (met []R) {
	t.Helper()
	pages := 0
	for cursor := ""; ; {
		rows, next := page(cursor)
		if pages++; len(rows) > limit || len(rows) > 2*look || pages > 4*total {
			t.Fatalf("%d rows on page %d of at most %d that looks at %d", len(rows), pages, limit, look)
		}
		if met = append(met, rows...); next == "" {
			break
		}
		cursor = next
		between()
	}
	if pages < total/(2*look) { // two ranges, where the order has two
		t.Errorf("%d pages that look at %d rows each went through %d", pages, look, total)
	}
	return met
}

func shortPagesOfWaits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const total = 23
	key := K("order", "few")
	var few []store.WaitRow
	var others []*Flow
	for i := range total {
		r := f.Start()
		if i%8 == 6 {
			r.Waits("w", "shipped", key)
			few = append(few, *r.Row("w"))
			continue
		}
		r.Waits("w", "paid", K("order", r.ID))
		others = append(others, r)
	}
	h.FixOf(t, "globex").Start().Waits("w", "shipped", key)
	walk := func(filter store.WaitFilter, look, limit int, between func()) []store.WaitRow {
		narrow := f.looking(look)
		return shortWalk(t, total, look, limit, func(cursor string) ([]store.WaitRow, string) {
			page := must(narrow.Waiting(ctx, filter, limit, cursor))(t, "list")
			return page.Waits, page.NextCursor
		}, between)
	}
	for _, filter := range []store.WaitFilter{{Type: "shipped"}, {Key: &key}, {Key: &key, State: rendezvous.WaitOpen}} {
		for _, look := range []int{1, 2, 5, 40} {
			for _, limit := range []int{1, 2, 100} {
				eq(t, fmt.Sprintf("waits of %+v in pages of %d that look at %d", filter, limit, look), walk(filter, look, limit, func() {}), few)
			}
		}
	}
	eq(t, "waits of no type", walk(store.WaitFilter{Type: "none"}, 3, 100, func() {}), nil)
	eq(t, "waits of a run", must(f.looking(1).Waiting(ctx, store.WaitFilter{RunID: few[2].RunID}, 0, ""))(t, "list"), store.WaitPage{Waits: few[2:3]})
	eq(t, "one page of the store as it is", must(f.Waiting(ctx, store.WaitFilter{Type: "shipped"}, 0, ""))(t, "list"), store.WaitPage{Waits: few})
	eq(t, "waits of a type, while those where pages end go", walk(store.WaitFilter{Type: "shipped"}, 2, 100, func() {
		if len(others) > 0 {
			others[0].Withdraw("w")
			others = others[1:]
		}
	}), few)
}

func shortPagesOfParked(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const total = 9
	key := K("customer", "few")
	var few []store.WaitRow
	for i := range total {
		r := f.Start()
		keys := []rendezvous.Key{K("order", r.ID)}
		if i%4 == 3 {
			keys = append(keys, key)
		}
		r.Waits("w", "paid", keys...)
		f.Matched(f.PutNew("paid", K("order", r.ID)), r, "w")
		if i%4 == 3 {
			few = append(few, *r.Row("w"))
		}
		h.Advance(time.Second)
	}
	for _, look := range []int{1, 2, 5, 40} {
		for _, limit := range []int{1, 2, 100} {
			narrow := f.looking(look)
			eq(t, fmt.Sprintf("in pages of %d that look at %d", limit, look), shortWalk(t, total, look, limit, func(cursor string) ([]store.WaitRow, string) {
				page := must(narrow.ParkedWaits(ctx, store.WaitFilter{Key: &key}, limit, cursor))(t, "list")
				return page.Waits, page.NextCursor
			}, func() {}), few)
		}
	}
}

func shortPagesOfWorkflows(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const total = 23
	var few []store.Workflow
	for i := range total {
		if i%5 == 0 { // several start at an instant
			h.Advance(time.Second)
		}
		s := store.Start{WorkflowID: ID("many"), RunID: ID("run"), Type: "order", Queue: "default"}
		if i%8 == 6 {
			s.WorkflowID, s.Type, s.Queue = ID("few"), "audit", "slow"
		}
		r := f.StartAs(s)
		if i%8 == 6 {
			r.Conclude(rendezvous.StatusFailed)
			few = append(few, r.Describe())
		}
	}
	slices.Reverse(few)
	for _, filter := range []store.WorkflowFilter{
		{Types: []string{"audit"}}, {Queues: []string{"slow"}}, {Statuses: []rendezvous.Status{rendezvous.StatusFailed}}, {Prefix: "few"},
	} {
		for _, look := range []int{1, 2, 5, 40} {
			for _, limit := range []int{1, 2, 100} {
				narrow := f.looking(look)
				eq(t, fmt.Sprintf("workflows of %+v in pages of %d that look at %d", filter, limit, look),
					shortWalk(t, total, look, limit, func(cursor string) ([]store.Workflow, string) {
						page := must(narrow.QueryWorkflows(ctx, filter, limit, cursor))(t, "query")
						return page.Workflows, page.NextCursor
					}, func() {}), few)
			}
		}
		n, capped, err := f.looking(1).CountWorkflows(ctx, filter, 0)
		done(t, "count", err)
		eq(t, "counted, whatever a page looks at", fmt.Sprint(n, capped), fmt.Sprint(len(few), false))
	}
}

package backendtest

import (
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var listCases = []backendCase{
	{"waits by number, page by page, through each filter", listWaits},
	{"parked waits by next attempt, quarantined ones last", listParked},
	{"quarantined waits by when they were", listQuarantined},
	{"workflows newest start first, then by id, through each filter", listWorkflows},
	{"a page of a list looks at so many rows, and a walk meets each that passes once", listsLook},
}

func listWaits(x *bench) {
	w, other := x.flow(acme, "1"), x.flow(acme, "2")
	a := x.opened(w, "a", key("1"), key("2"))
	b := x.opened(other, "b", key("2"))
	x.parked(w, "c")
	stuck, _ := x.parked(other, "d")
	stuck.QuarantinedAt = x.now()
	x.apply(&backend.Changes{Waits: []*backend.Wait{stuck}})
	shipped := x.wait(w, "e")
	shipped.Type = "shipped"
	x.apply(&backend.Changes{NewWaits: []*backend.Wait{shipped}}, w.Key())
	x.opened(x.flow(globex, "1"), "foreign", key("1"))

	list := func(f backend.WaitFilter, after int64, limit int) []string {
		x.Helper()
		var rows []*backend.Wait
		x.view(func(r backend.Reader) {
			rows, _ = got2(r.ListWaits(ctx, acme, f, after, backend.Span{Limit: limit, Look: 100}))(x)
		})
		return effectsOf(rows)
	}
	k1, k2 := key("1"), key("2")
	eq(x, "all", list(backend.WaitFilter{}, 0, 10), []string{"a", "b", "c", "d", "e"})
	eq(x, "first page", list(backend.WaitFilter{}, 0, 2), []string{"a", "b"})
	eq(x, "page behind", list(backend.WaitFilter{}, b.Number, 2), []string{"c", "d"})
	eq(x, "of one run", list(backend.WaitFilter{RunID: "r1"}, 0, 10), []string{"a", "c", "e"})
	eq(x, "of one run, behind", list(backend.WaitFilter{RunID: "r1"}, a.Number, 1), []string{"c"})
	eq(x, "of an unknown run", list(backend.WaitFilter{RunID: "r9"}, 0, 10), nil)
	eq(x, "of one type", list(backend.WaitFilter{Type: "shipped"}, 0, 10), []string{"e"})
	eq(x, "with the first key", list(backend.WaitFilter{Key: &k1}, 0, 10), []string{"a"})
	eq(x, "with the second key", list(backend.WaitFilter{Key: &k2}, 0, 10), []string{"a", "b"})
	eq(x, "open", list(backend.WaitFilter{State: rendezvous.WaitOpen}, 0, 10), []string{"a", "b", "e"})
	eq(x, "parked", list(backend.WaitFilter{State: rendezvous.WaitParked}, 0, 10), []string{"c"})
	eq(x, "quarantined", list(backend.WaitFilter{State: rendezvous.WaitQuarantined}, 0, 10), []string{"d"})
	eq(x, "all parts at once", list(backend.WaitFilter{RunID: "r1", Type: "paid", Key: &k2, State: rendezvous.WaitOpen}, 0, 10), []string{"a"})
}

func listParked(x *bench) {
	w := x.flow(acme, "1")
	x.opened(w, "idle", key("idle"))
	now := x.now()
	for i, name := range []string{"third", "first", "second", "stuck second", "stuck first"} {
		row, _ := x.parked(w, name)
		row.NextAttemptAt = now.Add([]time.Duration{3, 1, 1, 2, 1}[i] * time.Second)
		if i > 2 {
			row.QuarantinedAt = now.Add(-time.Duration(i) * time.Second)
		}
		x.apply(&backend.Changes{Waits: []*backend.Wait{row}})
	}
	x.parked(x.flow(globex, "1"), "foreign")

	page := func(f backend.WaitFilter, after backend.ParkedPosition, limit int) (rows []*backend.Wait, next backend.ParkedPosition) {
		x.Helper()
		x.view(func(r backend.Reader) {
			rows, next = got2(r.ListParked(ctx, acme, f, after, backend.Span{Limit: limit, Look: 100}))(x)
		})
		return rows, next
	}
	want := []string{"first", "second", "third", "stuck first", "stuck second"}
	rows, next := page(backend.WaitFilter{}, backend.ParkedPosition{}, 10)
	eq(x, "parked", effectsOf(rows), want)
	eq(x, "more", next.Set, false)
	rows, _ = page(backend.WaitFilter{State: rendezvous.WaitQuarantined}, backend.ParkedPosition{}, 10)
	eq(x, "quarantined only", effectsOf(rows), want[3:])
	for limit := 1; limit <= 5; limit++ {
		var walked []string
		pages := 0
		for after := (backend.ParkedPosition{}); pages == 0 || after.Set; pages++ {
			rows, after = page(backend.WaitFilter{}, after, limit)
			walked = append(walked, effectsOf(rows)...)
		}
		eq(x, fmt.Sprintf("parked, in pages of %d, and how many", limit), []any{walked, pages}, []any{want, (5 + limit - 1) / limit})
	}
}

func listQuarantined(x *bench) {
	w := x.flow(acme, "1")
	now := x.now()
	for i := range 3 {
		row, _ := x.parked(w, fmt.Sprint("stuck", i))
		row.QuarantinedAt = now.Add(-time.Duration(i) * time.Second)
		x.apply(&backend.Changes{Waits: []*backend.Wait{row}})
	}
	x.parked(w, "parked")
	x.view(func(r backend.Reader) {
		rows := got(r.ListQuarantined(ctx, acme, backend.ParkedPosition{}, 2))(x)
		eq(x, "first page", effectsOf(rows), []string{"stuck2", "stuck1"})
		last := backend.ParkedPosition{Set: true, Quarantined: true, At: rows[1].QuarantinedAt, Number: rows[1].Number}
		eq(x, "second page", effectsOf(got(r.ListQuarantined(ctx, acme, last, 2))(x)), []string{"stuck0"})
		eq(x, "of another tenant", effectsOf(got(r.ListQuarantined(ctx, globex, backend.ParkedPosition{}, 2))(x)), nil)
	})
}

func listWorkflows(x *bench) {
	x.flow(acme, "a")
	x.flow(acme, "b")
	x.advance(time.Second)
	c := x.flow(acme, "c")
	x.flow(globex, "a")
	c.Status, c.ClosedAt, c.Type, c.Queue = rendezvous.StatusCompleted, c.StartedAt, "refund", "slow"
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{c}}, c.Key())

	list := func(f backend.WorkflowFilter, after backend.WorkflowPosition, limit int) []string {
		x.Helper()
		var names []string
		x.view(func(r backend.Reader) {
			rows, _ := got2(r.ListWorkflows(ctx, acme, f, after, backend.Span{Limit: limit, Look: 100}))(x)
			for _, w := range rows {
				names = append(names, w.ID)
			}
			if after.Set || limit < 10 {
				return
			}
			eq(x, "count", got(r.CountWorkflows(ctx, acme, f, 0))(x), len(names))
		})
		return names
	}
	none := backend.WorkflowPosition{}
	eq(x, "all", list(backend.WorkflowFilter{}, none, 10), []string{"wc", "wa", "wb"})
	eq(x, "first page", list(backend.WorkflowFilter{}, none, 2), []string{"wc", "wa"})
	eq(x, "second page", list(backend.WorkflowFilter{}, backend.WorkflowPosition{Set: true, StartedAt: c.StartedAt, ID: "wc"}, 1), []string{"wa"})
	eq(x, "third page", list(backend.WorkflowFilter{}, backend.WorkflowPosition{Set: true, StartedAt: c.StartedAt.Add(-time.Second), ID: "wa"}, 9), []string{"wb"})
	eq(x, "types", list(backend.WorkflowFilter{Types: []string{"refund", "none"}}, none, 10), []string{"wc"})
	eq(x, "statuses", list(backend.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusRunning}}, none, 10), []string{"wa", "wb"})
	eq(x, "queues", list(backend.WorkflowFilter{Queues: []string{"slow"}}, none, 10), []string{"wc"})
	eq(x, "prefix", list(backend.WorkflowFilter{Prefix: "wb"}, none, 10), []string{"wb"})
	eq(x, "a prefix is no pattern", list(backend.WorkflowFilter{Prefix: "w%"}, none, 10), nil)
	eq(x, "all parts at once", list(backend.WorkflowFilter{Types: []string{"order"}, Prefix: "w", Queues: []string{"slow"}}, none, 10), nil)
	x.view(func(r backend.Reader) {
		eq(x, "count up to 2", got(r.CountWorkflows(ctx, acme, backend.WorkflowFilter{}, 2))(x), 2)
	})
}

// looked is a walk over a list whose pages look at few rows: what it meets, and the most rows on a page.
func looked[P comparable](x *bench, look int, page func(after P, p backend.Span) ([]string, P)) (met []string) {
	x.Helper()
	var after, end P
	for pages := 0; ; pages++ {
		if pages > 100 {
			x.Fatal("the walk does not end")
		}
		rows, next := page(after, backend.Span{Limit: 2, Look: look})
		if met = append(met, rows...); next == end {
			return met
		}
		if len(rows) > 2 || next == after {
			x.Fatalf("%d rows behind %v, and the next page is behind %v", len(rows), after, next)
		}
		after = next
	}
}

func listsLook(x *bench) {
	start := x.now()
	var shipped, done []string
	for i := range 12 {
		name := fmt.Sprintf("%02d", i)
		w, changes := newFlow(acme, name, start.Add(-time.Duration(i/5)*time.Second)) // several start at an instant
		x.apply(changes)
		wait := x.wait(w, name)
		if i%4 == 3 {
			w.Status, w.ClosedAt, wait.Type = rendezvous.StatusCompleted, w.StartedAt, "shipped"
			shipped, done = append(shipped, name), append(done, w.ID)
		}
		x.apply(&backend.Changes{Workflows: []*backend.Workflow{w}, NewWaits: []*backend.Wait{wait}}, w.Key())
	}
	other := x.flow(globex, "1")
	for i := range 10 {
		row, _ := x.parked(other, fmt.Sprintf("p%02d", i))
		row.NextAttemptAt = start.Add(time.Duration(i/3) * time.Second)
		if i > 5 {
			row.QuarantinedAt = start
		}
		x.apply(&backend.Changes{Waits: []*backend.Wait{row}})
	}
	for look := 1; look <= 14; look++ {
		of := fmt.Sprintf(" in pages that look at %d rows", look)
		waits := func(f backend.WaitFilter) []string {
			return looked(x, look, func(after int64, p backend.Span) (names []string, next int64) {
				x.view(func(r backend.Reader) {
					rows, n := got2(r.ListWaits(ctx, acme, f, after, p))(x)
					names, next = effectsOf(rows), n
				})
				return names, next
			})
		}
		eq(x, "waits"+of, waits(backend.WaitFilter{Type: "shipped"}), shipped)
		eq(x, "waits of no type"+of, waits(backend.WaitFilter{Type: "none"}), nil)
		key := key("p07")
		eq(x, "parked waits"+of, looked(x, look, func(after backend.ParkedPosition, p backend.Span) (names []string, next backend.ParkedPosition) {
			x.view(func(r backend.Reader) {
				rows, n := got2(r.ListParked(ctx, globex, backend.WaitFilter{Key: &key}, after, p))(x)
				names, next = effectsOf(rows), n
			})
			return names, next
		}), []string{"p07"})
		f := backend.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusCompleted}}
		eq(x, "workflows"+of, looked(x, look, func(after backend.WorkflowPosition, p backend.Span) (names []string, next backend.WorkflowPosition) {
			x.view(func(r backend.Reader) {
				rows, n := got2(r.ListWorkflows(ctx, acme, f, after, p))(x)
				for _, w := range rows {
					names = append(names, w.ID)
				}
				next = n
			})
			return names, next
		}), done)
	}

	const look = 4 // waits of the run are found by index, and others not looked at
	x.view(func(r backend.Reader) {
		rows, next := got2(r.ListWaits(ctx, globex, backend.WaitFilter{RunID: other.RunID, State: rendezvous.WaitQuarantined}, 0, backend.Span{Limit: 5, Look: look}))(x)
		eq(x, "of one run", effectsOf(rows), []string{"p06", "p07", "p08", "p09"})
		eq(x, "more", next, int64(0))
		for _, f := range []backend.WaitFilter{{}, {Type: "none"}} {
			rows, next := got2(r.ListWaits(ctx, acme, f, 0, backend.Span{Limit: 10, Look: look}))(x)
			eq(x, fmt.Sprintf("rows of a page of %+v, and more", f), []any{len(rows), next != 0}, []any{map[string]int{"": look, "none": 0}[f.Type], true})
		}
	})
}

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
		x.view(func(r backend.Reader) { rows = got(r.ListWaits(ctx, acme, f, after, limit))(x) })
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

	page := func(f backend.WaitFilter, after backend.ParkedPosition, limit int) []*backend.Wait {
		x.Helper()
		var rows []*backend.Wait
		x.view(func(r backend.Reader) { rows = got(r.ListParked(ctx, acme, f, after, limit))(x) })
		return rows
	}
	want := []string{"first", "second", "third", "stuck first", "stuck second"}
	eq(x, "parked", effectsOf(page(backend.WaitFilter{}, backend.ParkedPosition{}, 10)), want)
	eq(x, "quarantined only", effectsOf(page(backend.WaitFilter{State: rendezvous.WaitQuarantined}, backend.ParkedPosition{}, 10)), want[3:])
	var walked []string
	after := backend.ParkedPosition{}
	for len(walked) < 9 {
		rows := page(backend.WaitFilter{}, after, 2)
		if len(rows) == 0 {
			break
		}
		walked = append(walked, effectsOf(rows)...)
		last := rows[len(rows)-1]
		after = backend.ParkedPosition{Set: true, Quarantined: !last.QuarantinedAt.IsZero(), At: last.NextAttemptAt, Number: last.Number}
	}
	eq(x, "parked, page by page", walked, want)
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
			for _, w := range got(r.ListWorkflows(ctx, acme, f, after, limit))(x) {
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

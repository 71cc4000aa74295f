package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// historyWalks is history.md section 12, enumerations. What a scope does to them is in shards_scope.go.
var historyWalks = []Case{
	{Name: "HI-24 every workflow is listed, its head once, and no record is decoded", Run: listedOnce},
	{Name: "HI-24 pages go by shard, tenant and workflow id, without gap or repeat", Run: walkedInOrder},
	{Name: "HI-25 active is running only, paused is paused only, and a reopened run is active again", Run: activeAndPaused},
	{Name: "HI-25 paused workflows are listed after closing and reopening the store", Run: pausedAfterRestart, Durable: true},
	{Name: "HI-26 active, paused and terminal workflows are all there are", Run: partitions},
	{Name: "HI-46 limits of enumerations", Run: walkLimits},
}

// walkAll pages an enumeration of heads to its end.
func walkAll(t testing.TB, limit int, page func(after *store.WorkflowPosition, limit int) ([]store.WorkflowHead, error)) []store.WorkflowHead {
	t.Helper()
	var all []store.WorkflowHead
	for after := (*store.WorkflowPosition)(nil); ; {
		rows := must(page(after, limit))(t, "a page")
		if len(rows) > limit {
			t.Fatalf("%d rows in a page of %d", len(rows), limit)
		}
		if len(rows) == 0 {
			return all
		}
		all = append(all, rows...)
		after = &rows[len(rows)-1].WorkflowPosition
	}
}

// head is how a workflow is to be enumerated.
func (r *Flow) head() store.WorkflowHead {
	r.F.T.Helper()
	row := r.Describe()
	return store.WorkflowHead{
		WorkflowPosition: store.WorkflowPosition{Shard: rendezvous.Shard(r.F.Name(), r.WorkflowID, r.F.H.Store.Shards()), Tenant: r.F.Name(), WorkflowID: r.WorkflowID},
		Head:             row.Head, Status: row.Status,
	}
}

// inOrder sorts heads as enumerations do.
func inOrder(heads []store.WorkflowHead) []store.WorkflowHead {
	slices.SortFunc(heads, func(a, b store.WorkflowHead) int {
		return slices.Compare([]string{fmt.Sprintf("%04d", a.Shard), a.Tenant, a.WorkflowID}, []string{fmt.Sprintf("%04d", b.Shard), b.Tenant, b.WorkflowID})
	})
	return heads
}

func listedOnce(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	eq(t, "workflows of an empty store", must(h.Store.ListWorkflowIDs(ctx, store.Scope{}, nil, 0))(t, "list workflows"), nil)
	flows := []*Flow{f.Start(), f.Start(), g.Start(), f.Start(), f.Start(), f.Start()}
	flows[1].AppendFree(flows[1].Noted("n"))
	flows[3].Conclude(rendezvous.StatusCompleted)
	flows[4].Pause()
	flows[5] = flows[5].Continue()
	var want []store.WorkflowHead
	for _, r := range flows {
		want = append(want, r.head())
	}
	h.Counting.Reset()
	eq(t, "heads", must(h.Store.StreamHeads(ctx, store.Scope{}, nil, 0))(t, "stream heads"), inOrder(want))
	var ids []store.WorkflowPosition
	for _, w := range want {
		ids = append(ids, w.WorkflowPosition)
	}
	eq(t, "ids", must(h.Store.ListWorkflowIDs(ctx, store.Scope{}, nil, 0))(t, "list workflows"), ids)
	eq(t, "what it asked of the storage", h.Counting.Counts(), Counts{Views: 2})
	done(t, "damage a record", h.Damage.Record(f.Name(), flows[0].WorkflowID, 1))
	eq(t, "heads", len(must(h.Store.StreamHeads(ctx, store.Scope{}, nil, 0))(t, "stream heads")), len(want))
}

func walkedInOrder(t *testing.T, h *Harness) {
	var want []store.WorkflowHead
	for i := range 60 {
		f := h.FixOf(t, [...]string{"acme", "b", "globex"}[i%3])
		id := fmt.Sprintf("%c%d", "äZa~_"[i%5], i/9) // bytes, not letters, make the order; tenants share ids
		if i%5 == 0 {
			id = fmt.Sprintf("ä%d", i)
		}
		id = fmt.Sprint(id, " of ", i%7)
		r := f.StartAs(store.Start{WorkflowID: id, RunID: ID("run"), Type: "order"})
		want = append(want, r.head())
	}
	inOrder(want)
	for _, limit := range []int{1, 7, 60, 500} {
		got := walkAll(t, limit, func(after *store.WorkflowPosition, limit int) ([]store.WorkflowHead, error) {
			return h.Store.StreamHeads(ctx, store.Scope{}, after, limit)
		})
		eq(t, fmt.Sprintf("heads in pages of %d", limit), got, want)
		got = walkAll(t, limit, func(after *store.WorkflowPosition, limit int) ([]store.WorkflowHead, error) {
			return h.Store.ListActive(ctx, store.Scope{Tenant: "globex"}, after, limit)
		})
		eq(t, fmt.Sprintf("a tenant's heads in pages of %d", limit), got,
			slices.DeleteFunc(slices.Clone(want), func(w store.WorkflowHead) bool { return w.Tenant != "globex" }))
		shards := []int{want[3].Shard, want[40].Shard, want[59].Shard}
		got = walkAll(t, limit, func(after *store.WorkflowPosition, limit int) ([]store.WorkflowHead, error) {
			return h.Store.ListActive(ctx, store.Scope{Shards: shards}, after, limit)
		})
		eq(t, fmt.Sprintf("heads of some shards in pages of %d", limit), got,
			slices.DeleteFunc(slices.Clone(want), func(w store.WorkflowHead) bool { return !slices.Contains(shards, w.Shard) }))
	}
	got := must(h.Store.StreamHeads(ctx, store.Scope{}, &store.WorkflowPosition{Shard: want[10].Shard, Tenant: want[10].Tenant, WorkflowID: want[10].WorkflowID + "\x20"}, 3))
	eq(t, "behind a position that is no row", got(t, "stream heads"), want[11:14])
}

// active and paused are the workflows that those lists show.
func (h *Harness) active(t testing.TB) []store.WorkflowHead {
	t.Helper()
	return must(h.Store.ListActive(ctx, store.Scope{}, nil, 0))(t, "list active")
}

func (h *Harness) paused(t testing.TB) []store.WorkflowHead {
	t.Helper()
	return must(h.Store.ListPaused(ctx, store.Scope{}, nil, 0))(t, "list paused")
}

func activeAndPaused(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	eq(t, "active", h.active(t), []store.WorkflowHead{r.head()})
	eq(t, "paused", h.paused(t), nil)
	r.Pause()
	eq(t, "active when paused", h.active(t), nil)
	eq(t, "paused when paused", h.paused(t), []store.WorkflowHead{r.head()})
	r.Resume()
	eq(t, "active when resumed", h.active(t), []store.WorkflowHead{r.head()})
	r = r.Continue()
	eq(t, "active when continued", h.active(t), []store.WorkflowHead{r.head()})
	for _, end := range []rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled} {
		for _, paused := range []bool{false, true} {
			if paused {
				r.Pause()
			}
			r.Conclude(end)
			eq(t, "active when "+string(end), h.active(t), nil)
			eq(t, "paused when "+string(end), h.paused(t), nil)
			if end == rendezvous.StatusCompleted {
				r = f.Start()
				continue
			}
			must(f.ReopenRun(ctx, store.Reopening{RunID: r.ID, BatchID: ID("batch")}, now))(t, "reopen")
			eq(t, "active when reopened", h.active(t), []store.WorkflowHead{r.head()})
			eq(t, "paused when reopened", h.paused(t), nil)
		}
	}
}

func pausedAfterRestart(t *testing.T, h *Harness) {
	f := h.Fix(t)
	running, paused := f.Start(), f.Start()
	paused.Pause()
	f.Start().Conclude(rendezvous.StatusCompleted)
	h.Reopen(t)
	f = h.Fix(t)
	running.F, paused.F = f, f
	eq(t, "active", h.active(t), []store.WorkflowHead{running.head()})
	eq(t, "paused", h.paused(t), []store.WorkflowHead{paused.head()})
}

func partitions(t *testing.T, h *Harness) {
	var flows []*Flow
	for i := range 40 {
		flows = append(flows, h.FixOf(t, [...]string{"acme", "globex"}[i%2]).Start())
	}
	for range 4 {
		for i, r := range flows {
			switch status := r.Describe().Status; {
			case status == rendezvous.StatusFailed && rand.N(2) == 0:
				must(r.F.ReopenRun(ctx, store.Reopening{RunID: r.ID, BatchID: ID("batch")}, now))(t, "reopen")
			case status.Terminal():
			case rand.N(4) == 0:
				r.Conclude([...]rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled}[rand.N(3)])
			case status == rendezvous.StatusPaused && rand.N(2) == 0:
				r.Resume()
			case status == rendezvous.StatusRunning && rand.N(2) == 0:
				r.Pause()
			case status == rendezvous.StatusRunning:
				flows[i] = r.Continue()
			}
		}
		parts := slices.Concat(h.active(t), h.paused(t))
		for _, w := range must(h.Store.StreamHeads(ctx, store.Scope{}, nil, 0))(t, "stream heads") {
			if w.Status.Terminal() {
				parts = append(parts, w)
			}
		}
		var want []store.WorkflowHead
		for _, r := range flows {
			want = append(want, r.head())
		}
		eq(t, "active, paused and terminal", inOrder(parts), inOrder(want))
		h.Advance(time.Second)
	}
}

func walkLimits(t *testing.T, h *Harness) {
	a := h.Pod(t)
	for _, from := range []store.Enumerations{h.Store, a} {
		for name, call := range map[string]func(limit int) error{
			"ListWorkflowIDs": func(n int) error { _, err := from.ListWorkflowIDs(ctx, store.Scope{}, nil, n); return err },
			"StreamHeads":     func(n int) error { _, err := from.StreamHeads(ctx, store.Scope{}, nil, n); return err },
			"ListActive":      func(n int) error { _, err := from.ListActive(ctx, store.Scope{}, nil, n); return err },
			"ListPaused":      func(n int) error { _, err := from.ListPaused(ctx, store.Scope{}, nil, n); return err },
			"ExpiredTimers":   func(n int) error { _, err := from.ExpiredTimers(ctx, now, store.Scope{}, nil, n); return err },
		} {
			done(t, name+" of the default", call(0))
			done(t, name+" of the maximum", call(10_000))
			code(t, name+" below zero", call(-1), rendezvous.CodeInvalid, "field", "limit")
			code(t, name+" above the maximum", call(10_001), rendezvous.CodeTooLarge, "limit", 10_000, "value", 10_001)
		}
	}
}

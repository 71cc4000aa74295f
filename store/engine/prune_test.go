package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// early is a backend whose list of closed workflows was read before somebody reopened them.
type early struct {
	backend.Backend
	seen []*backend.Workflow
}

func (b early) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	return b.Backend.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error { return fn(ctx, earlyTx{tx, b.seen}) })
}

type earlyTx struct {
	backend.Tx
	seen []*backend.Workflow
}

func (t earlyTx) Closed(context.Context, time.Time, backend.ClosedPosition, int) ([]*backend.Workflow, error) {
	return t.seen, nil
}

// SW-29, S5: a workflow that is not closed any more, or closed again, when its row is locked stays, whatever was seen before.
func TestAReopenedWorkflowIsNotPruned(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	seen := c.Now()
	row := func(id string) *backend.Workflow {
		return &backend.Workflow{Tenant: "acme", ID: id, ClosedAt: seen}
	}
	s, err := engine.New(early{memory.Open(c, 8), []*backend.Workflow{row("open"), row("closed-again"), row("gone")}}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	acme, err := s.Tenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Second)
	for _, id := range []string{"open", "closed-again"} {
		if _, err := acme.StartRun(t.Context(), store.Start{WorkflowID: id, RunID: id, Type: "t"}, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	end := store.Conclusion{RunID: "closed-again", ExpectedSeq: 1, BatchID: "end", Outcome: rendezvous.StatusCompleted}
	if _, err := acme.Conclude(t.Context(), end, time.Time{}); err != nil {
		t.Fatal(err)
	}
	page, err := s.PruneWorkflows(t.Context(), c.Now(), 0, "")
	if err != nil || len(page.Pruned)+len(page.Spared) > 0 {
		t.Fatalf("%+v %v", page, err)
	}
	for _, id := range []string{"open", "closed-again"} {
		if _, err := acme.DescribeWorkflow(t.Context(), store.WorkflowRef{WorkflowID: id}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

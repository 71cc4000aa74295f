package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// timers.md section 4: timers whose workflow is being written at that moment are left for the next page, which waits for nobody, and hide no other.
func TestTimersOfWrittenWorkflowsAreBusy(t *testing.T) {
	t.Parallel()
	s := &stores{tb: t}
	h := s.harness(t, storetest.Options{})
	f, p := h.Fix(t), h.TimerPod(t)
	written, free := f.Start(), f.Start()
	for _, r := range []*storetest.Flow{written, written, free} {
		r.ArmIn(storetest.ID("timer"), 0)
	}
	h.Advance(time.Second)
	var during store.FiredPage
	h.Faults.Arm(fault.Failure{Verb: "append", Point: fault.BeforeCommit, Do: func(context.Context) error {
		during = p.Page(t, 0)
		return nil
	}})
	written.AppendFree(written.Noted("n"))
	if len(during.Fires) != 1 || during.Fires[0].RunID != free.ID || during.Busy != 2 {
		t.Fatalf("while a workflow is written: %d busy, %+v; want 2 busy and the other's timer fired", during.Busy, during.Fires)
	}
	if after := p.Page(t, 0); len(after.Fires) != 2 || after.Busy != 0 {
		t.Fatalf("the next page: %d busy, %+v; want the 2 that were", after.Busy, after.Fires)
	}
}

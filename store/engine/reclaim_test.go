package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// abandon starts n runs, leases them, parks mail answers for each, and lets the leases run out.
func (w *world) abandon(n, mail int) []store.ReclaimItem {
	w.Helper()
	items := make([]store.ReclaimItem, n)
	for i := range items {
		run := fmt.Sprintf("r%03d", i)
		w.start(run)
		l := w.acquire(run, "a")
		items[i] = store.ReclaimItem{Tenant: "default", WorkflowID: "wf-" + run, Epoch: l.Epoch, ExpiresAt: l.ExpiresAt}
		w.parkMany(run, l.Epoch, mail)
	}
	w.clock.Advance(10 * time.Second)
	return items
}

// parkMany registers waits under a lease and offers an event for each.
func (w *world) parkMany(run string, epoch int64, n int) {
	w.Helper()
	if n == 0 {
		return
	}
	regs, events, offers := make([]store.RegisterItem, n), make([]store.BufferItem, n), make([]store.OfferItem, n)
	for i := range n {
		effect := fmt.Sprintf("e%03d", i)
		keys := []rendezvous.Key{{Namespace: "order", Value: run + "/" + effect}}
		id := rendezvous.EventID{Source: "shop", ID: run + "/" + effect}
		regs[i] = store.RegisterItem{Tenant: "default", Registration: store.Registration{
			Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: run, Effect: effect}, Type: "paid", Keys: keys}, Epoch: epoch,
		}}
		events[i] = store.BufferItem{Tenant: "default", Event: rendezvous.Event{EventID: id, Type: "paid", Keys: keys}}
		offers[i] = store.OfferItem{Tenant: "default", Event: &id}
	}
	registered, err := w.s.RegisterBatch(w.ctx, regs, time.Time{})
	w.must(err)
	for _, r := range registered {
		w.must(r.Err)
	}
	_, err = w.s.BufferBatch(w.ctx, events, time.Time{})
	w.must(err)
	_, err = w.s.OfferBatch(w.ctx, offers, time.Time{})
	w.must(err)
}

// TestAReclaimThatSpoilsItsTransactionFailsAlone proves R3 for ReclaimRun: the batch is split until the bad item stands alone.
func TestAReclaimThatSpoilsItsTransactionFailsAlone(t *testing.T) {
	w := newWorld(t)
	items := w.abandon(4, 1)
	spoiled := rendezvous.Errorf(rendezvous.CodeCorrupt, "a row of the first item does not decode")
	w.faults.Arm(fault.Failure{Verb: "reclaim_run", Point: fault.BeforeCommit, Times: 3, Err: spoiled}) // of four, of two, of one
	got, err := w.s.ReclaimRun(w.ctx, items)
	w.must(err)
	if !errors.Is(got[0].Err, rendezvous.ErrCorrupt) || got[0].Outcome != "" {
		t.Fatalf("the spoiling item came to %+v, want its error alone", got[0])
	}
	for i, r := range got[1:] {
		if r.Outcome != store.ReclaimReclaimed || r.Records != 1 || len(r.Notices.Resume) != 1 {
			t.Errorf("item %d came to %+v, want reclaimed with its answer and its notice", i+1, r)
		}
	}
}

// TestAReclaimOfAStoreThatIsDownIsNobodysFault: the call fails as a whole, no item is blamed.
func TestAReclaimOfAStoreThatIsDownIsNobodysFault(t *testing.T) {
	w := newWorld(t)
	items := w.abandon(2, 0)
	w.faults.Arm(fault.Failure{Verb: "reclaim_run", Point: fault.BeforeCommit})
	_, err := w.s.ReclaimRun(w.ctx, items)
	w.want("reclaiming", err, rendezvous.ErrUnavailable)
	got, err := w.s.ReclaimRun(w.ctx, items)
	w.must(err)
	for i, r := range got {
		if r.Outcome != store.ReclaimReclaimed {
			t.Errorf("item %d came to %+v, want reclaimed by the repeat", i, r)
		}
	}
}

// TestManyReclaimsWithMuchMailTakeSeveralTransactions: no transaction of the pass grows without bound, and every item is worked.
func TestManyReclaimsWithMuchMailTakeSeveralTransactions(t *testing.T) {
	w := newWorld(t)
	items := w.abandon(12, rendezvous.MaxCollect+1)
	commits := 0
	w.faults.Arm(fault.Failure{Verb: "reclaim_run", Point: fault.AfterCommit, Times: -1, Do: func(context.Context) error { commits++; return nil }})
	got, err := w.s.ReclaimRun(w.ctx, items)
	w.must(err)
	for i, r := range got {
		if r.Outcome != store.ReclaimReclaimed || r.Records != rendezvous.MaxCollect || len(r.Notices.Resume) != 1 {
			t.Errorf("item %d came to %+v, want reclaimed with %d answers", i, r, rendezvous.MaxCollect)
		}
	}
	if commits != 2 {
		t.Errorf("%d transactions for 12 runs with 100 answers each, want 2", commits)
	}
	l := w.acquire("r000", "b") // what was over the bound stays parked: the next driver is told
	if l.Mail.Mail != 1 {
		t.Errorf("mail %d after the reclaim, want the one answer over the bound", l.Mail.Mail)
	}
}

// TestAnUnreadableLeaseIsCorruptForThatRunAlone walks RN-39 through every list and verb that meets the row, in pages of one.
func TestAnUnreadableLeaseIsCorruptForThatRunAlone(t *testing.T) {
	w := newWorld(t)
	items := w.abandon(3, 1)
	w.must(w.memory.Damage().Lease("default", "wf-r001"))

	var listed []string
	for cursor := ""; ; {
		page, next, err := w.s.AbandonedRuns(w.ctx, 1, cursor)
		w.must(err)
		for _, a := range page {
			listed = append(listed, fmt.Sprint(a.WorkflowID, " ", errors.Is(a.Corrupt, rendezvous.ErrCorrupt)))
		}
		if cursor = next; next == "" {
			break
		}
	}
	for cursor := ""; ; {
		page, err := w.t.QueryWorkflows(w.ctx, store.WorkflowFilter{}, 1, cursor)
		w.must(err)
		for _, row := range page.Workflows {
			listed = append(listed, fmt.Sprint(row.WorkflowID, " ", errors.Is(row.Corrupt, rendezvous.ErrCorrupt)))
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	once := "wf-r000 false wf-r001 true wf-r002 false"
	if got := strings.Join(listed, " "); got != once+" "+once {
		t.Fatalf("the two lists showed %s", got)
	}

	got, err := w.s.ReclaimRun(w.ctx, items)
	w.must(err)
	w.want("reclaiming the damaged run", got[1].Err, rendezvous.ErrCorrupt)
	if got[0].Outcome != store.ReclaimReclaimed || got[2].Outcome != store.ReclaimReclaimed {
		t.Fatalf("its neighbours came to %+v and %+v, want reclaimed", got[0], got[2])
	}
	_, err = w.t.AcquireLease(w.ctx, "r001", "pod/2", rendezvous.DefaultLease, "b")
	w.want("acquiring the damaged run", err, rendezvous.ErrCorrupt)
	if records, err := w.t.ReadHistory(w.ctx, "wf-r001"); err != nil || len(records) != 2 {
		t.Fatalf("its history: %d records, %v; want both, they are sound", len(records), err)
	}
}

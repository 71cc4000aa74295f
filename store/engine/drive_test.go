package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// These are walks through the verbs of leases and reads on the memory backend, quick enough to run at every change. The whole of what they promise is
// proved, on every backend, by store/storetest.

type world struct {
	*testing.T
	ctx    context.Context
	clock  *clock.Manual
	faults *fault.Backend
	memory *memory.Backend
	s      store.Store
	t      store.Tenant
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	stored := memory.Open(c, 8)
	faults := fault.Wrap(stored)
	s, err := engine.New(faults, engine.Options{Clock: clock.System})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	tenant, err := s.Tenant("default")
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, ctx: context.Background(), clock: c, faults: faults, memory: stored, s: s, t: tenant}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) want(what string, err error, code *rendezvous.Error) {
	w.Helper()
	if !errors.Is(err, code) {
		w.Fatalf("%s: %v, want %s", what, err, code.Code)
	}
}

func (w *world) start(run string) {
	w.Helper()
	_, err := w.t.StartRun(w.ctx, store.Start{WorkflowID: "wf-" + run, RunID: run, Type: "order"}, time.Time{})
	w.must(err)
}

func (w *world) acquire(run, id string) store.Lease {
	w.Helper()
	l, err := w.t.AcquireLease(w.ctx, run, "pod/1", 10*time.Second, id)
	w.must(err)
	return l
}

// park registers a wait under the lease and offers its event: the claim parks.
func (w *world) park(run string, epoch int64, effect string) {
	w.Helper()
	keys := []rendezvous.Key{{Namespace: "order", Value: run + "/" + effect}}
	_, err := w.t.RegisterWait(w.ctx, store.Registration{
		Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: run, Effect: effect}, Type: "paid", Keys: keys}, Epoch: epoch,
	}, time.Time{})
	w.must(err)
	id := rendezvous.EventID{Source: "shop", ID: run + "/" + effect}
	_, err = w.t.Buffer(w.ctx, rendezvous.Event{EventID: id, Type: "paid", Keys: keys, Payload: []byte("for " + effect)}, time.Time{})
	w.must(err)
	o, err := w.s.OfferBatch(w.ctx, []store.OfferItem{{Tenant: "default", Event: &id}}, time.Time{})
	w.must(err)
	if o.Items[0].Outcome != store.OfferParked {
		w.Fatalf("the offer came to %+v, want parked", o.Items[0])
	}
}

func (w *world) suspend(run string, epoch, seen int64) store.Suspended {
	w.Helper()
	s, err := w.t.Suspend(w.ctx, run, epoch, seen, false)
	w.must(err)
	return s
}

// TestALeaseLives walks RN-18, RN-19, RN-20, RN-22, RN-25, RN-26 and RN-27.
func TestALeaseLives(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	for _, ttl := range []time.Duration{time.Second, 0, -time.Second, 2 * time.Hour} {
		_, err := w.t.AcquireLease(w.ctx, "r", "pod/1", ttl, "a")
		w.want(fmt.Sprint("ttl ", ttl), err, rendezvous.ErrInvalid)
	}
	l := w.acquire("r", "a")
	if l.Epoch != 1 || l.Head != 1 {
		t.Fatalf("first lease %+v, want epoch 1 at head 1", l)
	}
	w.clock.Advance(time.Second)
	if again := w.acquire("r", "a"); again.Epoch != 1 || !again.ExpiresAt.Equal(l.ExpiresAt) {
		t.Fatalf("the retry got %+v, want what the first got: %+v", again, l)
	}
	_, err := w.t.AcquireLease(w.ctx, "r", "pod/1", rendezvous.DefaultLease, "b")
	w.want("the owner with another acquire id", err, rendezvous.ErrLeaseHeld)
	r, err := w.t.RenewLease(w.ctx, "r", "pod/1", 1, 20*time.Second)
	w.must(err)
	if want := l.ExpiresAt.Add(11 * time.Second); !r.ExpiresAt.Equal(want) || r.Epoch != 1 {
		t.Fatalf("renewed to %+v, want epoch 1 until %s", r, want)
	}
	_, err = w.t.RenewLease(w.ctx, "r", "pod/2", 1, rendezvous.DefaultLease)
	w.want("a stranger's renewal", err, rendezvous.ErrFenced)
	w.clock.Advance(20 * time.Second)
	_, err = w.t.RenewLease(w.ctx, "r", "pod/1", 1, rendezvous.DefaultLease)
	w.want("renewal of an expired lease", err, rendezvous.ErrFenced)
	if l := w.acquire("r", "c"); l.Epoch != 2 {
		t.Fatalf("epoch %d after the expiry, want 2", l.Epoch)
	}
	_, err = w.t.Collect(w.ctx, "r", 1)
	w.want("the former owner's Collect", err, rendezvous.ErrFenced)
	_, err = w.t.Suspend(w.ctx, "r", 1, 1, false)
	w.want("the former owner's Suspend", err, rendezvous.ErrFenced)
	if s, err := w.t.ReleaseLease(w.ctx, "r", 1); err != nil || s.Outcome != store.SuspendNotHeld {
		t.Fatalf("the former owner's release: %+v, %v; want not held", s, err)
	}
	s, err := w.t.ReleaseLease(w.ctx, "r", 2)
	w.must(err)
	if s.Outcome != store.SuspendReleased || len(s.Notices.Resume) != 1 || s.Notices.Resume[0].Cause != rendezvous.CauseReleased {
		t.Fatalf("release: %+v, want released and one notice for it", s)
	}
	if s, err := w.t.ReleaseLease(w.ctx, "r", 2); err != nil || s.Outcome != store.SuspendNotHeld {
		t.Fatalf("the second release: %+v, %v; want not held", s, err)
	}
	if l := w.acquire("r", "d"); l.Epoch != 3 {
		t.Fatalf("epoch %d after the release, want 3", l.Epoch)
	}
}

// TestSuspendShowsNewsFirst walks RN-31, RN-32, RN-35 and RN-58.
func TestSuspendShowsNewsFirst(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	l := w.acquire("r", "a")
	w.park("r", l.Epoch, "one")
	w.park("r", l.Epoch, "two")
	r, err := w.t.RenewLease(w.ctx, "r", "pod/1", l.Epoch, rendezvous.DefaultLease)
	w.must(err)
	if r.Mail.Mail != 2 || r.Head != 3 {
		t.Fatalf("renewal says %+v, want mail 2 at head 3", r)
	}
	got := w.suspend("r", l.Epoch, 3)
	if got.Outcome != store.SuspendContinue || len(got.Records) != 2 || got.Head != 5 || got.More || len(got.Notices.Resume) != 0 {
		t.Fatalf("suspend with mail: %+v, want two records and no notice", got)
	}
	if r := got.Records[0]; r.Seq != 4 || r.Effect != "one" || string(r.Payload) != "for one" {
		t.Fatalf("the first answer is %+v, want the oldest claim, whole", r)
	}
	if again := w.suspend("r", l.Epoch, 3); again.Outcome != store.SuspendContinue || len(again.Records) != 2 || string(again.Records[1].Payload) != "for two" {
		t.Fatalf("the repeat got %+v, want the missed records", again)
	}
	_, err = w.t.Suspend(w.ctx, "r", l.Epoch, 6, false)
	w.want("suspending with records seen that are not there", err, rendezvous.ErrConflict)
	w.faults.Arm(fault.Failure{Verb: "suspend", Point: fault.AfterCommit})
	_, err = w.t.Suspend(w.ctx, "r", l.Epoch, 5, false)
	w.want("a suspend whose answer is lost", err, rendezvous.ErrCommitUnknown)
	if again := w.suspend("r", l.Epoch, 5); again.Outcome != store.SuspendSuspended || again.Head != 5 {
		t.Fatalf("the repeat of a lost suspend: %+v, want suspended", again)
	}
	c, err := w.t.Collect(w.ctx, "r", l.Epoch)
	w.want("Collect after the suspend", err, rendezvous.ErrFenced)
	if len(c.Records) != 0 {
		t.Fatalf("and it answered %d records", len(c.Records))
	}
}

// TestCollectTakesTheMail walks RN-35.
func TestCollectTakesTheMail(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	l := w.acquire("r", "a")
	w.park("r", l.Epoch, "one")
	w.park("r", l.Epoch, "two")
	c, err := w.t.Collect(w.ctx, "r", l.Epoch)
	w.must(err)
	if len(c.Records) != 2 || c.Head != 5 || c.More || string(c.Records[1].Payload) != "for two" {
		t.Fatalf("collected %+v, want two answers, whole", c)
	}
	c, err = w.t.Collect(w.ctx, "r", l.Epoch)
	w.must(err)
	if len(c.Records) != 0 || c.Head != 5 {
		t.Fatalf("collected %+v again, want nothing new", c)
	}
}

// TestAPauseIsAppliedWhenTheLeaseIsGivenUp walks RN-52 for Suspend, and its repeat.
func TestAPauseIsAppliedWhenTheLeaseIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	l := w.acquire("r", "a")
	who := &rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}
	_, err := w.t.PauseRun(w.ctx, "r", who, "stock-taking", time.Time{})
	w.must(err)
	for range 2 {
		got := w.suspend("r", l.Epoch, 1)
		if got.Outcome != store.SuspendPaused || got.Seq != 2 {
			t.Fatalf("suspend of a run asked to pause: %+v, want paused at seq 2", got)
		}
	}
	_, err = w.t.AcquireLease(w.ctx, "r", "pod/2", rendezvous.DefaultLease, "b")
	w.want("acquiring a paused run", err, rendezvous.ErrConflict)
}

// TestAnAbandonedRunIsTakenUp walks RN-28, RN-37 and RN-60.
func TestAnAbandonedRunIsTakenUp(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	w.start("free")
	l := w.acquire("r", "a")
	w.park("r", l.Epoch, "one")
	w.clock.Advance(10 * time.Second)
	list, next, err := w.s.AbandonedRuns(w.ctx, 0, "")
	w.must(err)
	if len(list) != 1 || next != "" || list[0].RunID != "r" || list[0].Owner != "pod/1" || list[0].Epoch != 1 {
		t.Fatalf("abandoned: %+v, %q; want the one run and no more", list, next)
	}
	item := store.ReclaimItem{Tenant: "default", WorkflowID: "wf-r", Epoch: 1, ExpiresAt: list[0].ExpiresAt}
	stale := item
	stale.Epoch = 7
	got, err := w.s.ReclaimRun(w.ctx, []store.ReclaimItem{stale, item, item, {Tenant: "default", WorkflowID: "nobody", Epoch: 1}, {Tenant: "a.b"}})
	w.must(err)
	for i, want := range []store.ReclaimOutcome{store.ReclaimChanged, store.ReclaimReclaimed, store.ReclaimChanged, store.ReclaimChanged, ""} {
		if got[i].Outcome != want {
			t.Fatalf("item %d came to %+v, want %q", i, got[i], want)
		}
	}
	w.want("an item of no tenant", got[4].Err, rendezvous.ErrInvalid)
	r := got[1]
	if r.Records != 1 || r.Reclaims != 1 || !r.Resume || len(r.Notices.Resume) != 1 || r.Notices.Resume[0].Cause != rendezvous.CauseLeaseExpired {
		t.Fatalf("reclaimed: %+v, want one answer and a notice at once", r)
	}
	_, err = w.t.Suspend(w.ctx, "r", 1, 3, false)
	w.want("the dead driver's suspend", err, rendezvous.ErrFenced)

	w.acquire("r", "b")
	w.clock.Advance(10 * time.Second)
	list, _, err = w.s.AbandonedRuns(w.ctx, 0, "")
	w.must(err)
	got, err = w.s.ReclaimRun(w.ctx, []store.ReclaimItem{{Tenant: "default", WorkflowID: "wf-r", Epoch: 2, ExpiresAt: list[0].ExpiresAt}})
	w.must(err)
	if r := got[0]; r.Resume || r.Reclaims != 2 || !r.Notices.Empty() {
		t.Fatalf("the second reclaim in a row: %+v, want no notice yet", r)
	}
	w.clock.Advance(2*time.Second - time.Microsecond)
	if taken := w.woken(); taken["r"] != 0 {
		t.Fatal("noticed before 2 s were over")
	}
	w.clock.Advance(time.Microsecond)
	if taken := w.woken(); taken["r"] != 1 {
		t.Fatalf("taken %v after 2 s, want r once", taken)
	}
	if taken := w.woken(); taken["r"] != 0 {
		t.Fatal("noticed again at once")
	}
	w.clock.Advance(20 * time.Second)
	if taken := w.woken(); taken["r"] != 2 {
		t.Fatalf("taken %v, want the repetition", taken)
	}
}

// woken takes what is due and answers the number of notices per run.
func (w *world) woken() map[string]int {
	w.Helper()
	taken, err := w.s.TakeWoken(w.ctx, 0)
	w.must(err)
	out := map[string]int{}
	for _, r := range taken.Rows {
		out[r.RunID] = r.Notices
	}
	return out
}

// TestHistoriesAreReadInPages walks HI-1, HI-3 and HI-4.
func TestHistoriesAreReadInPages(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	for head := int64(1); head < 126; head += 25 {
		records := make([]rendezvous.Record, 25)
		for i := range records {
			records[i] = rendezvous.Record{RunID: "r", Kind: rendezvous.Note, Data: []byte(`{"name":"n"}`)}
		}
		_, err := w.t.Append(w.ctx, store.Append{RunID: "r", ExpectedSeq: head, BatchID: fmt.Sprint("b", head), Records: records}, time.Time{})
		w.must(err)
	}
	full, err := w.t.ReadHistory(w.ctx, "wf-r")
	w.must(err)
	if len(full) != 126 {
		t.Fatalf("%d records, want 126", len(full))
	}
	from, seen := int64(0), 0
	for {
		page, err := w.t.ReadHistoryFrom(w.ctx, "wf-r", from, 40)
		w.must(err)
		for _, r := range page.Records {
			if seen++; r.Seq != int64(seen) {
				t.Fatalf("record %d has seq %d", seen, r.Seq)
			}
		}
		from = int64(seen) + 1
		if page.More != (seen < 126) || page.Head != 126 {
			t.Fatalf("after %d: more %v, head %d", seen, page.More, page.Head)
		}
		if !page.More {
			break
		}
	}
	page, err := w.t.ReadHistoryFrom(w.ctx, "wf-r", 127, 0)
	w.must(err)
	if len(page.Records) != 0 || page.Head != 126 || page.More {
		t.Fatalf("beyond the head: %+v, want the head alone", page)
	}
	page, err = w.t.ReadHistoryFrom(w.ctx, "nobody", 1, 0)
	w.must(err)
	if len(page.Records) != 0 || page.Head != 0 {
		t.Fatalf("of an unknown workflow: %+v", page)
	}
}

// TestALongChainIsReadInPages walks HI-22 and HI-23.
func TestALongChainIsReadInPages(t *testing.T) {
	w := newWorld(t)
	w.start("r0")
	head := int64(1)
	const runs = 2500
	for i := range runs - 1 {
		c, err := w.t.ContinueAsNew(w.ctx, store.Continuation{
			RunID: fmt.Sprint("r", i), ExpectedSeq: head, BatchID: "next", NextRun: fmt.Sprint("r", i+1),
		}, time.Time{})
		w.must(err)
		head = c.Seq
	}
	after, seen := int64(0), 0
	for {
		chain, err := w.t.ReadRunChain(w.ctx, "wf-r0", after, 999)
		w.must(err)
		if len(chain) == 0 {
			break
		}
		for _, s := range chain {
			if s.RunID != fmt.Sprint("r", seen) || s.LastSeq == 0 {
				t.Fatalf("run %d of the chain is %+v", seen, s)
			}
			seen++
		}
		after = chain[len(chain)-1].FirstSeq
	}
	if seen != runs {
		t.Fatalf("%d runs, want %d", seen, runs)
	}
}

// TestWorkflowsAreListedNewestFirst walks HI-46 and the pages of QueryWorkflows.
func TestWorkflowsAreListedNewestFirst(t *testing.T) {
	w := newWorld(t)
	for _, run := range []string{"c", "a", "b"} { // started together: by id
		w.start(run)
	}
	w.clock.Advance(time.Second)
	w.start("z")
	want := []string{"wf-z", "wf-a", "wf-b", "wf-c"}
	var got []string
	cursor := ""
	for {
		page, err := w.t.QueryWorkflows(w.ctx, store.WorkflowFilter{Types: []string{"order", "order"}}, 2, cursor)
		w.must(err)
		for _, row := range page.Workflows {
			got = append(got, row.WorkflowID)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("listed %v, want %v", got, want)
	}
	page, err := w.t.QueryWorkflows(w.ctx, store.WorkflowFilter{}, 1, "")
	w.must(err)
	_, err = w.t.QueryWorkflows(w.ctx, store.WorkflowFilter{Prefix: "wf-"}, 1, page.NextCursor)
	w.want("a cursor of another query", err, rendezvous.ErrInvalid)
	_, err = w.t.QueryWorkflows(w.ctx, store.WorkflowFilter{Types: []string{}}, 1, "")
	w.want("an empty set", err, rendezvous.ErrInvalid)
	for limit, code := range map[int]*rendezvous.Error{-1: rendezvous.ErrInvalid, 1001: rendezvous.ErrTooLarge} {
		_, err = w.t.QueryWorkflows(w.ctx, store.WorkflowFilter{}, limit, "")
		w.want(fmt.Sprint("limit ", limit), err, code)
	}
	n, capped, err := w.t.CountWorkflows(w.ctx, store.WorkflowFilter{}, 0)
	w.must(err)
	if n != 4 || capped {
		t.Fatalf("counted %d, capped %v; want 4", n, capped)
	}
	for most, wantCapped := range map[int]bool{3: true, 4: false} {
		n, capped, err = w.t.CountWorkflows(w.ctx, store.WorkflowFilter{}, most)
		w.must(err)
		if n != most || capped != wantCapped {
			t.Fatalf("counted %d up to %d, capped %v", n, most, capped)
		}
	}
	byRun, err := w.t.DescribeWorkflow(w.ctx, store.WorkflowRef{RunID: "a"})
	w.must(err)
	if byRun.WorkflowID != "wf-a" || byRun.Run == nil || byRun.Run.RunID != "a" || byRun.Run.LastSeq != 1 {
		t.Fatalf("described %+v", byRun)
	}
	_, err = w.t.DescribeWorkflow(w.ctx, store.WorkflowRef{WorkflowID: "nobody"})
	w.want("an unknown workflow", err, rendezvous.ErrNotFound)
}

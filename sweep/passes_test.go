package sweep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// RN-37: a driver that died: its lease ends, what was parked is recorded, and another driver is called.
func TestThePassLeasesEndsTheLeaseOfADeadDriver(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	epoch := p.lease("run-1", 10*time.Second)
	p.await("run-1", epoch)
	p.buffer("run-1")
	p.claim("run-1")
	w := p.sweep(nil, sweep.Config{})
	r := w.until(time.Second, "the end of the lease", func(r sweep.Report) bool { return pass(t, r, sweep.Leases).Done == 1 })
	if got := pass(t, r, sweep.Leases); got.Handed != 1 || got.Failed != 0 || got.Oldest > time.Second {
		t.Errorf("reported %+v", got)
	}
	if !p.resumed("run-1", rendezvous.CauseLeaseExpired) {
		t.Error("no RESUME with cause lease_expired")
	}
	if s := p.state("run-1"); s != rendezvous.EventConsumed {
		t.Errorf("the parked event is %s", s)
	}
	wf, err := p.tenant.DescribeWorkflow(t.Context(), store.WorkflowRef{RunID: "run-1"})
	must(t, err)
	if wf.LeaseOwner != "" || wf.Reclaims != 1 {
		t.Errorf("owner %q, reclaims %d", wf.LeaseOwner, wf.Reclaims)
	}
}

// EV-57, EV-65: a claim whose worker died is delivered by the pass, once.
func TestThePassParkedDeliversWhatAWorkerLeft(t *testing.T) {
	p := newPlane(t)
	p.park("run-1")
	w := p.sweep(nil, sweep.Config{})
	w.until(time.Second, "the answer's RESUME", func(sweep.Report) bool { return p.resumed("run-1", rendezvous.CauseAnswered) })
	if s, n := p.state("run-1"), p.answers("run-1"); s != rendezvous.EventConsumed || n != 1 {
		t.Errorf("the event is %s, %d answers", s, n)
	}
}

// messaging.md section 4: what is committed is noticed, also when the rest of its page cannot be put back.
func TestThePassParkedSendsTheNoticesOfWhatItDeliveredWhateverComesAfter(t *testing.T) {
	p := newPlane(t)
	p.park("run-1")
	p.park("run-2")
	w := p.sweep(unsettled{noNews{p.all()}}, sweep.Config{})
	w.until(time.Second, "the answer's RESUME", func(sweep.Report) bool { return p.resumed("run-1", rendezvous.CauseAnswered) })
	if s := p.state("run-1"); s != rendezvous.EventConsumed {
		t.Errorf("the event is %s", s)
	}
}

// unsettled is a store in which run-2's wait is always leased, and nothing can be parked; nobody but the pass parked notices anything.
type unsettled struct{ Store }

func (u unsettled) DeliverParked(ctx context.Context, waits []store.WaitRef, at time.Time) (store.Offered, error) {
	var free []store.WaitRef
	for _, w := range waits {
		if w.RunID != "run-2" {
			free = append(free, w)
		}
	}
	got, err := u.Store.DeliverParked(ctx, free, at)
	if err != nil {
		return got, err
	}
	items := make([]store.Offer, len(waits))
	for i, w := range waits {
		items[i] = store.Offer{Outcome: store.OfferParked}
		if w.RunID != "run-2" {
			items[i], got.Items = got.Items[0], got.Items[1:]
		}
	}
	got.Items = items
	return got, nil
}

func (unsettled) ParkWait(context.Context, []store.ParkItem, time.Time) ([]store.ParkResult, error) {
	return nil, rendezvous.Errorf(rendezvous.CodeUnavailable, "away")
}

func (unsettled) TakeWoken(context.Context, int) (store.Taken[store.ResumeRef], error) {
	return store.Taken[store.ResumeRef]{}, nil
}

func (unsettled) TakeUnmet(context.Context, time.Duration, int, time.Duration, string) (store.Taken[store.UnmetPair], string, error) {
	return store.Taken[store.UnmetPair]{}, "", nil
}

// I11: a pair whose notice was lost meets.
func TestThePassUnmetMeetsAPairWhoseNoticeWasLost(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	w := p.sweep(nil, sweep.Config{})
	w.until(time.Second, "the answer's RESUME", func(sweep.Report) bool { return p.resumed("run-1", rendezvous.CauseAnswered) })
	if s := p.state("run-1"); s != rendezvous.EventConsumed {
		t.Errorf("the event is %s", s)
	}
}

// A RESUME that was lost is sent again while nobody drives the run, and no more once somebody does.
func TestThePassWokenRepeatsALostResume(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	w := p.sweep(nil, sweep.Config{})
	for range 3 {
		w.until(time.Second, "RESUME with cause started", func(sweep.Report) bool { return p.resumed("run-1", rendezvous.CauseStarted) })
	}
	p.lease("run-1", time.Hour)
	p.sender.take()
	for range 50 {
		w.tick(10 * time.Second)
	}
	if p.resumed("run-1", rendezvous.CauseStarted) {
		t.Error("a RESUME for a run that somebody drives")
	}
}

// A store that fails now and then counts against no wait, however long that goes on (events.md section 7: never unavailable).
func TestAPageThatFailsAsAWholeCountsAgainstNoWait(t *testing.T) {
	p := newPlane(t)
	p.park("run-1")
	w := p.sweep(nil, sweep.Config{})
	for range 20 {
		f := p.faults.Arm(fault.Failure{Verb: "deliver_parked", Point: fault.AtCall, Call: 1})
		w.until(time.Second, "a page that fails", func(sweep.Report) bool { return f.Struck() == 1 })
	}
	page, err := p.tenant.ParkedWaits(t.Context(), store.WaitFilter{}, 0, "")
	must(t, err)
	if len(page.Waits) == 1 && page.Waits[0].Attempts > 0 {
		t.Errorf("attempts %d", page.Waits[0].Attempts)
	}
	w.until(time.Second, "delivery", func(sweep.Report) bool { return p.state("run-1") == rendezvous.EventConsumed })
}

// I15: a page of rows that nothing can be done with hides none behind it: the pass goes on by its cursor. They are told as failed.
func TestUnreadableLeasesHideNoneBehindThem(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.lease("run-1", 2*time.Second)
	bad := store.AbandonedRun{Tenant: "acme", WorkflowRef: store.WorkflowRef{WorkflowID: "bad"}, Corrupt: errors.New("does not decode")}
	w := p.sweep(broken{p.all(), func(ctx context.Context, cursor string) ([]store.AbandonedRun, string, error) {
		if cursor == "" {
			return []store.AbandonedRun{bad}, "behind", nil
		}
		rows, _, err := p.store.DueLeases(ctx, 10, "")
		return rows, "", err
	}}, sweep.Config{Pages: 1})
	r := w.tick(time.Second)
	if got := pass(t, r, sweep.Leases); got.Handed != 1 || got.Failed != 1 || !got.Saturated {
		t.Errorf("reported %+v", got)
	}
	w.until(time.Second, "RESUME with cause lease_expired", func(sweep.Report) bool { return p.resumed("run-1", rendezvous.CauseLeaseExpired) })
}

// sweep.md section 2: messages that ran out of deliveries are counted and raise attention; those of other streams in the account, and what a worker refused on
// purpose, do not.
func TestThePassExhaustedTellsOfMessagesThatRanOut(t *testing.T) {
	p := newPlane(t)
	w := p.sweep(nil, sweep.Config{})
	for _, o := range w.GivenUp(t.Context(), messaging.Advisory{Exhausted: true}, messaging.Advisory{Stream: "INBOX"}) {
		if o.String() != messaging.Ack().String() {
			t.Errorf("answered %s", o)
		}
	}
	if r := w.tick(time.Second); len(r.Attention) > 0 || pass(t, r, sweep.Exhausted).Handed > 0 {
		t.Errorf("reported %+v", r)
	}
	w.GivenUp(t.Context(), messaging.Advisory{Stream: "MATCH", Exhausted: true}, messaging.Advisory{Stream: "INBOX", Exhausted: true})
	if r := w.tick(time.Second); pass(t, r, sweep.Exhausted).Handed != 2 || !attends(r, "exhausted", "") {
		t.Errorf("reported %+v", r)
	}
	if r := w.tick(time.Second); pass(t, r, sweep.Exhausted).Handed != 0 || !attends(r, "exhausted", "") {
		t.Errorf("reported %+v", r)
	}
	if r := w.tick(time.Hour); attends(r, "exhausted", "") {
		t.Errorf("after an hour: %+v", r.Attention)
	}
}

// attends reports whether a report asks for attention with that reason, about that pass.
func attends(r sweep.Report, reason, about string) bool {
	for _, a := range r.Attention {
		if string(a.Reason) == reason && a.Pass == about {
			return true
		}
	}
	return false
}

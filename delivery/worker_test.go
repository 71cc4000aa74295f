package delivery_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/delivery"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// EV-55, EV-59: a free run's wait is answered and its RESUME goes out; the repeated notice repeats the RESUME until an executor took the lease.
func TestANoticeIsDeliveredAndResumesItsRun(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	p.worker(nil)
	for i := range 2 {
		if got := p.deliver(notice("run-1")); !slices.Equal(got, []string{"ack"}) {
			t.Errorf("outcomes %v", got)
		}
		n := p.sender.take()
		if len(n.Resume) != 1 || n.Resume[0].RunID != "run-1" || n.Resume[0].Cause != rendezvous.CauseAnswered {
			t.Errorf("after notice %d: %+v", i+1, n.Resume)
		}
	}
	p.eventually("run-1", rendezvous.EventConsumed)
	p.lease("run-1", time.Minute)
	p.deliver(notice("run-1"))
	if n := p.sender.take(); !n.Empty() {
		t.Errorf("after an executor took the lease: %+v", n)
	}
}

// EV-65, EV-63: with the offer itself seven tries, 25 ms doubling to 800 ms after the try before; then the wait is the passes', parked and without a failed
// attempt.
func TestSevenTriesOnALeaseThatOutlastsThem(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	epoch := p.lease("run-1", time.Minute)
	p.await("run-1", epoch)
	p.buffer("run-1")
	tries := make(chan struct{}, 100)
	counted := func(context.Context) error { tries <- struct{}{}; return nil }
	p.faults.Arm(fault.Failure{Verb: "deliver_parked", Point: fault.AtCall, Call: 1, Times: -1, Do: counted})
	p.worker(nil)
	if got := p.deliver(notice("run-1"), notice("run-1")); !slices.Equal(got, []string{"ack", "ack"}) {
		t.Errorf("outcomes %v: a lease is no reason to wait", got)
	}
	for _, pause := range []time.Duration{25, 50, 100, 200, 400, 800} {
		p.clock.Waiting(1)
		p.clock.Advance(pause*time.Millisecond - time.Microsecond)
		p.deliver(notice("run-1")) // it is being retried already: no further turn
		p.clock.Waiting(1)
		select {
		case <-tries:
			t.Fatalf("tried before %d ms", pause)
		default:
		}
		p.clock.Advance(time.Microsecond)
		select {
		case <-tries:
		case <-time.After(patience):
			t.Fatalf("not tried after %d ms", pause)
		}
	}
	p.clock.Advance(time.Hour)
	select {
	case <-tries:
		t.Error("an eighth try")
	case <-time.After(20 * time.Millisecond):
	}
	page, err := p.tenant.ParkedWaits(t.Context(), store.WaitFilter{}, 0, "")
	must(t, err)
	if len(page.Waits) != 1 || page.Waits[0].Attempts != 0 {
		t.Fatalf("parked: %+v", page.Waits)
	}
	taken, err := p.store.TakeParked(t.Context(), 10, 0)
	must(t, err)
	if len(taken.Rows) != 1 { // the lease is over by now
		t.Errorf("due for the passes: %+v", taken.Rows)
	}
}

// A worker that cannot pull leaves nothing running: goleak tells.
func TestAWorkerThatCannotStartLeavesNothingBehind(t *testing.T) {
	p := newPlane(t)
	p.stream.fail = errors.New("the connection is closed")
	w, err := delivery.New(p.store, p.stream, p.deps())
	must(t, err)
	if err := w.Start(func() {}); !errors.Is(err, p.stream.fail) {
		t.Fatalf("started with %v", err)
	}
}

// The retry that finds the run free records the answer and sends its RESUME.
func TestARetryDeliversWhenTheLeaseIsOver(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	epoch := p.lease("run-1", 2*time.Second)
	p.await("run-1", epoch)
	p.buffer("run-1")
	p.worker(nil)
	p.clock.Advance(1900 * time.Millisecond)
	p.deliver(notice("run-1"))
	if s := p.state("run-1"); s != rendezvous.EventClaimed {
		t.Fatalf("the event is %s", s)
	}
	for _, pause := range []time.Duration{25, 50, 100} { // the lease is over before the third
		p.clock.Waiting(1)
		p.clock.Advance(pause * time.Millisecond)
	}
	p.eventually("run-1", rendezvous.EventConsumed)
	for end := time.Now().Add(patience); ; clock.Sleep(context.Background(), clock.System, time.Millisecond) {
		if n := p.sender.take(); len(n.Resume) == 1 && n.Resume[0].RunID == "run-1" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no RESUME")
		}
	}
}

// A retry that panics ends neither the process nor the retries of other waits.
func TestARetryThatPanicsFailsAlone(t *testing.T) {
	p := newPlane(t)
	for _, run := range []string{"run-1", "run-2"} {
		p.start(run)
		p.await(run, p.lease(run, 2*time.Second))
		p.buffer(run)
	}
	broken := &panicking{Store: p.store, struck: make(chan struct{})}
	p.worker(broken)
	p.deliver(notice("run-1"))
	p.clock.Waiting(1)
	p.clock.Advance(25 * time.Millisecond) // the try that panics
	<-broken.struck
	p.clock.Advance(1875 * time.Millisecond)
	p.deliver(notice("run-2"))
	for _, pause := range []time.Duration{25, 50, 100} {
		p.clock.Waiting(1)
		p.clock.Advance(pause * time.Millisecond)
	}
	p.eventually("run-2", rendezvous.EventConsumed)
	if s := p.state("run-1"); s != rendezvous.EventClaimed {
		t.Errorf("run-1's event is %s: not the passes' to record", s)
	}
}

// panicking is a store whose first DeliverParked panics.
type panicking struct {
	delivery.Store
	once   sync.Once
	struck chan struct{}
}

func (s *panicking) DeliverParked(ctx context.Context, waits []store.WaitRef, at time.Time) (store.Offered, error) {
	s.once.Do(func() { close(s.struck); panic("a bug") })
	return s.Store.DeliverParked(ctx, waits, at)
}

// scripted is a store that answers what the test says.
type scripted struct {
	delivery.Store
	offered [][]store.OfferItem
	answer  func(items []store.OfferItem) (store.Offered, error)
}

func (s *scripted) OfferBatch(_ context.Context, items []store.OfferItem, _ time.Time) (store.Offered, error) {
	s.offered = append(s.offered, items)
	return s.answer(items)
}

// outcomes answers every item with its own outcome.
func outcomes(of ...store.OfferOutcome) func([]store.OfferItem) (store.Offered, error) {
	return func(items []store.OfferItem) (store.Offered, error) {
		var got store.Offered
		for i, item := range items {
			o := store.Offer{Outcome: of[i], Tenant: item.Tenant}
			if item.Event != nil {
				o.Event = *item.Event
			} else {
				o.Wait = *item.Wait
			}
			if o.Outcome == store.OfferFailed {
				o.Err = rendezvous.Errorf(rendezvous.CodeCorrupt, "a row does not decode")
			}
			got.Items = append(got.Items, o)
		}
		return got, nil
	}
}

func TestRepeatsAreOfferedOnce(t *testing.T) {
	p := newPlane(t)
	s := &scripted{answer: outcomes(store.OfferNoWaiter, store.OfferNoWaiter, store.OfferNoEvent)}
	p.worker(s)
	wait := messaging.MatchNotice{Tenant: "acme", Run: "r", Effect: "e"}
	other := messaging.MatchNotice{Tenant: "other", Source: "s", ID: "1"}
	if got := p.deliver(notice("1"), other, notice("1"), wait, wait, notice("1")); len(got) != 6 || slices.ContainsFunc(got, func(o string) bool { return o != "ack" }) {
		t.Errorf("outcomes %v", got)
	}
	if len(s.offered) != 1 || len(s.offered[0]) != 3 {
		t.Errorf("offered %+v", s.offered)
	}
}

// Later goes out as a new notice before its own is acknowledged; Failed comes again and is nobody else's business.
func TestLaterIsNoticedAgainAndFailedComesAgain(t *testing.T) {
	p := newPlane(t)
	s := &scripted{answer: outcomes(store.OfferLater, store.OfferFailed, store.OfferNoWaiter, store.OfferLater)}
	p.worker(s)
	got := p.deliver(notice("later"), notice("failed"), notice("fine"), messaging.MatchNotice{Tenant: "acme", Run: "r", Effect: "e"}, notice("failed"))
	if !slices.Equal(got, []string{"ack", "retry", "ack", "ack", "retry"}) {
		t.Errorf("outcomes %v", got)
	}
	n := p.sender.take()
	if len(n.Events) != 1 || n.Events[0].ID != "later" || len(n.Waits) != 1 || n.Waits[0].RunID != "r" {
		t.Errorf("noticed %+v", n)
	}
}

// While the store is away, or the notices that follow are not acknowledged, no notice is: all come again.
func TestABatchThatFailsAsAWholeComesAgainAsAWhole(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	p.worker(nil)
	both := []messaging.MatchNotice{notice("run-1"), notice("other")}
	for _, code := range []rendezvous.Code{rendezvous.CodeUnavailable, rendezvous.CodeCommitUnknown} {
		p.faults.Arm(fault.Failure{Verb: "offer_batch", Point: fault.AtCall, Call: 1, Err: rendezvous.Errorf(code, "away")})
		if got := p.deliver(both...); !slices.Equal(got, []string{"retry", "retry"}) {
			t.Errorf("%s: outcomes %v", code, got)
		}
	}
	p.sender.fail = errors.New("no acknowledgement")
	if got := p.deliver(both...); !slices.Equal(got, []string{"retry", "retry"}) {
		t.Errorf("notices lost: outcomes %v", got)
	}
	p.sender.fail = nil
	if got := p.deliver(both...); !slices.Equal(got, []string{"ack", "ack"}) {
		t.Errorf("outcomes %v", got)
	}
	if n := p.sender.take(); len(n.Resume) != 1 {
		t.Errorf("the lost RESUME was not sent again: %+v", n)
	}
}

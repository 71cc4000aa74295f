package delivery_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/delivery"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// until makes the passes run, moving the clock by step each time, until it holds. A tick is waited for before the clock moves on, or the clock would run away
// from a page under way, whose budget it is; the patience with it ends only where a pass hangs.
func (p *plane) until(passes *delivery.Passes, step time.Duration, what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			p.t.Fatalf("did not happen: %s", what)
		}
		before := p.ticks.Load()
		p.clock.Advance(step)
		passes.Kick()
		for late := time.Now().Add(p.tick); p.ticks.Load() == before && time.Now().Before(late); {
			clock.Sleep(context.Background(), clock.System, 100*time.Microsecond)
		}
	}
}

// ticking counts the ticks by their last pass.
type ticking struct {
	delivery.PassStore
	ticks *atomic.Int32
}

func (s ticking) TakeWoken(ctx context.Context, limit int) (store.Taken[store.ResumeRef], error) {
	defer s.ticks.Add(1)
	return s.PassStore.TakeWoken(ctx, limit)
}

// resumed reports whether a RESUME of that cause went out for a run since it was last asked.
func (p *plane) resumed(run string, cause rendezvous.Cause) func() bool {
	return func() bool {
		for _, r := range p.sender.take().Resume {
			if r.RunID == run && r.Cause == cause {
				return true
			}
		}
		return false
	}
}

// RN-37: a driver that died: its lease ends, what was parked is recorded, and another driver is called.
func TestThePassLeasesEndsTheLeaseOfADeadDriver(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	epoch := p.lease("run-1", 10*time.Second)
	p.await("run-1", epoch)
	p.buffer("run-1")
	_, err := p.tenant.MatchWaiter(t.Context(), rendezvous.EventID{Source: "s", ID: "run-1"}, time.Time{})
	must(t, err)
	passes := p.passes(nil, delivery.PassConfig{})
	p.until(passes, time.Second, "RESUME with cause lease_expired", p.resumed("run-1", rendezvous.CauseLeaseExpired))
	if s := p.state("run-1"); s != rendezvous.EventConsumed {
		t.Errorf("the parked event is %s", s)
	}
	w, err := p.tenant.DescribeWorkflow(t.Context(), store.WorkflowRef{RunID: "run-1"})
	must(t, err)
	if w.LeaseOwner != "" || w.Reclaims != 1 {
		t.Errorf("owner %q, reclaims %d", w.LeaseOwner, w.Reclaims)
	}
}

// EV-57, EV-65: a claim whose worker died is delivered by the pass, once.
func TestThePassParkedDeliversWhatAWorkerLeft(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	_, err := p.tenant.MatchWaiter(t.Context(), rendezvous.EventID{Source: "s", ID: "run-1"}, time.Time{})
	must(t, err)
	passes := p.passes(nil, delivery.PassConfig{})
	p.until(passes, time.Second, "the answer's RESUME", p.resumed("run-1", rendezvous.CauseAnswered))
	if s := p.state("run-1"); s != rendezvous.EventConsumed {
		t.Errorf("the event is %s", s)
	}
}

// messaging.md section 4: what is committed is noticed, also when the rest of its page cannot be put back.
func TestThePassParkedSendsTheNoticesOfWhatItDeliveredWhateverComesAfter(t *testing.T) {
	p := newPlane(t)
	for _, run := range []string{"run-1", "run-2"} {
		p.start(run)
		p.await(run, 0)
		p.buffer(run)
		_, err := p.tenant.MatchWaiter(t.Context(), rendezvous.EventID{Source: "s", ID: run}, time.Time{})
		must(t, err)
	}
	p.sender.take()
	passes := p.passes(unsettled{p.store}, delivery.PassConfig{Woken: 10 * time.Minute})
	p.until(passes, time.Second, "delivery", func() bool { return p.state("run-1") == rendezvous.EventConsumed })
	p.until(passes, time.Second, "the answer's RESUME", p.resumed("run-1", rendezvous.CauseAnswered))
}

// unsettled is a store in which run-2's wait is always leased, and nothing can be parked; nobody but the pass parked notices anything.
type unsettled struct{ delivery.PassStore }

func (u unsettled) DeliverParked(ctx context.Context, waits []store.WaitRef, at time.Time) (store.Offered, error) {
	var free []store.WaitRef
	for _, w := range waits {
		if w.RunID != "run-2" {
			free = append(free, w)
		}
	}
	got, err := u.PassStore.DeliverParked(ctx, free, at)
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
	passes := p.passes(nil, delivery.PassConfig{})
	p.until(passes, time.Second, "the answer's RESUME", p.resumed("run-1", rendezvous.CauseAnswered))
	if s := p.state("run-1"); s != rendezvous.EventConsumed {
		t.Errorf("the event is %s", s)
	}
}

// A RESUME that was lost is sent again while nobody drives the run, and no more once somebody does.
func TestThePassWokenRepeatsALostResume(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	passes := p.passes(nil, delivery.PassConfig{})
	for range 3 {
		p.until(passes, time.Second, "RESUME with cause started", p.resumed("run-1", rendezvous.CauseStarted))
	}
	p.lease("run-1", time.Hour)
	p.sender.take()
	for range 50 {
		p.clock.Advance(10 * time.Second)
		passes.Kick()
	}
	if p.resumed("run-1", rendezvous.CauseStarted)() {
		t.Error("a RESUME for a run that somebody drives")
	}
}

// EV-62: a wait that fails every time is tried with growing pauses and quarantined after 16.
func TestAWaitThatFailsEveryTimeIsQuarantined(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	_, err := p.tenant.MatchWaiter(t.Context(), rendezvous.EventID{Source: "s", ID: "run-1"}, time.Time{})
	must(t, err)
	passes := p.passes(failing{PassStore: p.store}, delivery.PassConfig{})
	p.until(passes, 5*time.Minute, "quarantine", func() bool {
		page, err := p.tenant.QuarantinedWaits(t.Context(), 0, "")
		must(t, err)
		return len(page.Waits) == 1 && page.Waits[0].Attempts == 16 && page.Waits[0].LastError == "corrupt"
	})
}

// failing is a store in which no parked wait can be delivered.
type failing struct{ delivery.PassStore }

func (f failing) DeliverParked(_ context.Context, waits []store.WaitRef, _ time.Time) (store.Offered, error) {
	got := store.Offered{Items: make([]store.Offer, len(waits))}
	for i := range got.Items {
		got.Items[i] = store.Offer{Outcome: store.OfferFailed, Err: rendezvous.Errorf(rendezvous.CodeCorrupt, "does not decode")}
	}
	return got, nil
}

// A store that fails now and then counts against no wait, however long that goes on (events.md section 7: never unavailable).
func TestAPageThatFailsAsAWholeCountsAgainstNoWait(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	_, err := p.tenant.MatchWaiter(t.Context(), rendezvous.EventID{Source: "s", ID: "run-1"}, time.Time{})
	must(t, err)
	passes := p.passes(nil, delivery.PassConfig{})
	for range 20 {
		f := p.faults.Arm(fault.Failure{Verb: "deliver_parked", Point: fault.AtCall, Call: 1})
		p.until(passes, time.Second, "a page that fails", func() bool { return f.Struck() == 1 })
	}
	page, err := p.tenant.ParkedWaits(t.Context(), store.WaitFilter{}, 0, "")
	must(t, err)
	if len(page.Waits) == 1 && page.Waits[0].Attempts > 0 {
		t.Errorf("attempts %d", page.Waits[0].Attempts)
	}
	p.until(passes, time.Second, "delivery", func() bool { return p.state("run-1") == rendezvous.EventConsumed })
}

// broken is a store whose AbandonedRuns does what the test says.
type broken struct {
	delivery.PassStore
	abandoned func(ctx context.Context, cursor string) ([]store.AbandonedRun, string, error)
}

func (b broken) AbandonedRuns(ctx context.Context, _ int, cursor string) ([]store.AbandonedRun, string, error) {
	return b.abandoned(ctx, cursor)
}

// S4: a pass that panics, fails or hangs, also one that ignores its context, stops no other; Ready names it.
func TestAPassThatBreaksStopsNoOther(t *testing.T) {
	end := make(chan struct{})
	for name, abandoned := range map[string]func(ctx context.Context, cursor string) ([]store.AbandonedRun, string, error){
		"panics": func(context.Context, string) ([]store.AbandonedRun, string, error) { panic("a bug") },
		"fails": func(context.Context, string) ([]store.AbandonedRun, string, error) {
			return nil, "", errors.New("broken")
		},
		"hangs": func(ctx context.Context, _ string) ([]store.AbandonedRun, string, error) {
			<-ctx.Done()
			return nil, "", context.Cause(ctx)
		},
		"hangs for ever": func(context.Context, string) ([]store.AbandonedRun, string, error) { <-end; return nil, "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.tick = 20 * time.Millisecond
			p.start("run-1")
			p.await("run-1", 0)
			p.buffer("run-1")
			passes := p.passes(broken{p.store, abandoned}, delivery.PassConfig{})
			p.until(passes, time.Second, "the other passes' work", func() bool { return p.state("run-1") == rendezvous.EventConsumed })
			p.until(passes, time.Second, "that Ready names the pass", func() bool {
				err := passes.Ready()
				return err != nil && strings.Contains(err.Error(), "leases")
			})
			if name == "hangs for ever" {
				close(end) // so that Stop finds it down
			}
		})
	}
}

// A page that ignores its context does not hold up the end of the process; Shutdown names its pass.
func TestShutdownDoesNotWaitForAPassThatHangs(t *testing.T) {
	p := newPlane(t)
	hangs, end := make(chan struct{}), make(chan struct{})
	passes := p.passes(broken{p.store, func(context.Context, string) ([]store.AbandonedRun, string, error) {
		close(hangs)
		<-end
		return nil, "", nil
	}}, delivery.PassConfig{})
	<-hangs
	late := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := passes.Stop(ctx); !errors.Is(err, late) || !strings.Contains(err.Error(), "[leases]") {
		t.Errorf("shut down with %v", err)
	}
	close(end)
	must(t, passes.Stop(t.Context()))
}

func TestPassesThatRunAreReady(t *testing.T) {
	p := newPlane(t)
	var pages atomic.Int32
	passes := p.passes(broken{p.store, func(context.Context, string) ([]store.AbandonedRun, string, error) {
		pages.Add(1)
		return nil, "", nil
	}}, delivery.PassConfig{})
	for range 20 {
		before := pages.Load()
		p.until(passes, time.Second, "a page", func() bool { return pages.Load() > before })
	}
	if err := passes.Ready(); err != nil {
		t.Error(err)
	}
}

// S7, S1: a pass that always has more goes on at once, up to its pages, and the others have their turns between.
func TestASaturatedPassGoesOnAndLeavesTheOthersTheirTurns(t *testing.T) {
	p := newPlane(t)
	turns := make(chan string, 100)
	passes := p.passes(broken{turning{p.store, turns}, func(context.Context, string) ([]store.AbandonedRun, string, error) {
		turns <- "leases"
		return nil, "more", nil
	}}, delivery.PassConfig{Pages: 7})
	for range 2 {
		for _, want := range []string{"leases", "woken", "leases", "leases", "leases", "leases", "leases", "leases"} {
			select {
			case got := <-turns:
				if got != want {
					t.Fatalf("%s had the turn of %s", got, want)
				}
			case <-time.After(patience):
				t.Fatalf("%s had no turn", want)
			}
		}
		select {
		case got := <-turns:
			t.Fatalf("%s had one turn too many in the tick", got)
		case <-time.After(20 * time.Millisecond):
		}
		passes.Kick()
	}
}

// turning notes the turns of the pass woken.
type turning struct {
	delivery.PassStore
	turns chan<- string
}

func (s turning) TakeWoken(ctx context.Context, limit int) (store.Taken[store.ResumeRef], error) {
	s.turns <- "woken"
	return s.PassStore.TakeWoken(ctx, limit)
}

// I15: a page of rows that nothing can be done with hides none behind it: the pass goes on by its cursor.
func TestUnreadableLeasesHideNoneBehindThem(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.lease("run-1", 2*time.Second)
	bad := store.AbandonedRun{Tenant: "acme", WorkflowRef: store.WorkflowRef{WorkflowID: "bad"}, Corrupt: errors.New("does not decode")}
	passes := p.passes(broken{p.store, func(ctx context.Context, cursor string) ([]store.AbandonedRun, string, error) {
		if cursor == "" {
			return []store.AbandonedRun{bad}, "behind", nil
		}
		rows, _, err := p.store.AbandonedRuns(ctx, 10, "")
		return rows, "", err
	}}, delivery.PassConfig{Pages: 1})
	p.until(passes, time.Second, "RESUME with cause lease_expired", p.resumed("run-1", rendezvous.CauseLeaseExpired))
}

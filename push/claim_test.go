package push_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// Section 4: after a claim the worker sleeps until the next row is due, and behind one that failed for a second; its own pass does not wake it.
func TestAWorkerSleepsUntilSomethingIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		away  bool
		sleep time.Duration
	}{"a row is due in 3 s": {false, 3 * time.Second}, "the store is away": {true, time.Second}} {
		p := newPlane(t)
		v := receive(t, nil)
		p.start("r", hook("r", "h", v.URL))
		must(t, p.tenant.RetryPush(t.Context(), p.get("r", "h").Key(), 0, p.clock.Now().Add(3*time.Second), "the receiver answered 500"))
		ticks := newTicking(p.clock)
		w := p.pod(func(o *options) { o.Clock = ticks })
		if c.away {
			p.faults.Arm(fault.Failure{Verb: "claim_pushes", Point: fault.AtCall, Call: 1, Times: -1, Do: func(context.Context) error {
				return rendezvous.Errorf(rendezvous.CodeUnavailable, "away")
			}})
		}
		for range 5 {
			w.Pass()
			due, woke := ticks.Now().Add(c.sleep), make(chan time.Time)
			go func() {
				w.Sleep()
				woke <- ticks.Now()
			}()
			go ticks.fire(c.sleep)
			if at := <-woke; at.Before(due) {
				t.Fatalf("%s: it woke %s early", name, due.Sub(at))
			}
			if !c.away {
				break // the row is due now
			}
		}
	}
}

// PU-57: what waited for its gate is claimed when a turn leaves it, also where that was while the worker did not sleep.
func TestAPlaceThatBecameFreeIsClaimedFor(t *testing.T) {
	p := newPlane(t)
	leave := make(chan struct{})
	v := blocked(t, leave)
	for _, run := range []string{"r", "s"} {
		p.start(run, hook(run, "h", v.URL))
	}
	w := p.pod(func(o *options) { o.GateInFlight = 1 })
	w.Pass() // begins a turn,
	v.await(t)
	w.Pass() // and finds the gate full
	close(leave)
	w.Wait()
	eq(t, "received", len(v.ids()), 1)
	wakes(t, asleep(t, w))
	w.Drive()
	eq(t, "received in the end", len(v.ids()), 2)
}

// blocked is a receiver that answers when it is told to.
func blocked(t *testing.T, on chan struct{}) *receiver {
	return receive(t, func(int, message, *http.Request) answer {
		<-on
		return answer{status: 204}
	})
}

// asleep has a worker sleep for its next pass; it answers what closes when it wakes.
func asleep(t *testing.T, w *pod) <-chan struct{} {
	woke := make(chan struct{})
	go func() {
		w.Sleep()
		close(woke)
	}()
	_ = clock.Sleep(t.Context(), clock.System, 20*time.Millisecond) // it sleeps now, most likely; the test does not fail where it does not
	return woke
}

// wakes fails where a worker sleeps on.
func wakes(t *testing.T, woke <-chan struct{}) {
	t.Helper()
	select {
	case <-woke:
	case <-timeout(t):
		t.Fatal("it sleeps, though what is due could be sent")
	}
}

// of starts a run of a tenant with a registration, due behind those before.
func (p *plane) of(tenant, run, url string) {
	p.t.Helper()
	s, err := p.store.Tenant(tenant)
	must(p.t, err)
	_, err = s.StartRun(p.t.Context(), store.Start{WorkflowID: "wf-" + run, RunID: run, Type: "order", Push: []store.PutPush{{Registration: hook("", "h", url)}}}, time.Time{})
	must(p.t, err)
	p.clock.Advance(time.Millisecond)
}

// callers makes a pod of one namespace, which asks for all its places.
func callers(gate, all int) func(o *options) {
	return func(o *options) {
		o.GateInFlight, o.InFlight, o.Namespaces = gate, all, []rendezvous.PushNamespace{rendezvous.PushCaller}
	}
}

// PU-57, S3: tenants that wait for a full gate, more than there are places, keep no other from those.
func TestManyTenantsOfAFullGateAreInNobodysWay(t *testing.T) {
	p := newPlane(t)
	hang := make(chan struct{})
	full, free := blocked(t, hang), receive(t, nil)
	for i := range 100 {
		p.of(fmt.Sprint("t-", i), fmt.Sprint("r-", i), full.URL)
	}
	p.of("z", "z", free.URL)
	w := p.pod(callers(1, 4))
	defer close(hang)
	w.Pass()
	full.await(t)
	w.Pass()
	free.await(t)
}

// What a claim did not look at, because there was one place, is asked for when there are more, whatever else waits for a full gate.
func TestWhatAClaimDidNotLookAtIsAskedForWhenATurnEnds(t *testing.T) {
	p := newPlane(t)
	hang, release := make(chan struct{}), make(chan struct{})
	full, other, free := blocked(t, hang), blocked(t, release), receive(t, nil)
	p.of("a", "a", full.URL)
	p.of("b", "b", full.URL)
	p.of("c", "c", other.URL)
	w := p.pod(callers(2, 4))
	defer close(hang)
	defer close(release)
	w.Pass()
	full.await(t)
	full.await(t)
	other.await(t)
	p.of("d", "d", full.URL)
	p.of("y", "y", other.URL)
	p.of("z", "z", free.URL)
	w.Pass() // there is one place
	other.await(t)
	woke := asleep(t, w)
	release <- struct{}{}
	wakes(t, woke)
	w.Pass()
	free.await(t)
}

// A place that a notice took before what hurries was claimed is not missed: a turn of any gate that ends makes one.
func TestANoticeInBetweenTakesNoHurryAway(t *testing.T) {
	p := newPlane(t)
	hang, release := make(chan struct{}), make(chan struct{})
	full, other := blocked(t, hang), blocked(t, release)
	for i := range 12 {
		p.start(fmt.Sprint("g-", i), hook("", "h", full.URL))
	}
	w := p.pod(callers(16, 10))
	defer close(hang)
	defer close(release)
	w.Pass() // eight of a gate that has places for sixteen
	p.start("s-0", hook("", "h", other.URL))
	p.start("s-1", hook("", "h", other.URL))
	w.Noticed(t.Context(), []messaging.PushNotice{{Tenant: "acme", WorkflowID: "wf-s-0", RunID: "s-0"}, {Tenant: "acme", WorkflowID: "wf-s-1", RunID: "s-1"}})
	other.await(t)
	other.await(t)
	woke := asleep(t, w)
	release <- struct{}{}
	wakes(t, woke)
}

// Rows that a claim parks take places of its limit and none of the pod's: it is followed by the next at once.
func TestAClaimThatParksIsFollowedByTheNext(t *testing.T) {
	p := newPlane(t)
	hang := make(chan struct{})
	full := blocked(t, hang)
	for i := range 4 {
		p.start(fmt.Sprint("lost-", i), hook("", "h", receive(t, nil).URL))
	}
	got, err := p.store.ClaimPushes(t.Context(), store.ClaimPush{Limit: 4, Namespace: rendezvous.PushCaller, Owner: "dead/1", Request: "q", Lease: time.Second})
	must(t, err)
	eq(t, "claimed by who dies", len(got.Pushes), 4)
	p.start("g-0", hook("", "h", full.URL))
	p.start("g-1", hook("", "h", full.URL))
	w := p.pod(callers(2, 6), func(o *options) { o.LostLimit = 1 })
	defer close(hang)
	w.Pass()
	full.await(t)
	full.await(t)
	p.clock.Advance(2 * time.Second)
	p.start("g-2", hook("", "h", full.URL))
	for i := range 3 {
		p.start(fmt.Sprint("z-", i), hook("", "h", receive(t, nil).URL))
	}
	w.Pass() // all four places go to what parks
	eq(t, "parked", w.Totals().Parked, 4)
	wakes(t, asleep(t, w))
}

// A claim whose reply was lost is answered again with what it took, and does not say what else is due: that is asked for.
func TestARepeatedClaimIsFollowedByTheNext(t *testing.T) {
	p := newPlane(t)
	for i := range 6 {
		p.start(fmt.Sprint("r-", i), hook("", "h", receive(t, nil).URL))
	}
	w := p.pod(callers(16, 3))
	p.faults.Arm(fault.Failure{Verb: "claim_pushes", Point: fault.AfterCommit, Call: 1, Times: 1, Do: func(context.Context) error {
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "away")
	}})
	w.Pass()
	w.Pass()
	w.Wait()
	wakes(t, asleep(t, w))
}

// A registration that was changed while its message was on the wire is looked for when its turn ends: nobody else was told.
func TestARegistrationChangedMeanwhileIsLookedForAtOnce(t *testing.T) {
	p := newPlane(t)
	answers := make(chan struct{})
	v := blocked(t, answers)
	h := hook("r", "h", v.URL)
	p.start("r", h)
	p.note("r", 3)
	w := p.pod()
	defer close(answers)
	w.Pass()
	v.await(t)
	h.RunID, h.URL = "r", v.URL+"/new"
	_, err := p.tenant.PutPush(t.Context(), store.PutPush{Registration: h}, time.Time{})
	must(t, err)
	w.Noticed(t.Context(), []messaging.PushNotice{{Tenant: "acme", WorkflowID: "wf-r", RunID: "r"}})
	w.Renew()
	answers <- struct{}{}
	w.Wait()
	wakes(t, asleep(t, w))
}

// meddling is a store whose answers to claims are seen to.
type meddling struct {
	push.Store
	claimed func(*store.ClaimedPushes)
}

func (a meddling) ClaimPushes(ctx context.Context, c store.ClaimPush) (store.ClaimedPushes, error) {
	got, err := a.Store.ClaimPushes(ctx, c)
	a.claimed(&got)
	return got, err
}

// A turn that ended while the claim was on its way, which knew nothing of its place, is not missed.
func TestAPlaceThatBecameFreeDuringAClaimIsClaimedFor(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	full := blocked(t, release)
	p.start("r-0", hook("", "h", full.URL))
	p.start("r-1", hook("", "h", full.URL))
	var w *pod
	claims := 0
	w = p.pod(callers(1, 4), func(o *options) {
		o.store = meddling{p.store, func(*store.ClaimedPushes) {
			if claims++; claims == 2 {
				close(release)
				w.Wait()
			}
		}}
	})
	w.Pass()
	full.await(t)
	w.Pass()
	wakes(t, asleep(t, w))
	w.Pass()
	full.await(t)
}

// Where more is due and none of it was to be had, for whatever reason, it is asked for a second later, not a poll.
func TestWhatIsOutOfReachIsAskedForASecondLater(t *testing.T) {
	p := newPlane(t)
	ticks := newTicking(p.clock)
	w := p.pod(callers(1, 4), func(o *options) {
		o.Clock, o.store = ticks, meddling{p.store, func(got *store.ClaimedPushes) { got.Saturated = true }}
	})
	w.Pass()
	woke := asleep(t, w)
	go ticks.fire(time.Second)
	wakes(t, woke)
}

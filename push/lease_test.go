package push_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// poster asks hook before every request of a pod, and lets it be made.
type poster struct {
	inner         *transport.Client
	before, after func(r transport.Request)
	n             atomic.Int64
}

func (p *poster) Do(ctx context.Context, r transport.Request) transport.Attempt {
	p.n.Add(1)
	if p.before != nil {
		p.before(r)
	}
	a := p.inner.Do(ctx, r)
	if p.after != nil {
		p.after(r)
	}
	return a
}

// Two workers cannot POST one registration at once: a worker that froze past its lease sends nothing when it goes on. The look at the lease before every POST is
// what keeps it from doing so: nobody renews or cancels here, and the store answers its settlement only later.
func TestAFrozenWorkerSendsNothingBehindItsLease(t *testing.T) {
	p := newPlane(t)
	freeze, froze, settled := make(chan struct{}), make(chan struct{}), make(chan struct{})
	v := receive(t, nil)
	h := hook("r", "h", v.URL)
	h.Projection, h.Events = rendezvous.ProjectionA2A, []string{string(rendezvous.RunCompleted)} // a record of two messages: the turn's time does not end it between
	p.start("r", h)
	p.conclude("r")
	first, second := &poster{}, &poster{}
	slow := p.pod(func(o *options) { o.Poster, o.store = first, holding{p.store, settled} })
	first.inner = slow.client
	first.after = func(transport.Request) { // the 2xx came, and the process stands still
		if first.n.Load() == 1 {
			close(froze)
			<-freeze
		}
	}
	slow.Pass()
	<-froze
	p.clock.Advance(46 * time.Second)
	quick := p.pod(func(o *options) { o.Poster = second })
	second.inner = quick.client
	second.before = func(transport.Request) {
		if second.n.Load() == 1 { // while the other one sends, the first one goes on
			close(freeze)
			for !slow.Ending() {
				_ = clock.Sleep(t.Context(), clock.System, time.Millisecond)
			}
		}
	}
	quick.Pass()
	quick.Wait()
	close(settled)
	slow.Wait()
	eq(t, "requests of the frozen one", first.n.Load(), int64(1))
	eq(t, "most in flight", v.most, 1)
	eq(t, "fenced", slow.Totals().Fenced > 0, true)
	// The frozen one's acceptance is a fact, but its successor had read the cursor before: one repeat, none lost.
	same(t, "received", v.ids(), []string{"r/2/0", "r/2/0", "r/2/1"})
}

// holding is a store that answers settlements once it may.
type holding struct {
	push.Store
	may chan struct{}
}

func (h holding) SettlePushes(ctx context.Context, items []store.PushSettlement) ([]store.PushSettled, error) {
	<-h.may
	return h.Store.SettlePushes(ctx, items)
}

// Section 4: when the lease ends by the clock and cannot be renewed, the request that is under way is cancelled.
func TestARequestIsCancelledWhenItsLeaseEnds(t *testing.T) {
	p := newPlane(t)
	cancelled := make(chan struct{})
	v := receive(t, func(_ int, _ message, r *http.Request) answer {
		<-r.Context().Done()
		close(cancelled)
		return answer{status: 500}
	})
	h := hook("r", "h", v.URL)
	p.start("r", h)
	ticks := newTicking(p.clock)
	w := p.pod(func(o *options) { o.Clock = ticks })
	p.faults.Arm(fault.Failure{Verb: "renew_pushes", Point: fault.BeforeCommit, Times: -1})
	// A request may take 15 s; so that it does not end by itself the pod's clock stands but for the lease's timer.
	must(t, w.Start())
	v.await(t)
	ticks.fire(45 * time.Second)
	<-cancelled
	w.Wait()
	eq(t, "accepted", w.Totals().Accepted, 0)
	eq(t, "retries", w.Totals().Retries, 0)
	last := p.get("r", "h").Last
	eq(t, "class", last.Class, rendezvous.ClassOwn)
	eq(t, "unknown", last.Unknown, true)
	eq(t, "attempts", p.get("r", "h").Attempts, 0)
	p.faults.Disarm()
}

// ticking is a clock whose timers fire one length at a time: its now moves with them.
type ticking struct {
	*clock.Manual
	mu     sync.Mutex
	timers map[*tick]time.Duration
	came   chan struct{}
}

type tick struct {
	of *ticking
	c  chan time.Time
}

func newTicking(m *clock.Manual) *ticking {
	return &ticking{Manual: clock.NewManual(m.Now()), timers: map[*tick]time.Duration{}, came: make(chan struct{}, 1000)}
}

func (k *ticking) NewTimer(d time.Duration) clock.Timer {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := &tick{k, make(chan time.Time, 1)}
	k.timers[t] = d
	k.came <- struct{}{}
	return t
}

func (t *tick) C() <-chan time.Time { return t.c }

func (t *tick) Stop() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	delete(t.of.timers, t)
	return true
}

// fire waits for a timer of that length and moves the clock by it, without any other timer.
func (k *ticking) fire(d time.Duration) {
	for {
		k.mu.Lock()
		for t, long := range k.timers {
			if long == d {
				k.Manual.Advance(d)
				t.c <- k.Manual.Now()
				delete(k.timers, t)
				k.mu.Unlock()
				return
			}
		}
		k.mu.Unlock()
		<-k.came
	}
}

// PU-31, PU-32, PU-33: while a POST is on the wire its registration gets another URL, or is parked. Once that is heard nothing more is sent under the lease; but the POST
// is not cut off, and its late 2xx moves the cursor, so that what was accepted does not come again. The next one uses the new URL.
func TestARevokedLeaseEndsTheTurnBehindItsPost(t *testing.T) {
	for name, revoke := range map[string]func(p *plane, fresh string) error{
		"put": func(p *plane, fresh string) error {
			h := hook("r", "h", fresh)
			h.RunID = "r"
			_, err := p.tenant.PutPush(t.Context(), store.PutPush{Registration: h}, time.Time{})
			return err
		},
		"park": func(p *plane, fresh string) error {
			key := store.PushKey{RunID: "r", ID: "h"}
			return p.tenant.ParkPush(t.Context(), store.ParkPush{PushKey: key, Reason: rendezvous.ParkByOperator})
		},
	} {
		p := newPlane(t)
		heard := make(chan struct{})
		old := receive(t, func(n int, _ message, r *http.Request) answer {
			if n == 1 {
				select {
				case <-heard:
				case <-r.Context().Done():
					t.Errorf("%s: the request was cut off", name)
				}
			}
			return answer{status: 204}
		})
		fresh := receive(t, nil)
		p.start("r", hook("r", "h", old.URL))
		p.note("r", 2)
		w := p.pod()
		w.Pass()
		old.await(t)
		must(t, revoke(p, fresh.URL))
		w.Renew()
		close(heard)
		w.Wait()
		same(t, name+": received by the old one", old.ids(), upTo("r", 1))
		eq(t, name+": retries", w.Totals().Retries, 0)
		eq(t, name+": the cursor", p.get("r", "h").Cursor, rendezvous.Cursor{NextSeq: 2})
		receiver, want := fresh, []string{"r/2/0", "r/3/0"}
		if name == "park" {
			_, err := p.tenant.UnparkPush(t.Context(), store.PushKey{RunID: "r", ID: "h"}, time.Time{}, "")
			must(t, err)
			receiver, want = old, append(upTo("r", 1), want...)
		}
		p.pod().Drive()
		same(t, name+": received afterwards", receiver.ids(), want)
	}
}

// PU-34: a registration that is deleted while its POST is on the wire is not sent for again.
func TestADeletedRegistrationIsNotSentFor(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(int, message, *http.Request) answer {
		_, err := p.tenant.DeletePush(t.Context(), store.PushKey{RunID: "r", ID: "h"})
		if err != nil {
			t.Error(err)
		}
		return answer{status: 204}
	})
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 40)
	w := p.pod(func(o *options) { o.Unflushed = 1 })
	w.Drive()
	eq(t, "requests", len(v.messages()) <= 2, true)
	eq(t, "afterwards", w.Drive(), push.Report{})
}

// Section 4: a lease that has less left than the request may take and 5 s is renewed before the POST; where that cannot be had nothing is sent.
func TestALeaseIsRenewedBeforeAPostThatItWouldNotOutlast(t *testing.T) {
	for _, fails := range []bool{false, true} {
		p := newPlane(t)
		v := receive(t, nil)
		h := hook("r", "h", v.URL)
		h.Timeout = 30 * time.Second
		p.start("r", h)
		w := p.pod(func(o *options) { o.Lease = 40 * time.Second })
		p.faults.Arm(fault.Failure{Verb: "read_history_from", Point: fault.AtCall, Call: 1, Do: func(context.Context) error {
			p.clock.Advance(6 * time.Second) // 34 s are left, and 35 s are asked for
			return nil
		}})
		renewals := 0
		p.faults.Arm(fault.Failure{Verb: "renew_pushes", Point: fault.BeforeCommit, Do: func(context.Context) error {
			if renewals++; fails {
				return rendezvous.Errorf(rendezvous.CodeUnavailable, "away")
			}
			return nil
		}})
		got := w.Drive()
		eq(t, "renewals", renewals, 1)
		eq(t, "sent", len(v.messages()), map[bool]int{true: 0, false: 1}[fails])
		eq(t, "deferred", got.Deferred, map[bool]int{true: 1, false: 0}[fails])
		eq(t, "attempts", p.get("r", "h").Attempts, 0)
	}
}

// PU-18, PU-32: a turn whose lease was revoked passes over nothing more, either: what its registration took may be other than what it takes now.
func TestARevokedLeasePassesOverNothing(t *testing.T) {
	p := newPlane(t)
	heard := make(chan struct{})
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		if n == 1 {
			<-heard
		}
		return answer{status: 204}
	})
	h := hook("r", "h", v.URL)
	h.Events = []string{string(rendezvous.RunStarted)}
	p.start("r", h)
	p.note("r", 3)
	w := p.pod()
	w.Pass()
	v.await(t)
	h.RunID, h.Events = "r", []string{rendezvous.AllEvents}
	_, err := p.tenant.PutPush(t.Context(), store.PutPush{Registration: h}, time.Time{})
	must(t, err)
	w.Renew()
	close(heard)
	w.Wait()
	eq(t, "the cursor", p.get("r", "h").Cursor, rendezvous.Cursor{NextSeq: 2})
	p.pod().Drive()
	same(t, "received", v.ids(), upTo("r", 4))
}

// PU-52: what was accepted and a settlement would not take is handed in with the turn's last one; nothing is sent behind it, and nothing comes again.
func TestAcceptancesThatASettlementRefusesAreHandedInAtTheEnd(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 3)
	w := p.pod(func(o *options) { o.Unflushed = 1 })
	p.faults.Arm(fault.Failure{Verb: "settle_pushes", Point: fault.AtCall, Call: 1, Times: 1, Do: func(context.Context) error {
		return rendezvous.Errorf(rendezvous.CodeConflict, "not now")
	}})
	w.Drive()
	same(t, "received", v.ids(), upTo("r", 1))
	eq(t, "the cursor", p.get("r", "h").Cursor, rendezvous.Cursor{NextSeq: 2})
	p.pod().Drive()
	same(t, "received in the end", v.ids(), upTo("r", 4))
}

// PU-52: a settlement whose reply is lost is made again, and no message is.
func TestALostReplyOfASettlementRepeatsNoPost(t *testing.T) {
	for _, point := range []fault.Point{fault.BeforeCommit, fault.AfterCommit} {
		p := newPlane(t)
		v := receive(t, nil)
		p.start("r", hook("r", "h", v.URL))
		p.note("r", 30)
		p.conclude("r")
		w := p.pod(func(o *options) { o.Clock = clock.System })
		p.faults.Arm(fault.Failure{Verb: "settle_pushes", Point: point, Times: 3})
		w.Drive()
		same(t, string(point), v.ids(), upTo("r", 32))
		eq(t, "left", p.get("r", "h") == nil, true)
	}
}

// A claim whose reply is lost is asked for again by its name: no lease is lost, and everything is sent once.
func TestALostReplyOfAClaimLosesNoLease(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL))
	w := p.pod(func(o *options) { o.Namespaces = []rendezvous.PushNamespace{rendezvous.PushCaller} })
	p.faults.Arm(fault.Failure{Verb: "claim_pushes", Point: fault.AfterCommit})
	eq(t, "without a reply", w.Drive(), push.Report{})
	eq(t, "asked again", w.Drive().Accepted, 1)
	eq(t, "lost", p.get("r", "h").Lost, 0)
	same(t, "received", v.ids(), upTo("r", 1))
}

// PU-52: what was accepted and not acknowledged is bounded: a process that dies repeats 16 messages at most, with the same ids, and none is lost.
func TestADeathBetweenAcceptanceAndFlushRepeatsFew(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 60)
	reached := make(chan struct{})
	stuck := make(chan struct{})
	var once sync.Once
	dying := p.pod(func(o *options) {
		o.store = stalling{p.store, func() error { once.Do(func() { close(reached) }); <-stuck; return context.Canceled }}
		o.Clock = clock.NewManual(begin)
	})
	dying.Pass()
	<-reached
	for len(v.messages()) < 16 { // it goes on until 16 are out
		v.await(t)
	}
	taken := len(v.messages())
	p.clock.Advance(46 * time.Second) // nothing of it ever reached the store
	w := p.pod()
	w.Drive()
	counts := map[string]int{}
	for _, id := range v.ids() {
		counts[id]++
	}
	repeats := 0
	for _, n := range counts {
		repeats += n - 1
	}
	eq(t, "sent before", taken, 16)
	eq(t, "messages", len(counts), 61)
	eq(t, "repeats", repeats, 16)
	eq(t, "lost workers", p.get("r", "h").Lost, 0)
	close(stuck)
}

// Section 4, acknowledgements: what was accepted while a settlement was under way is acknowledged behind it, though the next request takes its time.
func TestAcceptancesAreAcknowledgedWhileARequestHangs(t *testing.T) {
	p := newPlane(t)
	may, release := make(chan struct{}), make(chan struct{})
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		if n == 3 {
			<-release
		}
		return answer{status: 204}
	})
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 2)
	w := p.pod(func(o *options) { o.store = holding{p.store, may} })
	w.Pass()
	for range 3 {
		v.await(t)
	}
	close(may)
	end := time.Now().Add(patience)
	for p.get("r", "h").NextSeq < 3 && time.Now().Before(end) {
		_ = clock.Sleep(t.Context(), clock.System, time.Millisecond)
	}
	eq(t, "cursor while the third hangs", p.get("r", "h").NextSeq, int64(3))
	close(release)
	w.Wait()
	eq(t, "cursor", p.get("r", "h").NextSeq, int64(4))
	same(t, "received", v.ids(), upTo("r", 3))
}

// stalling is a store whose settlements do not come back.
type stalling struct {
	push.Store
	settle func() error
}

func (s stalling) SettlePushes(context.Context, []store.PushSettlement) ([]store.PushSettled, error) {
	return nil, rendezvous.Errorf(rendezvous.CodeInvalid, "stalled").Because(s.settle())
}

// PU-51: a drain lets requests finish, acknowledges every 2xx and leaves no lease; the next worker repeats none.
func TestADrainLeavesNothingBehind(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	v := blocked(t, release)
	for run := range 10 {
		var hooks []rendezvous.Registration
		for i := range 10 {
			hooks = append(hooks, hook("", fmt.Sprint("h-", i), v.URL))
		}
		p.start(fmt.Sprint("r-", run), hooks...)
		p.note(fmt.Sprint("r-", run), 2)
	}
	w := p.pod(func(o *options) { o.GateInFlight = 256 })
	must(t, w.Start())
	for range 100 {
		v.await(t)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- w.Stop(context.Background()) }()
	for !w.Draining() {
		_ = clock.Sleep(t.Context(), clock.System, time.Millisecond)
	}
	close(release)
	must(t, <-stopped)
	eq(t, "accepted", w.Totals().Accepted, 100)
	due, err := p.tenant.DuePush(t.Context(), time.Time{}, 1000)
	must(t, err)
	eq(t, "due afterwards", len(due), 100)
	for _, d := range due {
		if !d.LeaseUntil.IsZero() || d.NextSeq != 2 || d.Lost != 0 {
			t.Fatalf("%+v", d)
		}
	}
	next := p.pod(func(o *options) { o.GateInFlight = 256 })
	for next.Totals().Accepted < 200 {
		next.Drive()
	}
	counts := map[string]int{}
	for _, id := range v.ids() {
		counts[id]++
	}
	for id, n := range counts {
		eq(t, id+" of ten registrations", n, 10)
	}
	eq(t, "messages", len(counts), 30)
}

// PU-51: a receiver that hangs is given up at push.drain: unknown and not charged.
func TestADrainGivesUpOnAReceiverThatHangs(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(_ int, _ message, r *http.Request) answer { <-r.Context().Done(); return answer{status: 204} })
	p.start("r", hook("r", "h", v.URL))
	ticks := newTicking(p.clock)
	w := p.pod(func(o *options) { o.Clock, o.Drain = ticks, 7*time.Second })
	must(t, w.Start())
	v.await(t)
	stopped := make(chan error, 1)
	go func() { stopped <- w.Stop(context.Background()) }()
	ticks.fire(7 * time.Second)
	must(t, <-stopped)
	row := p.get("r", "h")
	eq(t, "attempts", row.Attempts, 0)
	eq(t, "lease", row.LeaseUntil.IsZero(), true)
	eq(t, "due", row.NextAttemptAt, begin)
	logged := p.attempts("r", "h")
	eq(t, "logged", len(logged), 1)
	eq(t, "class", logged[0].Class, rendezvous.ClassOwn)
	eq(t, "unknown", logged[0].Unknown, true)
}

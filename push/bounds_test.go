package push_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
)

// PU-57: the rows of a full gate wait without holding places; other gates go on.
func TestAFullGateHoldsNoPlaces(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	full := blocked(t, release)
	other := receive(t, nil)
	var hooks []rendezvous.Registration
	for i := range 8 {
		hooks = append(hooks, hook("r", fmt.Sprint("h-", i), full.URL))
	}
	p.start("r", hooks...)
	p.start("s", hook("s", "other", other.URL))
	w := p.pod(func(o *options) { o.GateInFlight, o.InFlight = 2, 16 })
	for range 2 { // of the full gate the second pass gets nothing
		w.Pass()
		full.await(t)
	}
	other.await(t)
	for p.get("s", "other").State != rendezvous.PushIdle { // its turn ends though the others hang
		_ = clock.Sleep(t.Context(), clock.System, time.Millisecond)
	}
	waiting := 0
	for i := range 8 {
		row := p.get("r", fmt.Sprint("h-", i))
		eq(t, "attempts", row.Attempts, 0)
		if row.LeaseUntil.IsZero() {
			waiting++
			eq(t, "due for whoever has room", row.NextAttemptAt, begin)
		}
	}
	eq(t, "waiting without a lease", waiting, 6)
	for turns, _ := w.Taken(); turns != 2; turns, _ = w.Taken() { // those two alone hold places
		_ = clock.Sleep(t.Context(), clock.System, time.Millisecond)
	}
	eq(t, "most at once", full.most, 2)
	close(release)
	w.Wait()
	for w.Totals().Accepted < 9 {
		w.Drive()
	}
}

// What waits for a full gate goes out as the turns before it end, long before the next poll; meanwhile nobody asks again and again.
func TestAFullGateGoesOnWhenATurnEnds(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	v := blocked(t, release)
	for i := range 8 {
		p.start(fmt.Sprint("r-", i), hook("", "h", v.URL))
	}
	counted := &counting{Store: p.store}
	w := p.pod(func(o *options) { o.GateInFlight, o.store = 1, counted })
	must(t, w.Start())
	v.await(t)
	for range 20 {
		w.Noticed(t.Context(), []messaging.PushNotice{{Tenant: "acme", WorkflowID: "wf-r-7", RunID: "r-7"}})
	}
	before := counted.claims.Load()
	_ = clock.Sleep(t.Context(), clock.System, 100*time.Millisecond)
	if n := counted.claims.Load(); n > before+2 {
		t.Errorf("%d claims while the gate was full and nobody told of anything", n-before)
	}
	close(release)
	for range 7 {
		v.await(t)
	}
	eq(t, "most at once", v.most, 1)
}

// PU-57: a gate is filled at once, claim by claim; what waits for it then is asked for when its own turns end, not those of other gates.
func TestTurnsOfOtherGatesDoNotAskForAFullOne(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	full := blocked(t, release)
	other := receive(t, nil)
	for i := range 20 {
		p.start(fmt.Sprint("r-", i), hook("", "h", full.URL))
	}
	w := p.pod(func(o *options) { o.GateInFlight = 16 })
	w.Pass()
	w.Sleep() // for no time: the gate has places left
	w.Pass()
	for range 16 {
		full.await(t)
	}
	woke := asleep(t, w)
	for i := range 5 {
		run := fmt.Sprint("s-", i)
		p.start(run, hook("", "h", other.URL))
		w.Noticed(t.Context(), []messaging.PushNotice{{Tenant: "acme", WorkflowID: "wf-" + run, RunID: run}})
		other.await(t)
	}
	for turns, _ := w.Taken(); turns != 16; turns, _ = w.Taken() {
		_ = clock.Sleep(t.Context(), clock.System, time.Millisecond)
	}
	select {
	case <-woke:
		t.Error("it claims for a gate that is as full as before")
	case <-clock.System.NewTimer(100 * time.Millisecond).C():
	}
	release <- struct{}{}
	<-woke
	close(release)
	w.Wait()
	for w.Totals().Accepted < 25 {
		w.Drive()
	}
}

// Where all places of the pod were taken, what waits is asked for when any turn ends, however full a gate is.
func TestAFullWorkerGoesOnWhenATurnOfAnotherGateEnds(t *testing.T) {
	p := newPlane(t)
	hang, release := make(chan struct{}), make(chan struct{})
	full := blocked(t, hang)
	for i := range 8 {
		p.start(fmt.Sprint("a-", i), hook("", "h", full.URL))
	}
	var others []*receiver
	for i := range 3 {
		v := blocked(t, release)
		p.start(fmt.Sprint("b-", i), hook("", "h", v.URL))
		others = append(others, v)
	}
	defer close(hang)
	defer close(release)
	w := p.pod(func(o *options) { o.GateInFlight, o.InFlight = 8, 10 })
	for turns, _ := w.Taken(); turns < 10; turns, _ = w.Taken() {
		w.Pass()
	}
	others[0].await(t)
	others[1].await(t)
	woke := asleep(t, w)
	release <- struct{}{}
	wakes(t, woke)
	w.Pass()
	others[2].await(t)
}

// A worker whose places are all taken asks the store for nothing, and claims when one is free.
func TestAFullWorkerDoesNotAsk(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	v := blocked(t, release)
	p.start("r", hook("", "h", v.URL))
	p.start("s", hook("", "h", v.URL))
	counted := &counting{Store: p.store}
	w := p.pod(func(o *options) { o.InFlight, o.store = 1, counted })
	must(t, w.Start())
	v.await(t)
	for range 20 { // whatever wakes it
		w.Noticed(t.Context(), []messaging.PushNotice{{Tenant: "acme", WorkflowID: "wf-s", RunID: "s"}})
	}
	before := counted.claims.Load()
	_ = clock.Sleep(t.Context(), clock.System, 100*time.Millisecond)
	if n := counted.claims.Load(); n > 4 || n != before {
		t.Errorf("%d claims before, %d after a while without a place", before, n)
	}
	must(t, w.Ready())
	close(release)
	v.await(t)
}

// counting counts claims.
type counting struct {
	push.Store
	claims atomic.Int64
}

func (c *counting) ClaimPushes(ctx context.Context, r store.ClaimPush) (store.ClaimedPushes, error) {
	c.claims.Add(1)
	return c.Store.ClaimPushes(ctx, r)
}

// Section 5: a tenant has half of the places while another has due work.
func TestATenantHasHalfOfThePlacesWhileAnotherIsDue(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	v := blocked(t, release)
	other, err := p.store.Tenant("umbrella")
	must(t, err)
	for i := range 6 {
		p.start(fmt.Sprint("r-", i), hook("", "h", v.URL))
	}
	w := p.pod(func(o *options) { o.InFlight, o.Namespaces = 8, []rendezvous.PushNamespace{rendezvous.PushCaller} })
	w.Pass() // alone it has more than half
	for range 6 {
		v.await(t)
	}
	p.start("r-6", hook("", "h", v.URL))
	_, err = other.StartRun(t.Context(), store.Start{WorkflowID: "wf", RunID: "u", Type: "order", Push: []store.PutPush{{Registration: hook("", "h", v.URL)}}}, time.Time{})
	must(t, err)
	w.Pass() // two places are left, and both tenants are due
	eq(t, "whose comes", strings.HasPrefix(v.await(t).id, "u/"), true)
	turns, _ := w.Taken()
	eq(t, "places taken", turns, 7)
	eq(t, "put off", w.Totals().Deferred, 1)
	close(release)
	w.Wait()
}

// Section 5: turns wait for memory; who waits holds nothing, and a record of the largest size passes the smallest budget.
func TestTurnsWaitForMemory(t *testing.T) {
	p := newPlane(t)
	var now, most atomic.Int64
	var w *pod
	v := receive(t, func(int, message, *http.Request) answer {
		_, bytes := w.Taken()
		most.Store(max(most.Load(), bytes))
		now.Add(1)
		return answer{status: 204}
	})
	const runs = 12
	for i := range runs {
		h := hook("", "h", v.URL)
		h.IncludePayload = new(true)
		run := fmt.Sprint("r-", i)
		_, err := p.tenant.StartRun(t.Context(), store.Start{
			WorkflowID: "wf-" + run, RunID: run, Type: "order", Input: []byte(strings.Repeat("x", rendezvous.MaxPayload)), ContentType: "text/plain",
			Push: []store.PutPush{{Registration: h}},
		}, time.Time{})
		must(t, err)
	}
	w = p.pod(func(o *options) { o.Memory = 8 << 20 })
	for w.Totals().Accepted < runs {
		w.Drive()
	}
	if most.Load() > 8<<20 || most.Load() < 2<<20 {
		t.Errorf("%d bytes were held at once", most.Load())
	}
	_, bytes := w.Taken()
	eq(t, "bytes held afterwards", bytes, int64(0))
	for _, m := range v.messages() {
		if !strings.Contains(m.body, "payload_base64") {
			t.Fatalf("a body of %d bytes", len(m.body))
		}
	}
}

// PU-50: a record that does not decode ends its own turn only, is charged, and parks at the ceiling; what stands before it is sent.
func TestAnUnreadableRecordIsContained(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	bad := hook("bad", "h", v.URL)
	bad.MaxAttempts = 2
	p.start("bad", bad)
	p.note("bad", 5)
	p.start("good", hook("good", "h", v.URL))
	p.note("good", 5)
	must(t, p.damage.Record("acme", "wf-bad", 4))
	w := p.pod()
	got := w.Drive()
	eq(t, "report", got, push.Report{Registrations: 2, Records: 9, Attempts: 9, Accepted: 9, Retries: 1, Faults: 1})
	eq(t, "attention", got.Attention(), true)
	row := p.get("bad", "h")
	eq(t, "cursor", row.NextSeq, int64(4))
	eq(t, "attempts", row.Attempts, 1)
	eq(t, "class", row.Last.Class, rendezvous.ClassFault)
	p.clock.Advance(time.Hour)
	got = w.Drive()
	eq(t, "report", got, push.Report{Registrations: 1, Parked: 1, Faults: 1})
	eq(t, "reason", p.get("bad", "h").Reason, rendezvous.ParkFault)
}

// PU-50: a turn that panics is a fault of its registration alone.
func TestAPanicIsContained(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("bad", hook("", "h", v.URL+"/bad"))
	p.start("good", hook("", "h", v.URL+"/good"))
	var inner *transport.Client
	w := p.pod(func(o *options) {
		o.Poster = panicking(func(ctx context.Context, r transport.Request) transport.Attempt {
			if strings.HasSuffix(r.URL, "/bad") {
				panic("broke")
			}
			return inner.Do(ctx, r)
		})
	})
	inner = w.client
	eq(t, "report", w.Drive(), push.Report{Registrations: 2, Records: 1, Attempts: 1, Accepted: 1, Retries: 1, Faults: 1})
	eq(t, "attempts", p.get("bad", "h").Attempts, 1)
}

type panicking func(ctx context.Context, r transport.Request) transport.Attempt

func (f panicking) Do(ctx context.Context, r transport.Request) transport.Attempt { return f(ctx, r) }

// PU-50: what another worker is there for is no reason to look; more due than places is.
func TestAttention(t *testing.T) {
	for what, want := range map[string]struct {
		r push.Report
		b bool
	}{
		"unserved": {push.Report{Unserved: 7}, false}, "saturated": {push.Report{Saturated: 1}, true}, "parked": {push.Report{Parked: 1}, true},
		"faults": {push.Report{Faults: 1}, true}, "retries": {push.Report{Retries: 9, Deferred: 3, Fenced: 1}, false},
	} {
		eq(t, what, want.r.Attention(), want.b)
	}
	p := newPlane(t)
	p.start("r", hook("r", "h", "http://127.0.0.1:1/"))
	w := p.pod(func(o *options) { o.Namespaces = []rendezvous.PushNamespace{rendezvous.PushOperator} })
	got := w.Drive()
	eq(t, "report", got, push.Report{Unserved: 1})
}

// A record of a kind that this build does not know is left to newer pods for a minute, uncharged, and never passed over.
func TestAnUnknownKindIsLeftToNewerPods(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 2)
	must(t, p.damage.Rewrite("acme", "wf-r", 2, "run.dreamt", 1, "{}"))
	w := p.pod()
	eq(t, "report", w.Drive(), push.Report{Registrations: 1, Records: 1, Attempts: 1, Accepted: 1, Deferred: 1})
	row := p.get("r", "h")
	eq(t, "cursor", row.NextSeq, int64(2))
	eq(t, "attempts", row.Attempts, 0)
	eq(t, "again in", row.NextAttemptAt.Sub(begin), time.Minute)
}

// PU-53: a pod whose clock is an hour off retries at the right instants and signs the right time.
func TestAWrongClockMovesNothing(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		p := newPlane(t)
		v := receive(t, answering(500))
		h := hook("r", "h", v.URL)
		h.Signing = []rendezvous.SigningKey{{Key: rendezvous.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}}
		p.start("r", h)
		w := p.pod(func(o *options) { o.Clock = clock.NewManual(begin.Add(off)) })
		w.Drive()
		eq(t, "next attempt", p.get("r", "h").NextAttemptAt, begin.Add(100*time.Millisecond))
		eq(t, "timestamp", v.messages()[0].timestamp, fmt.Sprint(begin.Unix()))
		eq(t, "logged", p.attempts("r", "h")[0].At, begin)
	}
}

// PU-70: an endless answer of 2xx is an acceptance, of which 16 KiB are read at most; a body that says it is gzip is not inflated.
func TestAnEndlessAnswerIsAnAcceptance(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(int, message, *http.Request) answer {
		return answer{status: 200, header: map[string]string{"Content-Encoding": "gzip"}, body: strings.Repeat("no gzip at all ", 1<<16)}
	})
	p.start("r", hook("r", "h", v.URL))
	w := p.pod(func(o *options) { o.LogAccepted = push.LogAll })
	eq(t, "accepted", w.Drive().Accepted, 1)
	logged := p.attempts("r", "h")[0]
	eq(t, "logged", len(logged.Response), 1024)
	eq(t, "as it came", strings.HasPrefix(logged.Response, "no gzip"), true)
}

func destination(name, url string) push.Destination {
	return push.Destination{
		Destination:  rendezvous.Destination{Name: name, Events: []string{rendezvous.AllEvents}},
		Registration: rendezvous.Registration{URL: url, Auth: rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "Bearer", Credentials: rendezvous.NewSecret("hush")}},
	}
}

// PU-94: an operator's destination may be a plain address of this machine, a caller's not; what it answers as it is configured now goes with each request.
func TestOperatorsDestinationsAreReadAtEachSend(t *testing.T) {
	v := receive(t, nil)
	p := newPlane(t, destination("audit", v.URL+"/audit"))
	p.start("r", hook("r", "h", v.URL+"/caller"))
	w := p.pod(func(o *options) { o.policy.DevLoopback = false })
	got := w.Drive()
	eq(t, "report", got, push.Report{Registrations: 2, Records: 1, Attempts: 2, Accepted: 1, Parked: 1})
	eq(t, "of the caller", p.get("r", "h").Reason, rendezvous.ParkNotHTTPS)
	eq(t, "received", v.messages()[0].path+" "+v.messages()[0].header.Get("Authorization"), "/audit Bearer hush")
	eq(t, "address in the row", strings.HasPrefix(p.get("r", "operator:audit").Last.Address, "127.0.0.1:"), true)

	must(t, p.destinations.Replace([]push.Destination{destination("audit", v.URL+"/moved")}, begin))
	p.note("r", 1)
	w.Drive()
	eq(t, "received after a change", v.messages()[1].path, "/moved")

	must(t, p.destinations.Replace(nil, begin))
	p.note("r", 1)
	got = w.Drive()
	eq(t, "report without it", got, push.Report{Registrations: 1, Parked: 1})
	row := p.get("r", "operator:audit")
	eq(t, "reason", row.Reason, rendezvous.ParkDestinationRemoved)
	eq(t, "cursor", row.NextSeq, int64(3))
	eq(t, "requests", len(v.messages()), 2)
}

// PU-94: an operator's private address that does not answer is silent; the addresses that are nobody's receiver are refused to operators too.
func TestOperatorsDestinationsAreGuardedToo(t *testing.T) {
	p := newPlane(t, destination("dead", "http://127.0.0.1:1/"), destination("metadata", "http://169.254.169.254/latest"))
	p.start("r")
	w := p.pod()
	w.Drive()
	dead, metadata := p.get("r", "operator:dead"), p.get("r", "operator:metadata")
	eq(t, "dead", dead.Last.Class, rendezvous.ClassSilent)
	eq(t, "metadata", string(metadata.Reason), string(rendezvous.ParkForbiddenLiteral))
	eq(t, "what it answered", metadata.Last.Response, "")
}

// PU-49: a notice leads to a claim of its run, whatever else is due, and is acknowledged; several of a run are one.
func TestANoticeLeadsToAClaim(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("", "h", v.URL))
	p.start("s", hook("", "h", v.URL))
	w := p.pod()
	n := messaging.PushNotice{Tenant: "acme", WorkflowID: "wf-s", RunID: "s", Head: 1}
	out := w.Noticed(t.Context(), []messaging.PushNotice{n, n, {Tenant: "acme", WorkflowID: "w", RunID: "unknown"}})
	for _, o := range out {
		eq(t, "outcome", o.String(), "ack")
	}
	w.Wait()
	same(t, "received", v.ids(), []string{"s/1/0"})
	eq(t, "registrations", w.Totals().Registrations, 1)
}

// PU-28: of several workers that look for one due row one makes one POST.
func TestManyWorkersMakeOnePost(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL))
	var pods []*pod
	for range 5 {
		pods = append(pods, p.pod())
	}
	for _, w := range pods {
		go w.Pass()
	}
	v.await(t)
	for _, w := range pods {
		for w.Totals().Registrations == 0 && p.get("r", "h").State != rendezvous.PushIdle {
			_ = clock.Sleep(t.Context(), clock.System, time.Millisecond)
		}
		w.Drive()
	}
	eq(t, "requests", len(v.messages()), 1)
}

// PU-2: a store that answers for one tenant only is refused at start-up.
func TestAStoreOfOneTenantIsRefused(t *testing.T) {
	p := newPlane(t)
	_, err := push.New(scoped{p.store}, nil, push.Deps{Destinations: p.destinations, Clock: p.clock}, push.Config{Owner: "x"})
	eq(t, "code", rendezvous.CodeOf(err), rendezvous.CodeConflict)
}

type scoped struct{ push.Store }

func (s scoped) Tenant(string) (store.Tenant, error) { return s.Store.Tenant("acme") }

// PU-81: a lease that a request could outlast is refused at start-up, by name.
func TestALeaseThatARequestCouldOutlastIsRefused(t *testing.T) {
	for lease, ok := range map[time.Duration]bool{40*time.Second - 1: false, 40 * time.Second: true} {
		err := push.Config{Owner: "x", Lease: lease}.Validate()
		eq(t, lease.String(), err == nil, ok)
		if err != nil {
			eq(t, "field", rendezvous.AsError(err).Details["field"], any("push-lease"))
		}
	}
}

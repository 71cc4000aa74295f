package push_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/push/oauth"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 60 * time.Second // only a failing test waits so long

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// plane is a store in memory on a clock that stands still, with runs and their registrations.
type plane struct {
	t            *testing.T
	clock        *clock.Manual // the store's
	store        *engine.Engine
	faults       *fault.Backend
	damage       memory.Damage
	tenant       store.Tenant
	destinations *push.Destinations
	heads        map[string]int64
}

func newPlane(t *testing.T, destinations ...push.Destination) *plane {
	t.Helper()
	p := &plane{t: t, clock: clock.NewManual(begin), heads: map[string]int64{}}
	known := make([]rendezvous.Destination, len(destinations))
	for i, d := range destinations {
		known[i] = d.Destination
	}
	rows := memory.Open(p.clock, 8)
	p.damage, p.faults = rows.Damage(), fault.Wrap(rows)
	var err error
	p.store, err = engine.New(p.faults, engine.Options{Clock: p.clock, Destinations: known})
	must(t, err)
	t.Cleanup(func() { must(t, p.store.Close()) })
	p.destinations, err = push.NewDestinations(destinations, begin)
	must(t, err)
	p.tenant, err = p.store.Tenant("acme")
	must(t, err)
	return p
}

// start starts a run with registrations of callers.
func (p *plane) start(run string, hooks ...rendezvous.Registration) {
	p.t.Helper()
	s := store.Start{WorkflowID: "wf-" + run, RunID: run, Type: "order"}
	for _, h := range hooks {
		s.Push = append(s.Push, store.PutPush{Registration: h})
	}
	_, err := p.tenant.StartRun(p.t.Context(), s, time.Time{})
	must(p.t, err)
	p.heads[run] = 1
}

// note writes n notes to a run's history.
func (p *plane) note(run string, n int) {
	p.t.Helper()
	for n > 0 {
		page := min(n, 500)
		records := make([]rendezvous.Record, page)
		for i := range records {
			records[i] = rendezvous.Record{RunID: run, Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "n"})}
		}
		got, err := p.tenant.Append(p.t.Context(), store.Append{RunID: run, ExpectedSeq: p.heads[run], BatchID: fmt.Sprint("b-", p.heads[run]), Records: records}, time.Time{})
		must(p.t, err)
		p.heads[run], n = got.Head, n-page
	}
}

// conclude ends a run with a result.
func (p *plane) conclude(run string) {
	p.t.Helper()
	got, err := p.tenant.Conclude(p.t.Context(), store.Conclusion{
		RunID: run, ExpectedSeq: p.heads[run], Outcome: rendezvous.StatusCompleted, Result: []byte(`{"sum":12}`), ContentType: "application/json",
	}, time.Time{})
	must(p.t, err)
	p.heads[run] = got.Seq
}

// get is a registration's row; nil when it is gone.
func (p *plane) get(run, id string) *store.Push {
	p.t.Helper()
	got, err := p.tenant.GetPush(p.t.Context(), store.PushKey{RunID: run, ID: id})
	must(p.t, err)
	return got
}

// attempts is a registration's log, oldest first.
func (p *plane) attempts(run, id string) []rendezvous.PushAttempt {
	p.t.Helper()
	page, err := p.tenant.PushAttempts(p.t.Context(), store.PushKey{RunID: run, ID: id}, 1000, 0)
	must(p.t, err)
	var list []rendezvous.PushAttempt
	for i := len(page.Attempts) - 1; i >= 0; i-- {
		list = append(list, page.Attempts[i])
	}
	return list
}

// hook is a registration that takes everything.
func hook(run, id, url string) rendezvous.Registration {
	return rendezvous.Registration{ID: id, URL: url, Events: []string{rendezvous.AllEvents}}
}

// pod is a worker, on a clock of its own where a test gives it one.
type pod struct {
	*push.Worker
	client *transport.Client
	log    *bytes.Buffer
}

// options of a pod; zero fields are a test's defaults.
type options struct {
	push.Config
	push.Deps
	stream push.Stream
	policy target.Settings
	store  push.Store
}

// pod makes a worker that a test drives; it is stopped with the test.
func (p *plane) pod(change ...func(o *options)) *pod {
	p.t.Helper()
	made := &pod{log: &bytes.Buffer{}}
	o := options{
		Config: push.Config{Owner: "pod/" + strconv.Itoa(p.pods()), Version: "1.2.3", Source: "urn:plane"},
		Deps: push.Deps{
			Destinations: p.destinations, Random: func() float64 { return 0 }, Clock: p.clock, Log: slog.New(slog.NewJSONHandler(&locked{to: made.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Tracer: tracenoop.NewTracerProvider().Tracer(""), Meter: metricnoop.NewMeterProvider().Meter(""),
		},
		policy: target.Settings{CallerHosts: []string{"127.0.0.1"}, DevLoopback: true}, store: p.store,
	}
	for _, c := range change {
		c(&o)
	}
	policy, err := target.New(o.policy)
	must(p.t, err)
	made.client = transport.New(transport.Settings{Policy: policy, Clock: o.Clock, Resolver: here{}})
	if o.Poster == nil {
		o.Poster = made.client
	}
	o.Tokens = oauth.New(made.client, o.Clock, o.Version)
	made.Worker, err = push.New(o.store, o.stream, o.Deps, o.Config)
	must(p.t, err)
	p.t.Cleanup(func() {
		ctx, cancel := clock.WithTimeout(context.Background(), clock.System, patience)
		defer cancel()
		if err := made.Stop(ctx); err != nil {
			p.t.Errorf("stop the worker: %v", err)
		}
		made.client.Close()
		if p.t.Failed() {
			lines := bytes.Split(made.log.Bytes(), []byte("\n"))
			p.t.Logf("the end of the log:\n%s", bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
		}
	})
	return made
}

// here is a DNS in which every name stands for this machine.
type here struct{}

func (here) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

var podCount struct {
	sync.Mutex
	n int
}

func (p *plane) pods() int {
	podCount.Lock()
	defer podCount.Unlock()
	podCount.n++
	return podCount.n
}

// locked is a writer for many goroutines.
type locked struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

// message is a request as a receiver got it.
type message struct {
	id, timestamp, signature, attempt, path string
	header                                  http.Header
	body                                    string
}

// receiver answers POSTs as a script says, which may block, and remembers them in the order they came.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []message
	flying int
	most   int // in flight at once
	seen   chan message
}

// answer is what a script says.
type answer struct {
	status int
	header map[string]string
	body   string
}

// receive makes a receiver. script gets the number of the request, from 1; nil answers 204.
func receive(t *testing.T, script func(n int, m message, r *http.Request) answer) *receiver {
	t.Helper()
	return receiveBy(t, false, script)
}

// receiveBy is receive by TLS, or not.
func receiveBy(t *testing.T, secure bool, script func(n int, m message, r *http.Request) answer) *receiver {
	t.Helper()
	v := &receiver{seen: make(chan message, 100_000)}
	v.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := message{
			id: r.Header.Get("webhook-id"), timestamp: r.Header.Get("webhook-timestamp"), signature: r.Header.Get("webhook-signature"),
			attempt: r.Header.Get("rendezvous-attempt"), path: r.URL.Path, header: r.Header, body: string(body),
		}
		v.mu.Lock()
		v.got = append(v.got, m)
		n := len(v.got)
		v.flying++
		v.most = max(v.most, v.flying)
		v.mu.Unlock()
		v.seen <- m
		a := answer{status: 204}
		if script != nil {
			a = script(n, m, r)
		}
		v.mu.Lock()
		v.flying--
		v.mu.Unlock()
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	v.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	if secure {
		v.StartTLS()
	} else {
		v.Start()
	}
	t.Cleanup(func() { v.CloseClientConnections(); v.Close() })
	return v
}

// authorities are who vouch for a receiver that is secure.
func (v *receiver) authorities() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.Certificate().Raw}))
}

func (v *receiver) port() int { return v.Listener.Addr().(*net.TCPAddr).Port }

// answering answers every request alike.
func answering(status int) func(int, message, *http.Request) answer {
	return func(int, message, *http.Request) answer { return answer{status: status} }
}

func (v *receiver) messages() []message {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]message(nil), v.got...)
}

// last is the last message that came.
func (v *receiver) last() message {
	got := v.messages()
	return got[len(got)-1]
}

// ids are the messages' ids in the order they came.
func (v *receiver) ids() []string {
	var ids []string
	for _, m := range v.messages() {
		ids = append(ids, m.id)
	}
	return ids
}

// await is the next message that comes.
func (v *receiver) await(t *testing.T) message {
	t.Helper()
	select {
	case m := <-v.seen:
		return m
	case <-timeout(t):
		t.Fatal("no message comes")
		return message{}
	}
}

func timeout(t *testing.T) <-chan time.Time {
	timer := time.NewTimer(patience)
	t.Cleanup(func() { timer.Stop() })
	return timer.C
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eq[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

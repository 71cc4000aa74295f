package client_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/delivery"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/ingest"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/notify"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/sweep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to happen; only a failing test waits so long.
const patience = 60 * time.Second

// settings of a plane; zero fields take the usual.
type settings struct {
	clock  clock.Clock  // the store's and the API's
	tracer trace.Tracer // of every worker
	tokens *api.Tokens
	listen bool // NATS over a socket, for clients with a connection of their own
	deaf   bool // ingest does not take from INBOX until the test starts it
}

// plane is everything a client meets: doors, workers and store, in this process.
type plane struct {
	t      *testing.T
	store  store.Store
	broker *messaging.Embedded
	conn   *messaging.Conn
	inbox  *ingest.Inbox
	sender *notify.Sender
	door   *httptest.Server
	faults *faults
	log    *slog.Logger
}

func newPlane(t *testing.T, s settings) *plane {
	t.Helper()
	if s.clock == nil {
		s.clock = clock.System
	}
	if s.tracer == nil {
		s.tracer = tracenoop.NewTracerProvider().Tracer("test")
	}
	p := &plane{t: t, faults: &faults{}, log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	st, err := engine.New(memory.Open(s.clock, rendezvous.DefaultShards), engine.Options{})
	must(t, err)
	p.store = st
	cfg := messaging.DefaultConfig()
	cfg.Embedded.StoreDir, cfg.Embedded.NoSync = t.TempDir(), true
	if s.listen {
		cfg.Embedded.Listen = "127.0.0.1:0"
	}
	quiet := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p.broker, err = messaging.StartEmbedded(cfg, quiet)
	must(t, err)
	p.conn, err = messaging.Connect(cfg, messaging.Deps{Log: quiet, InProcess: p.broker})
	must(t, err)
	must(t, p.conn.Provision(t.Context()))

	meter := metricnoop.NewMeterProvider().Meter("test")
	sender, err := notify.New(p.conn, quiet, s.tracer, meter)
	must(t, err)
	p.sender = sender
	doorMetrics, err := ingest.NewMetrics(meter)
	must(t, err)
	door := ingest.NewDoor(st, sender, group.Config{}, s.tracer, doorMetrics)
	p.inbox = ingest.NewInbox(door, p.conn, quiet)
	if !s.deaf {
		must(t, p.inbox.Start())
	}
	deps := delivery.Deps{Sender: sender, Clock: clock.System, Log: quiet, Tracer: s.tracer, Meter: meter}
	worker, err := delivery.New(st, p.conn, deps)
	must(t, err)
	passes, err := sweep.New(st, everything{st}, p.conn, sweep.Deps{Sender: sender, Clock: clock.System, Log: quiet, Meter: meter},
		sweep.Config{Tick: 100 * time.Millisecond, Woken: 100 * time.Millisecond})
	must(t, err)
	passes.Adopt([]store.ShardEpoch{{Shard: 0, Epoch: 1}}) // its handle shows it all of them
	must(t, passes.Start())
	must(t, worker.Start(passes.Kick))
	targets, err := target.New(target.Settings{CallerHosts: []string{"example.org"}})
	must(t, err)
	service, err := api.New(api.Config{
		Targets: targets, Store: st, Door: door, Sender: sender, Clock: s.clock, Log: quiet, Tracer: s.tracer, Meter: meter, Version: "test", Kind: "memory",
	})
	must(t, err)
	requests, err := service.ServeNATS(p.conn.ConsumeConn(), messaging.DefaultPrefix, "0.0.1")
	must(t, err)
	if s.tokens == nil {
		s.tokens = &api.Tokens{}
	}
	p.door = httptest.NewServer(p.faults.before(service.HTTP(s.tokens)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		p.door.Close()
		requests.Stop(ctx)
		must(t, p.inbox.Stop(ctx))
		must(t, worker.Stop(ctx))
		must(t, passes.Stop(ctx))
		must(t, service.Stop(ctx))
		must(t, door.Stop(ctx))
		sender.Stop(ctx)
		must(t, p.conn.Drain(ctx))
		must(t, p.broker.Shutdown(ctx))
		must(t, st.Close())
	})
	return p
}

// everything is the store as a sweeper sees it that owns every shard.
type everything struct{ store.Store }

func (everything) IsCurrentOwner(int) bool { return true }

// fire records what is due, as a timer-worker that owns every shard does, and answers how much that was.
func (p *plane) fire() int {
	p.t.Helper()
	pod, err := p.store.PoolHandle(store.PoolTimer, "test/"+client.NewID())
	must(p.t, err)
	all := make([]int, p.store.Shards())
	for i := range all {
		all[i] = i
	}
	won, err := pod.AcquireOwnedShards(p.t.Context(), all, store.MinShardTTL)
	must(p.t, err)
	var owned []store.ShardEpoch
	for _, s := range won.Won {
		owned = append(owned, store.ShardEpoch{Shard: s.Shard, Epoch: s.Epoch})
	}
	page, err := pod.FireDueTimers(p.t.Context(), owned, 0)
	must(p.t, err)
	must(p.t, pod.ReleaseOwnedShards(p.t.Context(), owned))
	p.sender.Try(p.t.Context(), page.Notices)
	return len(page.Fires)
}

// dial makes a client: over HTTP with NATS beside it, or over NATS alone.
func (p *plane) dial(overNATS bool, change ...func(*client.Options)) *client.Client {
	p.t.Helper()
	o := client.Options{NATS: p.conn.PublishConn(), URL: p.door.URL, Log: p.log, Retry: client.Retry{First: time.Millisecond, Most: 20 * time.Millisecond}}
	if overNATS {
		o.URL = ""
	}
	for _, c := range change {
		c(&o)
	}
	c, err := client.New(o)
	must(p.t, err)
	p.t.Cleanup(c.Close)
	return c
}

// execute starts an executor and stops it before the plane goes. Its drives arrive on the channel.
func (p *plane) execute(c *client.Client, h client.Handler, change ...func(*client.ExecutorOptions)) (*client.Executor, *drives) {
	p.t.Helper()
	driven := make(chan client.Driven, 10_000)
	o := client.ExecutorOptions{Handler: h, Name: "test", Driven: func(d client.Driven) { driven <- d }}
	for _, f := range change {
		f(&o)
	}
	e, err := c.NewExecutor(o)
	must(p.t, err)
	must(p.t, e.Start())
	p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Stop(ctx); err != nil && ctx.Err() != nil {
			p.t.Errorf("the executor did not drain: %v", err)
		}
	})
	return e, &drives{c: driven}
}

// faults stand before the HTTP door.
type faults struct {
	mu   sync.Mutex
	plan func(verb string, n int) fault // n counts the verb's requests from 1
	seen map[string]int
}

type fault int

const (
	none fault = iota
	loseReply
	refuse503
)

func (f *faults) set(plan func(verb string, n int) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.seen = plan, map[string]int{}
}

func (f *faults) next(verb string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan == nil {
		return none
	}
	f.seen[verb]++
	return f.plan(verb, f.seen[verb])
}

func (f *faults) count(verb string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[verb]
}

func (f *faults) before(door http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch f.next(path.Base(r.URL.Path)) {
		case loseReply:
			door.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the connection breaks after the work is done
		case refuse503:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		door.ServeHTTP(w, r)
	})
}

// testWriter keeps logs with their test, as long as it runs.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Logf("%s", b)
	}
	return len(b), nil
}

var _ io.Writer = testWriter{}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%T)", err, err)
	}
}

// ok is the value of a call that must succeed.
func ok[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func eq[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// receive waits for what a test's code under test sends.
func receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// drives are what an executor's leases came to, in order of arrival.
type drives struct {
	c    <-chan client.Driven
	kept []client.Driven
}

// until waits for a drive of the run with that outcome; others are kept for later.
func until(t testing.TB, d *drives, run, outcome string) client.Driven {
	t.Helper()
	wanted := func(x client.Driven) bool { return x.RunID == run && x.Outcome == outcome }
	if i := slices.IndexFunc(d.kept, wanted); i >= 0 {
		found := d.kept[i]
		d.kept = slices.Delete(d.kept, i, i+1)
		return found
	}
	for {
		x := receive(t, fmt.Sprintf("%s of run %s", outcome, run), d.c)
		if wanted(x) {
			return x
		}
		d.kept = append(d.kept, x)
	}
}

func key(value string) rendezvous.Key { return rendezvous.Key{Namespace: "order", Value: value} }

// both runs a test over each transport.
func both(t *testing.T, test func(t *testing.T, overNATS bool)) {
	t.Run("http", func(t *testing.T) { test(t, false) })
	t.Run("nats", func(t *testing.T) { test(t, true) })
}

package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// The server leaves the store of an atomic batch running when it is shut down in the middle of one, as these tests do to it.
func TestMain(m *testing.M) {
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(server+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction(server+".(*msgBlock).flushLoop"),
		goleak.IgnoreAnyFunction(server+"/ats.Register.func1"),
	)
}

// patience is how long a test waits for something that has to happen; only a failing test waits so long.
const patience = 60 * time.Second

// plane is a broker with its directory and one process's connections.
type plane struct {
	t      *testing.T
	cfg    messaging.Config
	log    *slog.Logger
	broker *messaging.Embedded
	conn   *messaging.Conn
}

// newPlane starts a broker in a directory of its own and connects; change adjusts the configuration before.
func newPlane(t *testing.T, change ...func(*messaging.Config)) *plane {
	t.Helper()
	cfg := messaging.DefaultConfig()
	cfg.Name = t.Name()
	cfg.Embedded.StoreDir = t.TempDir()
	cfg.Embedded.NoSync = true           // speed; some tests sync
	cfg.PublishTimeout = 2 * time.Second // a message sent to a stream that goes away at that moment is never answered
	for _, c := range change {
		c(&cfg)
	}
	p := &plane{t: t, cfg: cfg, log: testLog(t)}
	broker, err := messaging.StartEmbedded(cfg, p.log)
	must(t, err)
	p.broker = broker
	p.conn = p.connect()
	t.Cleanup(func() { p.down() })
	return p
}

// connect makes another process's connections to the same broker.
func (p *plane) connect() *messaging.Conn {
	p.t.Helper()
	conn, err := messaging.Connect(p.cfg, messaging.Deps{Log: p.log, InProcess: p.broker})
	must(p.t, err)
	return conn
}

// outside makes the plane's own connection one over the listener, as of a worker in a process of its own.
func (p *plane) outside() {
	p.t.Helper()
	cfg := messaging.DefaultConfig()
	cfg.URL = p.broker.URL()
	conn, err := messaging.Connect(cfg, messaging.Deps{Log: p.log})
	must(p.t, err)
	must(p.t, p.conn.Drain(p.t.Context()))
	p.conn = conn
}

func (p *plane) down() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.conn.Drain(ctx); err != nil {
		p.t.Errorf("drain: %v", err)
	}
	if err := p.broker.Shutdown(ctx); err != nil {
		p.t.Errorf("shutdown: %v", err)
	}
}

func (p *plane) provision() {
	p.t.Helper()
	p.eventually("provisioned", func() bool { // as a worker does it: an answer that takes too long is asked for again
		err := p.conn.Provision(p.t.Context())
		if err != nil {
			p.t.Logf("provision: %v (because of: %v)", err, errors.Unwrap(err))
		}
		return err == nil
	})
}

// restart stops the broker, does something while it is down, and starts it again.
func (p *plane) restart(meanwhile func()) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must(p.t, p.broker.Shutdown(ctx))
	meanwhile()
	must(p.t, p.broker.Start())
}

// wipe removes everything the broker has stored.
func (p *plane) wipe() {
	p.t.Helper()
	must(p.t, os.RemoveAll(p.cfg.Embedded.StoreDir))
}

func (p *plane) deleteStreams() {
	p.t.Helper()
	for _, s := range p.streams() {
		if err := p.conn.JetStream().DeleteStream(p.t.Context(), s); err != nil {
			p.t.Logf("delete %s: %v", s, err) // somebody may be making it right now
		}
	}
}

func (p *plane) deleteConsumers() {
	p.t.Helper()
	n := p.conn.Names()
	del := func(stream, durable string) {
		if err := p.conn.JetStream().DeleteConsumer(p.t.Context(), stream, durable); err != nil {
			p.t.Logf("delete %s/%s: %v", stream, durable, err)
		}
	}
	del(n.Inbox(), n.InboxDurable())
	for i := range messaging.Partitions {
		del(n.Match(), n.MatchDurable(i))
	}
}

func (p *plane) streams() []string {
	n := p.conn.Names()
	return []string{n.Inbox(), n.Match(), n.Resume(), n.Push(), n.Rejected(), n.Advisory()}
}

func (p *plane) stream(name string) *jetstream.StreamInfo {
	p.t.Helper()
	s, err := p.conn.JetStream().Stream(p.t.Context(), name)
	must(p.t, err)
	return s.CachedInfo()
}

func (p *plane) consumer(stream, durable string) *jetstream.ConsumerInfo {
	p.t.Helper()
	c, err := p.conn.JetStream().Consumer(p.t.Context(), stream, durable)
	must(p.t, err)
	return c.CachedInfo()
}

// send publishes an INBOX message and returns when the broker has acknowledged it, trying again as a producer does.
func (p *plane) send(tenant, tail string, h nats.Header, body []byte) {
	p.t.Helper()
	m := &nats.Msg{Subject: p.conn.Names().InboxSubject(tenant, tail), Header: h, Data: body}
	p.eventually("event sent", func() bool {
		_, err := p.conn.JetStream().PublishMsg(p.t.Context(), m)
		return err == nil
	})
}

// publish sends notices until they are acknowledged.
func (p *plane) publish(notices ...messaging.Notice) {
	p.t.Helper()
	p.eventually("notices acknowledged", func() bool {
		err := p.conn.Publish(p.t.Context(), notices)
		if err != nil {
			p.t.Logf("publish: %v", err)
		}
		return err == nil
	})
}

// eventually asks the broker, which signals nothing, again and again.
func (p *plane) eventually(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("did not happen: %s", what)
		}
	}
}

func event(i int) messaging.MatchNotice {
	return messaging.MatchNotice{
		Tenant: "acme", Source: "urn:test", ID: fmt.Sprintf("e-%d", i),
		Key: rendezvous.Key{Namespace: "order", Value: fmt.Sprint(i)},
	}
}

func events(from, to int) []messaging.Notice {
	var ns []messaging.Notice
	for i := from; i < to; i++ {
		ns = append(ns, event(i))
	}
	return ns
}

// seen counts what a handler was given, by name.
type seen struct {
	mu    sync.Mutex
	count map[string]int
	more  chan struct{}
}

func newSeen() *seen { return &seen{count: map[string]int{}, more: make(chan struct{}, 1)} }

func (s *seen) add(name string) {
	s.mu.Lock()
	s.count[name]++
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *seen) of(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[name]
}

func (s *seen) names() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.count)
}

// wait returns when ok holds, looking whenever something was seen.
func (s *seen) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(patience)
	for !ok() {
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("did not happen: %s (%d names seen)", what, s.names())
		}
	}
}

func (s *seen) matchHandler() func(context.Context, []messaging.MatchNotice) []messaging.Outcome {
	return func(_ context.Context, batch []messaging.MatchNotice) []messaging.Outcome {
		return all(batch, func(n messaging.MatchNotice) messaging.Outcome {
			s.add(n.ID)
			return messaging.Ack()
		})
	}
}

// all maps a batch to its outcomes.
func all[T any](batch []T, f func(T) messaging.Outcome) []messaging.Outcome {
	out := make([]messaging.Outcome, len(batch))
	for i, m := range batch {
		out[i] = f(m)
	}
	return out
}

func stop(t *testing.T, c *messaging.Consumption) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (because of: %v)", err, errors.Unwrap(err))
	}
}

func testLog(t testing.TB) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

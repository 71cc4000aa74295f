package ingest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/ingest"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/open"
)

func TestMain(m *testing.M) {
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(server+".(*fileStore).flushStreamStateLoop"), // the server leaves these behind when it is shut down
		goleak.IgnoreAnyFunction(server+".(*msgBlock).flushLoop"),
		goleak.IgnoreAnyFunction(server+"/ats.Register.func1"),
	)
}

// inbox is a stream door over a store in memory, with the stream played by the test.
type inbox struct {
	t      *testing.T
	store  store.Store
	faults *fault.Backend
	sender *sender
	stream *stream
	door   *ingest.Door
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{t: t, sender: &sender{}, stream: &stream{}}
	var err error
	in.store, err = open.Open(t.Context(), "memory:", open.Options{Clock: clock.System, Wrap: func(b backend.Backend) backend.Backend {
		in.faults = fault.Wrap(b)
		return in.faults
	}})
	must(t, err)
	m, err := ingest.NewMetrics(metricnoop.Meter{})
	must(t, err)
	in.door = ingest.NewDoor(in.store, in.sender, group.Config{}, tracenoop.Tracer{}, m)
	worker := ingest.NewInbox(in.door, in.stream, slog.New(slog.NewTextHandler(io.Discard, nil)))
	must(t, worker.Start())
	t.Cleanup(func() {
		must(t, worker.Stop(context.Background()))
		must(t, in.door.Stop(context.Background()))
		must(t, in.store.Close())
	})
	return in
}

// deliver hands messages to the worker and answers the words of its outcomes.
func (in *inbox) deliver(batch ...messaging.Msg) []string {
	in.t.Helper()
	outcomes := in.stream.handle(in.t.Context(), batch)
	if len(outcomes) != len(batch) {
		in.t.Fatalf("%d outcomes of %d messages", len(outcomes), len(batch))
	}
	words := make([]string, len(outcomes))
	for i, o := range outcomes {
		words[i] = o.String()
	}
	return words
}

// expect delivers one message and checks its outcome.
func (in *inbox) expect(want string, m messaging.Msg) {
	in.t.Helper()
	if got := in.deliver(m)[0]; got != want {
		in.t.Errorf("outcome %s, want %s", got, want)
	}
}

// state is the stored state of an event, "" of one that is not known.
func (in *inbox) state(source, id string) rendezvous.EventState {
	in.t.Helper()
	tenant, err := in.store.Tenant("acme")
	must(in.t, err)
	e, err := tenant.LookupEvent(in.t.Context(), rendezvous.EventID{Source: source, ID: id}, false)
	if errors.Is(err, rendezvous.ErrNotFound) {
		return ""
	}
	must(in.t, err)
	return e.State
}

// stream is INBOX and REJECTED as the test plays them.
type stream struct {
	handle func(ctx context.Context, batch []messaging.Msg) []messaging.Outcome

	mu       sync.Mutex
	rejected []messaging.Rejected
	fail     error
}

func (s *stream) ConsumeInbox(_ messaging.ConsumeOptions, h func(ctx context.Context, batch []messaging.Msg) []messaging.Outcome) (*messaging.Consumption, error) {
	s.handle = h
	return nil, nil
}

func (s *stream) RejectBatch(_ context.Context, rs []messaging.Rejected) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.rejected = append(s.rejected, rs...)
	return nil
}

// sender notes what is to be noticed, and fails or waits when told to.
type sender struct {
	mu   sync.Mutex
	sent []store.Notices
	fail error
	hold chan struct{} // nil: none waits
	bug  bool          // panics
}

func (s *sender) Send(_ context.Context, n store.Notices) error {
	s.mu.Lock()
	fail, hold, bug := s.fail, s.hold, s.bug
	s.mu.Unlock()
	if bug {
		panic("a bug")
	}
	if hold != nil {
		<-hold
	}
	if fail != nil {
		return fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, n)
	return nil
}

func (s *sender) Try(ctx context.Context, n store.Notices) { _ = s.Send(ctx, n) }

// events are the identities noticed so far.
func (s *sender) events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, n := range s.sent {
		for _, e := range n.Events {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// message is a message of INBOX as a producer sent it: header names and values in turn, then its place.
func message(seq uint64, body string, header ...string) messaging.Msg {
	h := nats.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h[header[i]] = []string{header[i+1]}
	}
	return messaging.Msg{Subject: "rdv.acme.in.x", Tenant: "acme", Header: h, Data: []byte(body), Stream: "rdv_INBOX", Sequence: seq, Delivered: 1}
}

// structured is a message that holds one event in JSON.
func structured(seq uint64, id string, members ...string) messaging.Msg {
	return message(seq, event(id, members...), "Content-Type", "application/cloudevents+json")
}

// batched is a message that holds several.
func batched(seq uint64, body string) messaging.Msg {
	return message(seq, body, "content-type", "application/cloudevents-batch+json; charset=utf-8")
}

// event is one event in JSON; members are added to it.
func event(id string, members ...string) string {
	text := `{"specversion":"1.0","source":"urn:a","type":"t","id":"` + id + `"`
	for _, m := range members {
		text += "," + m
	}
	return text + "}"
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nop lets a transaction pass a point where its passing is counted.
func nop(context.Context) error { return nil }

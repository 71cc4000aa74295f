package node_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/telemetry"
	"github.com/rendezvous-events/rendezvous/wire"
)

func TestMain(m *testing.M) {
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(pgtest.WithCluster(m),
		goleak.IgnoreAnyFunction(server+".(*fileStore).flushStreamStateLoop"), // the server leaves these behind when it is shut down
		goleak.IgnoreAnyFunction(server+".(*msgBlock).flushLoop"),
		goleak.IgnoreAnyFunction(server+"/ats.Register.func1"),
	)
}

const (
	secretToken   = "very-secret-bearer-token"
	secretPayload = "very-secret-payload"
)

// traced is a node whose spans a receiver takes, and a client of it whose spans it takes too.
type traced struct {
	t        *testing.T
	receiver *receiver
	client   *client.Client
	driven   chan client.Driven
}

func newTraced(t *testing.T) *traced {
	t.Helper()
	tr := &traced{t: t, receiver: newReceiver(t), driven: make(chan client.Driven, 100)}
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	must(t, os.WriteFile(tokens, []byte(`{"tokens":[{"token":"`+secretToken+`","name":"test","role":"operator","tenants":["acme"]}]}`), 0o600))
	n := nodetest.Start(t, func(c *node.Config) { c.Ingest.Tokens = tokens })
	own, err := telemetry.Start(t.Context(), "business", "1.0.0")
	must(t, err)
	t.Cleanup(func() { must(t, own.Stop(context.Background())) })
	tr.client, err = client.New(client.Options{Tenant: "acme", URL: "http://" + n.HTTP, Token: secretToken, NATSURL: n.NATSURL, Tracer: own.Tracer})
	must(t, err)
	t.Cleanup(tr.client.Close)
	e, err := tr.client.NewExecutor(client.ExecutorOptions{Queue: "orders", Driven: func(d client.Driven) { tr.driven <- d }, Handler: func(ctx context.Context, run *client.Run) error {
		_, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", run.WorkflowID()))
		return err
	}})
	must(t, err)
	must(t, e.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), nodetest.Patience)
		defer cancel()
		must(t, e.Stop(ctx))
	})
	return tr
}

func (tr *traced) start(id string) {
	tr.t.Helper()
	_, err := tr.client.StartRun(tr.t.Context(), wire.StartRun{WorkflowID: id, RunID: "run-of-" + id, Type: "order", Queue: "orders"})
	must(tr.t, err)
}

func payment(id string) rendezvous.Event {
	return rendezvous.Event{
		EventID: rendezvous.EventID{Source: "urn:bank", ID: "p-" + id}, Type: "payment.received", Keys: []rendezvous.Key{{Namespace: "order", Value: id}},
		ContentType: "application/json", Payload: []byte(`"` + secretPayload + `"`),
	}
}

// until waits for a drive with that outcome.
func (tr *traced) until(id, outcome string) {
	tr.t.Helper()
	for {
		select {
		case d := <-tr.driven:
			if d.WorkflowID == id && d.Outcome == outcome {
				return
			}
		case <-time.After(nodetest.Patience):
			tr.t.Fatalf("%s was not driven to %s", id, outcome)
		}
	}
}

// span waits for the one span of that name in a trace (nil: any) that carries an attribute.
func (tr *traced) span(trace []byte, name, key, value string) *tracepb.Span {
	tr.t.Helper()
	for end := time.Now().Add(nodetest.Patience); ; clock.Sleep(context.Background(), clock.System, 10*time.Millisecond) {
		found := tr.receiver.find(name, func(s *tracepb.Span) bool {
			return (trace == nil || bytes.Equal(s.TraceId, trace)) && (key == "" || attribute(s, key) == value)
		})
		if len(found) == 1 {
			return found[0]
		}
		if len(found) > 1 || time.Now().After(end) {
			tr.t.Fatalf("%d spans %s with %s = %s", len(found), name, key, value)
		}
	}
}

// check compares a span with what the contract says of it.
func (tr *traced) check(s *tracepb.Span, service string, kind tracepb.Span_SpanKind, parent *tracepb.Span, links []*tracepb.Span, attributes map[string]string) {
	tr.t.Helper()
	if got := tr.receiver.service(s); got != service {
		tr.t.Errorf("%s is of service %s, want %s", s.Name, got, service)
	}
	if s.Kind != kind {
		tr.t.Errorf("%s is of kind %s, want %s", s.Name, s.Kind, kind)
	}
	if parent != nil && !bytes.Equal(s.ParentSpanId, parent.SpanId) {
		tr.t.Errorf("%s is not below %s", s.Name, parent.Name)
	}
	if len(s.Links) != len(links) {
		tr.t.Errorf("%s has %d links, want %d", s.Name, len(s.Links), len(links))
	}
	for _, l := range links {
		linked := false
		for _, got := range s.Links {
			linked = linked || bytes.Equal(got.SpanId, l.SpanId) && bytes.Equal(got.TraceId, l.TraceId)
		}
		if !linked {
			tr.t.Errorf("%s is not linked to %s", s.Name, l.Name)
		}
	}
	for k, want := range attributes {
		if got := attribute(s, k); got != want {
			tr.t.Errorf("%s has %s = %q, want %q", s.Name, k, got, want)
		}
	}
}

func (tr *traced) noSecrets() {
	tr.t.Helper()
	for _, secret := range []string{secretToken, secretPayload} {
		if tr.receiver.holds(secret) {
			tr.t.Errorf("%s was exported", secret)
		}
	}
}

const (
	producer = tracepb.Span_SPAN_KIND_PRODUCER
	consumer = tracepb.Span_SPAN_KIND_CONSUMER
	server   = tracepb.Span_SPAN_KIND_SERVER
	internal = tracepb.Span_SPAN_KIND_INTERNAL
)

// Design section 8: one trace from the producer's publish through buffer, match and answer to the resume, which is linked to both sides.
func TestOneTraceFromTheProducerToTheResume(t *testing.T) {
	tr := newTraced(t)
	tr.start("order-1")
	tr.until("order-1", "suspended")
	must(t, tr.client.Publish(t.Context(), payment("order-1")))
	tr.until("order-1", "concluded")

	ids := map[string]string{
		"rendezvous.tenant": "acme", "rendezvous.event.source": "urn:bank", "rendezvous.event.id": "p-order-1",
	}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for k, v := range ids {
			all[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	send := tr.span(nil, "send inbox", "messaging.destination.name", "inbox")
	tr.check(send, "business", producer, nil, nil, map[string]string{"messaging.system": "nats", "messaging.operation.type": "send", "rendezvous.tenant": "acme"})
	one := send.TraceId
	buffer := tr.span(one, "buffer", "", "")
	tr.check(buffer, "rendezvous-test", consumer, send, nil, with("messaging.system", "nats", "messaging.operation.type", "process",
		"messaging.destination.name", "inbox", "rendezvous.event.type", "payment.received", "rendezvous.outcome", "new"))
	wait := tr.serverSpan("waits.register")
	match := tr.span(one, "match", "", "")
	tr.check(match, "rendezvous-test", consumer, buffer, []*tracepb.Span{wait}, with("messaging.system", "nats", "messaging.operation.type", "process",
		"messaging.destination.name", "match", "rendezvous.run_id", "run-of-order-1", "rendezvous.effect", "payment", "rendezvous.outcome", "delivered"))
	answer := tr.span(one, "answer", "", "")
	tr.check(answer, "rendezvous-test", internal, match, nil, with("rendezvous.workflow_id", "order-1", "rendezvous.run_id", "run-of-order-1", "rendezvous.effect", "payment"))
	notice := tr.span(one, "send resume", "", "")
	tr.check(notice, "rendezvous-test", producer, buffer, []*tracepb.Span{buffer, wait}, map[string]string{
		"messaging.system": "nats", "messaging.operation.type": "send", "messaging.destination.name": "resume", "rendezvous.tenant": "acme",
		"rendezvous.queue": "orders", "rendezvous.run_id": "run-of-order-1", "rendezvous.cause": "answered",
	})
	resume := tr.span(one, "resume", "rendezvous.cause", "answered")
	tr.check(resume, "business", consumer, nil, []*tracepb.Span{notice}, map[string]string{"rendezvous.run_id": "run-of-order-1"})
	tr.noSecrets()
}

// serverSpan waits for the one span of a verb on the plane's side.
func (tr *traced) serverSpan(verb string) *tracepb.Span {
	tr.t.Helper()
	for end := time.Now().Add(nodetest.Patience); time.Now().Before(end); clock.Sleep(context.Background(), clock.System, 10*time.Millisecond) {
		if found := tr.receiver.find(verb, func(s *tracepb.Span) bool { return s.Kind == server }); len(found) == 1 {
			return found[0]
		}
	}
	tr.t.Fatalf("no one server span of %s", verb)
	return nil
}

// The other way round: the event comes by the request door and waits; the registration that it answers adds match and answer to its trace.
func TestOneTraceFromTheRequestToTheRegistrationItAnswers(t *testing.T) {
	tr := newTraced(t)
	results, err := tr.client.PutEvents(t.Context(), payment("order-2"))
	must(t, err)
	if results[0].Outcome != wire.Accepted {
		t.Fatalf("%+v", results[0])
	}
	tr.start("order-2")
	tr.until("order-2", "concluded")

	send := tr.span(nil, "send events", "", "")
	one := send.TraceId
	put := tr.serverSpan("events.put")
	tr.check(put, "rendezvous-test", server, nil, nil, map[string]string{"rpc.method": "events.put", "http.request.method": "POST", "http.route": "/v1/{tenant}/{verb}"})
	buffer := tr.span(one, "buffer", "", "")
	tr.check(buffer, "rendezvous-test", internal, put, nil, map[string]string{"rendezvous.event.id": "p-order-2", "rendezvous.outcome": "new"})
	wait := tr.serverSpan("waits.register")
	match := tr.span(one, "match", "", "")
	tr.check(match, "rendezvous-test", consumer, buffer, []*tracepb.Span{wait}, map[string]string{"rendezvous.effect": "payment", "rendezvous.outcome": "delivered"})
	tr.check(tr.span(one, "answer", "", ""), "rendezvous-test", internal, match, nil, map[string]string{"rendezvous.workflow_id": "order-2"})
	store := tr.receiver.find("store buffer_batch", func(s *tracepb.Span) bool { return true })
	if len(store) == 0 || store[0].Kind != tracepb.Span_SPAN_KIND_CLIENT || attribute(store[0], "db.operation.name") != "buffer_batch" {
		t.Errorf("the store's spans: %v", store)
	}
	tr.noSecrets()
}

// Without the environment nothing is exported, and an event keeps the trace it came with.
func TestWithoutTheEnvironmentTracesPassThrough(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	n := nodetest.Start(t)
	c, err := client.New(client.Options{Tenant: "acme", NATSURL: n.NATSURL})
	must(t, err)
	defer c.Close()
	notices, err := c.NATS().SubscribeSync("rdv.match.*")
	must(t, err)
	must(t, c.NATS().Flush())
	e := payment("order-3")
	e.Trace = rendezvous.Trace{Parent: parent, State: "vendor=1"}
	_, err = c.PutEvents(t.Context(), e)
	must(t, err)
	m, err := notices.NextMsg(nodetest.Patience)
	must(t, err)
	if m.Header["traceparent"][0] != parent || m.Header["tracestate"][0] != "vendor=1" {
		t.Errorf("the notice carries %v", m.Header)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

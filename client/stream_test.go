package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
)

func TestPublishedEventAnswersAWait(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	_, driven := p.execute(c, pay)
	for name, opts := range map[string][]client.PublishOption{"binary": nil, "structured": {client.Structured()}} {
		run := start(t, c, name)
		until(t, driven, run.RunID, "suspended")
		must(t, c.Publish(t.Context(), ok(client.NewEvent("urn:psp", "payment.received", client.JSON(name), key(name)))(t), opts...))
		until(t, driven, run.RunID, "concluded")
		eq(t, "result", string(last(t, c, run).Payload), `"`+name+`"`)
	}
}

func TestEventPublishedForARunReachesItAlone(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	_, driven := p.execute(c, pay)
	older, meant := start(t, c, "1"), start(t, c, "1")
	until(t, driven, older.RunID, "suspended")
	until(t, driven, meant.RunID, "suspended")
	must(t, c.Publish(t.Context(), ok(client.NewEvent("urn:psp", "payment.received", client.JSON(1), key("1")))(t), client.ForRun(meant.RunID)))
	until(t, driven, meant.RunID, "concluded")
	eq(t, "status of the other", status(t, c, older), rendezvous.StatusRunning)
}

// A stream's acknowledgement is the broker's promise alone: what is lost with the stream is published again, because events.get does not know it.
func TestConfirmedPublishSurvivesTheLossOfTheStream(t *testing.T) {
	p := newPlane(t, settings{deaf: true})
	c := p.dial(false)
	js := ok(jetstream.New(p.conn.PublishConn()))(t)
	inbox := p.conn.Names().Inbox()
	var events []rendezvous.Event
	for i := range 20 {
		events = append(events, ok(client.NewEvent("urn:psp", "payment.received", client.JSON(i), key(fmt.Sprint(i))))(t))
	}
	done := make(chan error, 1)
	looked := make(chan struct{}, 10_000)
	p.faults.set(func(verb string, _ int) fault {
		if verb == "events.get" {
			looked <- struct{}{}
		}
		return none
	})
	go func() { done <- c.PublishConfirmed(t.Context(), events...) }()
	receive(t, "a look at what was published", looked) // all are acknowledged by now
	eq(t, "messages in the stream", ok(js.Stream(t.Context(), inbox))(t).CachedInfo().State.Msgs, uint64(len(events)))
	must(t, js.DeleteStream(t.Context(), inbox))
	must(t, p.conn.Provision(t.Context()))
	must(t, p.inbox.Start())
	must(t, receive(t, "the confirmation", done))
	for _, e := range events {
		ok(c.GetEvent(t.Context(), e.EventID, false))(t)
	}
}

// An event the plane refuses never becomes known: the request door is asked at last, and its refusal is the error.
func TestConfirmedPublishAnswersTheRefusal(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false, func(o *client.Options) { o.Clock = &sleeper{Clock: hurried{clock.System}, timeout: 10 * time.Second} })
	e := ok(client.NewEvent("urn:psp", "payment.received", client.JSON(1), key("1")))(t)
	e.ExpiresAt = time.Now().Add(31 * 24 * time.Hour)
	if err := c.PublishConfirmed(t.Context(), e); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Fatalf("an expiry too far ahead: %v", err)
	}
}

// hurried tells a time that runs a thousand times as fast.
type hurried struct{ clock.Clock }

func (h hurried) Now() time.Time {
	now := h.Clock.Now()
	return epoch.Add(now.Sub(epoch) * 1000)
}

var epoch = time.Now()

// One trace from the producer's publish to the resume, which is linked to it (design section 8).
func TestOneTraceFromPublishToResume(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	tracer := provider.Tracer("test")
	p := newPlane(t, settings{tracer: tracer})
	c := p.dial(false, func(o *client.Options) { o.Tracer = tracer })
	_, driven := p.execute(c, pay)
	run := start(t, c, "1")
	until(t, driven, run.RunID, "suspended")
	must(t, c.Publish(t.Context(), ok(client.NewEvent("urn:psp", "payment.received", client.JSON(1), key("1")))(t)))
	until(t, driven, run.RunID, "concluded")

	sent := spanNamed(t, spans, "send inbox", func(sdktrace.ReadOnlySpan) bool { return true })
	eq(t, "kind of the producer's span", sent.SpanKind(), trace.SpanKindProducer)
	resume := spanNamed(t, spans, "resume", func(s sdktrace.ReadOnlySpan) bool { return s.SpanContext().TraceID() == sent.SpanContext().TraceID() })
	eq(t, "kind of the resume", resume.SpanKind(), trace.SpanKindConsumer)
	if len(resume.Links()) == 0 {
		t.Fatal("the resume is linked to nothing")
	}
	// What the handler does stands below its resume.
	spanNamed(t, spans, "runs.conclude", func(s sdktrace.ReadOnlySpan) bool { return s.Parent().SpanID() == resume.SpanContext().SpanID() })
}

// spanNamed waits for an ended span.
func spanNamed(t *testing.T, r *tracetest.SpanRecorder, name string, which func(sdktrace.ReadOnlySpan) bool) sdktrace.ReadOnlySpan {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		all := r.Ended()
		if i := slices.IndexFunc(all, func(s sdktrace.ReadOnlySpan) bool { return s.Name() == name && which(s) }); i >= 0 {
			return all[i]
		}
	}
	t.Fatalf("no span %q of the kind wanted", name)
	panic("unreachable")
}

// An executor may come before the plane has made its streams.
func TestExecutorWaitsForThePlane(t *testing.T) {
	p := newPlane(t, settings{})
	js := ok(jetstream.New(p.conn.PublishConn()))(t)
	must(t, js.DeleteStream(t.Context(), p.conn.Names().Resume()))
	c := p.dial(false)
	_, driven := p.execute(c, pay)
	put(t, c, "payment.received", "1", 1)
	run := start(t, c, "1") // its notice finds no stream, or makes it; the woken pass repeats it
	until(t, driven, run.RunID, "concluded")
}

func TestPublishWithoutTheStreamSaysSo(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false, func(o *client.Options) { o.Prefix = "nowhere"; o.Retry.Tries = 2 })
	if err := c.Publish(t.Context(), ok(client.NewEvent("urn:psp", "paid", client.Payload{}))(t)); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Fatalf("publishing where no stream is: %v", err)
	}
}

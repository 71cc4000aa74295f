package messaging

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// W3C trace context headers: written in lower case, read in any.
const (
	headerTraceParent = "traceparent"
	headerTraceState  = "tracestate"
)

var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// TraceOf is the trace context of a message's headers; zero when it carries none, or none worth keeping.
func TraceOf(h nats.Header) rendezvous.Trace {
	c := headerCarrier(h)
	return rendezvous.Trace{Parent: c.Get(headerTraceParent), State: c.Get(headerTraceState)}.Kept()
}

// ContextTrace is the span and state in ctx as they are stored with an event or a wait; zero when there is no span.
func ContextTrace(ctx context.Context) rendezvous.Trace {
	h := nats.Header{}
	InjectTrace(ctx, h)
	return TraceOf(h)
}

// WithTrace is ctx with t as its remote span; ctx itself when t is zero.
func WithTrace(ctx context.Context, t rendezvous.Trace) context.Context {
	if t.Parent == "" {
		return ctx
	}
	return w3c.Extract(ctx, headerCarrier(traceHeader(t)))
}

// InjectTrace writes the span and baggage of ctx into h.
func InjectTrace(ctx context.Context, h nats.Header) { w3c.Inject(ctx, headerCarrier(h)) }

// ExtractTrace is ctx with the remote span and baggage of h.
func ExtractTrace(ctx context.Context, h nats.Header) context.Context {
	return w3c.Extract(ctx, headerCarrier(h))
}

// putTrace writes t, or the span of ctx when t is zero.
func putTrace(ctx context.Context, h nats.Header, t rendezvous.Trace) {
	InjectTrace(ctx, h)
	if t.Parent == "" {
		return
	}
	delete(h, headerTraceState)
	h[headerTraceParent] = []string{t.Parent}
	if t.State != "" {
		h[headerTraceState] = []string{t.State}
	}
}

func traceHeader(t rendezvous.Trace) nats.Header {
	h := nats.Header{}
	putTrace(context.Background(), h, t)
	return h
}

// headerCarrier lets OpenTelemetry read and write NATS headers, which keep the case they were sent in.
type headerCarrier nats.Header

func (c headerCarrier) Get(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[0]
	}
	for k, v := range c {
		if len(v) > 0 && strings.EqualFold(k, key) {
			return v[0]
		}
	}
	return ""
}

func (c headerCarrier) Set(key, value string) { c[strings.ToLower(key)] = []string{value} }

func (c headerCarrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	return keys
}

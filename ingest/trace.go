package ingest

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// way is how an event came in, as its span says it.
type way struct {
	kind        trace.SpanKind
	destination string
}

// The ways in: a request's span is above the event's, a stream's message has its producer's above it.
var (
	byRequest = way{trace.SpanKindInternal, ""}
	byStream  = way{trace.SpanKindConsumer, "inbox"}
)

// trace begins the event's span buffer, which ends with its commit, and answers the event with the context that match continues (design section 8). The
// span belongs to the trace the event came with, else to the request's; where the two differ they are linked. Without either there is none, and
// nobody pays for it.
func (d *Door) trace(ctx context.Context, tenant string, e rendezvous.Event, w way) (rendezvous.Event, func(outcome string, err error)) {
	request := trace.SpanContextFromContext(ctx)
	if e.Trace.Parent == "" && !request.IsValid() {
		return e, func(string, error) {}
	}
	own := trace.SpanContextFromContext(messaging.WithTrace(context.Background(), e.Trace))
	var links []trace.Link
	if own.IsValid() && own.TraceID() != request.TraceID() {
		if request.IsValid() {
			links = append(links, trace.Link{SpanContext: request})
		}
		ctx = messaging.WithTrace(ctx, e.Trace)
	}
	attributes := []attribute.KeyValue{
		attribute.String("rendezvous.tenant", tenant), attribute.String("rendezvous.event.source", e.Source), attribute.String("rendezvous.event.id", e.ID),
		attribute.String("rendezvous.event.type", e.Type),
	}
	if w.destination != "" {
		attributes = append(attributes, attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.operation.name", "buffer"), attribute.String("messaging.destination.name", w.destination))
	}
	ctx, span := d.tracer.Start(ctx, "buffer", trace.WithSpanKind(w.kind), trace.WithLinks(links...), trace.WithAttributes(attributes...))
	if c := span.SpanContext(); c.IsValid() && c.SpanID() != own.SpanID() { // equal where nobody traces here: then it goes on as it came
		e.Trace = messaging.ContextTrace(ctx)
	}
	return e, func(outcome string, err error) {
		if err != nil {
			outcome = string(rendezvous.AsError(err).Code)
			span.SetAttributes(attribute.String("error.type", outcome))
			span.SetStatus(codes.Error, outcome)
		}
		span.SetAttributes(attribute.String("rendezvous.outcome", outcome))
		span.End()
	}
}

package notify

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
)

// TraceOffer adds the match of a pair to the event's trace, linked to the wait's (design section 8), and the answer below it once that is recorded. Whoever
// made the pair calls it: the delivery-worker, and the doors for pairs that a verb makes at once. Nobody pays for it where the event carries no trace.
func TraceOffer(ctx context.Context, tracer trace.Tracer, o store.Offer) {
	if o.EventTrace.Parent == "" || (o.Outcome != store.OfferDelivered && o.Outcome != store.OfferParked) {
		return
	}
	var links []trace.Link
	if c := spanOf(o.WaitTrace); c.IsValid() {
		links = append(links, trace.Link{SpanContext: c})
	}
	pair := []attribute.KeyValue{
		attribute.String("rendezvous.tenant", o.Tenant), attribute.String("rendezvous.event.source", o.Event.Source), attribute.String("rendezvous.event.id", o.Event.ID),
		attribute.String("rendezvous.run_id", o.Wait.RunID), attribute.String("rendezvous.effect", o.Wait.Effect), attribute.String("rendezvous.outcome", string(o.Outcome)),
	}
	ctx, match := tracer.Start(messaging.WithTrace(ctx, o.EventTrace), "match", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.operation.name", "match"), attribute.String("messaging.destination.name", "match")), trace.WithAttributes(pair...))
	defer match.End()
	if o.Outcome == store.OfferDelivered {
		_, answer := tracer.Start(ctx, "answer", trace.WithAttributes(attribute.String("rendezvous.workflow_id", o.WorkflowID),
			attribute.Int64("rendezvous.seq", o.Seq)), trace.WithAttributes(pair...))
		answer.End()
	}
}

// spanOf is the span that a stored trace names, invalid for none.
func spanOf(t rendezvous.Trace) trace.SpanContext {
	if t.Parent == "" {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(messaging.WithTrace(context.Background(), t))
}

package client

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

// PutEvents puts events through the request door: the reply is the durable acknowledgement. One result per event, in order: accepted, duplicate (it was
// accepted before, which is success too, also of a try whose reply was lost), conflict or rejected with an error. More than 500, or more than a message
// carries, are sent in several calls; the error then says that results beyond those returned are not known.
func (c *Client) PutEvents(ctx context.Context, events ...rendezvous.Event) ([]wire.PutResult, error) {
	ctx, span := c.produce(ctx, "send events", "events.put", len(events))
	defer span.End()
	raw := make([]json.RawMessage, len(events))
	for i, e := range events {
		text, err := c.encodeEvent(ctx, e, "")
		if err != nil {
			return nil, err
		}
		raw[i] = text
	}
	results, err := c.PutEncoded(ctx, raw)
	if err != nil {
		span.SetStatus(codes.Error, string(rendezvous.CodeOf(err)))
	}
	return results, err
}

// PutEncoded is PutEvents for CloudEvents that are JSON objects already, sent as they are.
func (c *Client) PutEncoded(ctx context.Context, events []json.RawMessage) ([]wire.PutResult, error) {
	results := make([]wire.PutResult, 0, len(events))
	for len(events) > 0 {
		n := c.fitting(events)
		got, err := call[wire.PutResults](ctx, c, "events.put", wire.PutEvents{Events: events[:n]})
		if err != nil {
			return results, err
		}
		results = append(results, got.Results...)
		events = events[n:]
	}
	return results, nil
}

// fitting is how many of the events one request carries: at least one, which is refused then if it is too large.
func (c *Client) fitting(events []json.RawMessage) int {
	room, size := c.verbs.room(), len(`{"events":[]}`)
	for n, e := range events[:min(len(events), rendezvous.MaxBatchItems)] {
		size += len(e) + 1
		if n > 0 && room > 0 && size > room {
			return n
		}
	}
	return min(len(events), rendezvous.MaxBatchItems)
}

// encodeEvent writes an event in the JSON format with the trace of ctx, if it has none of its own.
func (c *Client) encodeEvent(ctx context.Context, e rendezvous.Event, run string) ([]byte, error) {
	if e.Trace == (rendezvous.Trace{}) {
		e.Trace = messaging.ContextTrace(ctx)
	}
	text, err := cloudevents.Encode(e, run)
	if err != nil {
		return nil, rendezvous.InvalidField("event", "does not encode as JSON").Because(err)
	}
	return text, nil
}

// produce starts the span of a producer (design section 8).
func (c *Client) produce(ctx context.Context, name, destination string, n int) (context.Context, trace.Span) {
	return c.opts.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "send"),
		attribute.String("messaging.destination.name", destination), attribute.Int("messaging.batch.message_count", n),
		attribute.String("rendezvous.tenant", c.opts.Tenant)))
}

// DeliverEvent sends an event to one run: matched, duplicate, or not_waiting with why; then nothing was stored.
func (c *Client) DeliverEvent(ctx context.Context, runID string, e rendezvous.Event) (wire.Delivered, error) {
	ctx, span := c.produce(ctx, "send event", "events.deliver", 1)
	defer span.End()
	text, err := c.encodeEvent(ctx, e, "")
	if err != nil {
		return wire.Delivered{}, err
	}
	return call[wire.Delivered](ctx, c, "events.deliver", wire.DeliverEvent{RunID: runID, Event: text})
}

// GetEvent reads how an event stands; withData also its payload, while the plane has it. Errors: not_found.
func (c *Client) GetEvent(ctx context.Context, id rendezvous.EventID, withData bool) (wire.Event, error) {
	return call[wire.Event](ctx, c, "events.get", wire.GetEvent{Source: id.Source, ID: id.ID, IncludeData: withData})
}

// EraseEvent removes an event's payload for ever; its identity stays known (I10).
func (c *Client) EraseEvent(ctx context.Context, id rendezvous.EventID, by *rendezvous.Operator) (wire.Erased, error) {
	return call[wire.Erased](ctx, c, "events.erase", wire.EraseEvent{Source: id.Source, ID: id.ID, Operator: by})
}

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/codes"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// publisher is what the stream door needs of JetStream.
type publisher interface {
	PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error)
}

func (c *Client) openInbox() (publisher, error) {
	if c.link == nil {
		return nil, rendezvous.InvalidField("NATS", "is needed for the stream door; give NATS or NATSURL, or use PutEvents")
	}
	if c.opts.Domain != "" {
		return jetstream.NewWithDomain(c.link.nc, c.opts.Domain)
	}
	return jetstream.New(c.link.nc)
}

// PublishOption changes one event on its way through the stream door.
type PublishOption func(*publishing)

type publishing struct {
	run        string
	structured bool
}

// ForRun addresses the event to one run (rdvrun): only that run's waits are met.
func ForRun(runID string) PublishOption { return func(p *publishing) { p.run = runID } }

// Structured sends the event as one JSON document instead of headers and body, e.g. for readers of the stream that know no other mode.
func Structured() PublishOption { return func(p *publishing) { p.structured = true } }

// Publish sends an event through the stream door and returns when JetStream has acknowledged it. That is the broker's promise only: the plane has
// accepted the event once events.get knows it ([Client.PublishConfirmed] sees to that). An event the plane refuses is not reported here but in the
// REJECTED stream; what can be judged beforehand is refused here (invalid, too_large). Publishing an event again is safe (I2).
func (c *Client) Publish(ctx context.Context, e rendezvous.Event, opts ...PublishOption) error {
	inbox, err := c.inbox()
	if err != nil {
		return err
	}
	ctx, done := c.living(ctx)
	defer done()
	if e.Trace.Parent != "" {
		ctx = messaging.WithTrace(ctx, e.Trace)
	}
	ctx, span := c.produce(ctx, "send inbox", "inbox", 1)
	defer span.End()
	msg, err := c.message(ctx, e, opts)
	if err == nil {
		_, err = retried(ctx, c.opts, false, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.publishOnce(ctx, inbox, msg)
		})
	}
	if err != nil {
		span.SetStatus(codes.Error, string(rendezvous.CodeOf(err)))
	}
	return err
}

// messageTooLarge is JetStream's code for a message over the stream's limit.
const messageTooLarge = 10054

func (c *Client) publishOnce(ctx context.Context, inbox publisher, msg *nats.Msg) error {
	ctx, done := c.link.whileUp(ctx)
	defer done()
	_, err := inbox.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0), jetstream.WithExpectStream(c.names.Inbox()))
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return unsent(err) // the stream is missing until a worker makes it again
	case errors.As(err, &api) && api.ErrorCode == messageTooLarge:
		return rendezvous.Errorf(rendezvous.CodeTooLarge, "%d bytes are over what INBOX takes; put the event over HTTP", len(msg.Data)).
			With("value", len(msg.Data)).Because(err)
	case errors.As(err, &api):
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "the INBOX stream does not take the event now (JetStream error %d)", api.ErrorCode).Because(err)
	}
	return natsFailure(ctx, err, len(msg.Data))
}

// message is the event as INBOX takes it.
func (c *Client) message(ctx context.Context, e rendezvous.Event, opts []PublishOption) (*nats.Msg, error) {
	var p publishing
	for _, o := range opts {
		o(&p)
	}
	e.Trace = rendezvous.Trace{} // it travels in the headers
	e, err := e.Check(0)
	if err == nil {
		err = e.CheckOutside()
	}
	if err == nil && p.run != "" {
		err = rendezvous.CheckID("rdvrun", p.run)
	}
	if err != nil {
		return nil, err
	}
	msg := &nats.Msg{Subject: c.names.InboxSubject(c.opts.Tenant, subjectTail(e.Type)), Header: nats.Header{}}
	if p.structured || !fitsBinary(e) {
		msg.Header["content-type"] = []string{cloudevents.Structured}
		if msg.Data, err = cloudevents.Encode(e, p.run); err != nil {
			return nil, rendezvous.InvalidField("event", "does not encode as JSON").Because(err)
		}
	} else {
		binaryHeaders(msg.Header, e, p.run)
		msg.Data = e.Payload
	}
	messaging.InjectTrace(ctx, msg.Header)
	return msg, nil
}

// subjectTail is the event's type as subject tokens. The tail is free, so what a subject cannot hold is replaced.
func subjectTail(eventType string) string {
	tail := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '*' || r == '>' || r == 0x7f {
			return '_'
		}
		return r
	}, eventType)
	tokens := strings.Split(tail, ".")
	for i, t := range tokens {
		if t == "" {
			tokens[i] = "_"
		}
	}
	return strings.Join(tokens, ".")
}

// fitsBinary reports whether binary mode carries the event as it is: there, no payload and an empty one look alike, and a payload that says it is a
// CloudEvent is read as one.
func fitsBinary(e rendezvous.Event) bool {
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(e.ContentType)), "application/cloudevents") {
		return false
	}
	return len(e.Payload) > 0 || (e.Payload == nil) == (e.ContentType == "")
}

func binaryHeaders(h nats.Header, e rendezvous.Event, run string) {
	set := func(name, value string) {
		if value != "" {
			h["ce-"+name] = []string{percent(value)}
		}
	}
	set("specversion", "1.0")
	set("id", e.ID)
	set("source", e.Source)
	set("type", e.Type)
	set("rdvkeys", cloudevents.FormatKeys(e.Keys))
	set("rdvrun", run)
	if !e.ExpiresAt.IsZero() {
		set("expirytime", rendezvous.FormatInstant(e.ExpiresAt))
	}
	if e.ContentType != "" {
		h["content-type"] = []string{e.ContentType}
	}
}

// percent encodes what a header cannot hold (the CloudEvents HTTP binding, section 3.1.3.2).
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '"' || c == '%' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

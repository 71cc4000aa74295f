package push

import (
	"context"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/push/project"
)

// named are the attributes of a registration.
func (t *turn) named() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("rendezvous.tenant", t.row.Tenant), attribute.String("rendezvous.run_id", t.row.RunID), attribute.String("rendezvous.push.id", t.row.ID),
	}
}

// traceOf is the context of a record: of an answer that of the event that gave it, so that one trace leads from the producer's publish to the POST. Nobody
// pays for it who neither traces nor sends it.
func (t *turn) traceOf(rec rendezvous.Record) rendezvous.Trace {
	if rec.Kind != rendezvous.WaitAnswered || !t.tracing && !t.withTrace() || !project.Takes(t.reg.Events, rec.Kind) {
		return rendezvous.Trace{}
	}
	var d rendezvous.WaitAnsweredData
	if rendezvous.DecodeData(rec, &d) != nil {
		return rendezvous.Trace{}
	}
	e, err := t.history.LookupEvent(t.ctx, rendezvous.EventID{Source: d.EventSource, ID: d.EventID}, false)
	if err != nil {
		return rendezvous.Trace{}
	}
	return e.Trace.Kept()
}

// attemptSpan starts the client span of an attempt in the record's trace, linked to the turn's span. It shows scheme, host and port of the URL only.
func (t *turn) attemptSpan(m project.Message, traced rendezvous.Trace) (context.Context, trace.Span) {
	if !t.tracing {
		return t.ctx, trace.SpanFromContext(context.Background())
	}
	ctx, options := t.ctx, []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.named()...)}
	if traced.Parent != "" {
		ctx = messaging.WithTrace(trace.ContextWithSpan(ctx, nil), traced)
		options = append(options, trace.WithLinks(trace.Link{SpanContext: t.span.SpanContext()}))
	}
	attributes := []attribute.KeyValue{
		attribute.String("http.request.method", "POST"), attribute.Int("http.request.resend_count", t.state.Attempts),
		attribute.String("rendezvous.push.message_id", m.ID), attribute.Int("http.request.body.size", len(m.Body)),
	}
	if u, err := url.Parse(t.reg.URL); err == nil {
		attributes = append(attributes, attribute.String("url.full", u.Scheme+"://"+u.Host), attribute.String("server.address", u.Hostname()))
		if port, err := strconv.Atoi(portOf(u)); err == nil {
			attributes = append(attributes, attribute.Int("server.port", port))
		}
	}
	return t.deps.Tracer.Start(ctx, "POST", append(options, trace.WithAttributes(attributes...))...)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// endSpan ends an attempt's span: an error unless it was accepted.
func (t *turn) endSpan(span trace.Span, e rendezvous.PushAttempt) {
	if !t.tracing {
		return
	}
	defer span.End()
	span.SetAttributes(attribute.String("rendezvous.push.class", string(e.Class)))
	if e.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", e.Status))
	}
	if e.Class == rendezvous.ClassAccepted {
		return
	}
	kind := e.Code
	if kind == "" {
		kind = strconv.Itoa(e.Status)
	}
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, e.Error)
}

package push_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// answered has a run's wait answered by an event that carries a trace.
func (p *plane) answered(run string) {
	p.t.Helper()
	key := []rendezvous.Key{{Namespace: "order", Value: run}}
	_, err := p.tenant.RegisterWait(p.t.Context(), store.Registration{Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: run, Effect: "pay"}, Type: "paid", Keys: key}}, time.Time{})
	must(p.t, err)
	_, err = p.tenant.DeliverTo(p.t.Context(), run, rendezvous.Event{
		EventID: rendezvous.EventID{Source: "urn:bank", ID: "e-" + run}, Type: "paid", Keys: key, Payload: []byte("hush"), Trace: rendezvous.Trace{Parent: parent},
	}, false, time.Time{})
	must(p.t, err)
	_, err = p.store.DeliverParked(p.t.Context(), []store.WaitRef{{Tenant: "acme", WaitID: rendezvous.WaitID{RunID: run, Effect: "pay"}}}, time.Time{})
	must(p.t, err)
}

// PU-102: attempts have client spans in the record's own trace, linked to the turn's; no path of the URL is in one. PU-80: the context goes to the receiver where
// trace is on, equal in header and event, and nowhere else.
func TestAttemptSpansSitInTheRecordsTrace(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		return answer{status: map[bool]int{true: 503, false: 204}[n == 1]}
	})
	on, off := hook("r", "on", v.URL+"/secret/path?key=hush"), hook("r", "off", v.URL+"/secret/path?key=hush")
	on.Events, off.Events = []string{string(rendezvous.WaitAnswered)}, []string{string(rendezvous.WaitAnswered)}
	on.Trace, off.Trace = new(true), new(false)
	p.start("r", on, off)
	p.answered("r")
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	w := p.pod(func(o *options) { o.Tracer = provider.Tracer("test") })
	w.Drive()
	p.clock.Advance(time.Minute)
	w.Drive()
	turns, attempts := map[string]bool{}, 0
	for _, s := range spans.Ended() {
		if s.Name() == "push turn" {
			turns[s.SpanContext().SpanID().String()] = true
		}
	}
	resends := map[string]bool{}
	for _, s := range spans.Ended() {
		if s.Name() != "POST" {
			continue
		}
		attempts++
		eq(t, "kind", s.SpanKind().String(), "client")
		eq(t, "trace", s.SpanContext().TraceID().String(), "0af7651916cd43dd8448eb211c80319c")
		eq(t, "parent", s.Parent().SpanID().String(), "b7ad6b7169203331")
		eq(t, "links", len(s.Links()) == 1 && turns[s.Links()[0].SpanContext.SpanID().String()], true)
		all := attribute.NewSet(s.Attributes()...)
		url, _ := all.Value("url.full")
		eq(t, "url.full", url.AsString(), v.URL)
		status, _ := all.Value("http.response.status_code")
		resend, _ := all.Value("http.request.resend_count")
		resends[fmt.Sprint(status.AsInt64(), "/", resend.AsInt64(), "/", s.Status().Code)] = true
		if text := fmt.Sprint(s.Attributes(), s.Name(), s.Status()); strings.Contains(text, "secret") || strings.Contains(text, "hush") {
			t.Errorf("a span tells too much: %s", text)
		}
	}
	eq(t, "attempts", attempts, 3)
	eq(t, "statuses, resends and codes", fmt.Sprint(len(resends), resends["503/0/Error"], resends["204/0/Unset"], resends["204/1/Unset"]), "3 true true true")
	with := 0
	for _, m := range v.messages() {
		carried := m.header.Get("traceparent")
		eq(t, "header and event", strings.Contains(m.body, `"traceparent":"`+parent+`"`), carried == parent)
		if carried != "" {
			with++
		}
		eq(t, "baggage", m.header.Get("baggage"), "")
	}
	if with == 0 || with == len(v.messages()) {
		t.Errorf("%d of %d requests carry the context", with, len(v.messages()))
	}
}

// PU-102, PU-8: metrics and the log have no tenant, run, host or path where they may not, and no secret anywhere.
func TestMetricsAndLogTellNoSecret(t *testing.T) {
	p := newPlane(t, destination("audit", "http://127.0.0.1:1/secret/path?key=hush"))
	v := receive(t, func(n int, _ message, _ *http.Request) answer { return answer{status: 200 + n%2*210} }) // 410 and 200
	h := hook("", "registration-id", v.URL+"/secret/path?key=hush")
	h.Token = rendezvous.NewSecret("hush-token")
	h.Headers = []rendezvous.PushHeader{{Name: "X-Key", Value: rendezvous.NewSecret("hush-header")}}
	h.Signing = []rendezvous.SigningKey{{Key: rendezvous.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}}
	p.start("run-id", h)
	p.start("run-id-2", h)
	reader := sdkmetric.NewManualReader()
	w := p.pod(func(o *options) { o.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test") })
	w.Drive()
	var got metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &got))
	names := map[string]bool{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			names[m.Name] = true
		}
	}
	for _, name := range []string{"attempts", "attempt.duration", "ack.lag", "retry.delay", "parked", "claim.size", "settle.size", "inflight", "memory.used"} {
		eq(t, name, names["rendezvous.push."+name], true)
	}
	metrics := fmt.Sprintf("%+v", got)
	for _, word := range []string{"acme", "run-id", "registration-id", "audit", "127.0.0.1", "hush", "secret"} {
		if strings.Contains(metrics, word) {
			t.Errorf("the metrics tell %q", word)
		}
	}
	for _, secret := range []string{"hush", "secret", "whsec_", "MfKQ"} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
	for _, fact := range []string{`"host":"127.0.0.1`, `"class":"gone"`, `"class":"silent"`, `"level":"INFO"`, `"reason":"gone"`, `"action":"advance"`} {
		if !strings.Contains(w.log.String(), fact) {
			t.Errorf("the log does not tell %s", fact)
		}
	}
}

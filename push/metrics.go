package push

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/telemetry"
)

// metrics are the worker's instruments (push.md section 15). No tenant, run, id, host or URL is a label.
type metrics struct {
	attempts  metric.Int64Counter
	duration  metric.Float64Histogram
	phases    metric.Float64Histogram
	acked     metric.Float64Histogram
	delay     metric.Float64Histogram
	capped    metric.Int64Counter
	parked    metric.Int64Counter
	claims    metric.Int64Histogram
	lost      metric.Int64Counter
	fenced    metric.Int64Counter
	sizes     metric.Int64Histogram
	settles   metric.Float64Histogram
	deferred  metric.Int64Counter
	targets   metric.Int64Counter
	completed metric.Int64Counter
	faults    metric.Int64Counter
	saturated metric.Int64Counter
	phase     [5]metric.MeasurementOption // labels of phases, made once
}

func newMetrics(m metric.Meter, w *Worker) (*metrics, error) {
	i := telemetry.Instruments{Meter: m}
	requests := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	waits := []float64{.01, .05, .1, .5, 1, 5, 30, 60, 300, 1800, 3600, 21600, 86400, 259200}
	made := &metrics{
		attempts:  i.Counter("rendezvous.push.attempts", "{attempt}", "POSTs, by what they came to."),
		duration:  i.Seconds("rendezvous.push.attempt.duration", "Time of a POST, all its phases.", requests...),
		phases:    i.Seconds("rendezvous.push.attempt.phases", "Time of the phases of a POST, and before it.", requests...),
		acked:     i.Seconds("rendezvous.push.ack.lag", "From a record's instant to the 2xx.", waits...),
		delay:     i.Seconds("rendezvous.push.retry.delay", "How long a failed message waits for its next attempt.", waits...),
		capped:    i.Counter("rendezvous.push.advice.capped", "{answer}", "Answers that asked for a longer wait than is heard."),
		parked:    i.Counter("rendezvous.push.parked", "{registration}", "Registrations parked by this worker, by reason."),
		claims:    i.Sizes("rendezvous.push.claim.size", "{registration}", "Registrations of a claim.", 0, 1, 2, 5, 10, 25, 50, 100, 250, 500),
		lost:      i.Counter("rendezvous.push.claim.lost", "{registration}", "Claimed registrations whose last send lease ran out unsettled."),
		fenced:    i.Counter("rendezvous.push.fenced", "{registration}", "Send leases that were somebody else's or revoked, by where that was heard."),
		sizes:     i.Sizes("rendezvous.push.settle.size", "{settlement}", "Settlements of a transaction.", 1, 2, 5, 10, 25, 50, 100, 250, 500),
		settles:   i.Seconds("rendezvous.push.settle.duration", "Time of a transaction of settlements.", requests...),
		deferred:  i.Counter("rendezvous.push.deferred", "{registration}", "Registrations put off uncharged, by why."),
		targets:   i.Counter("rendezvous.push.refused_targets", "{attempt}", "Attempts whose target was refused, by rule."),
		completed: i.Counter("rendezvous.push.completed", "{registration}", "Registrations that are done."),
		faults:    i.Counter("rendezvous.push.faults", "{turn}", "Turns that ended at a record that does not decode, or in a panic."),
		saturated: i.Counter("rendezvous.push.saturated", "{claim}", "Claims behind which more was due."),
	}
	if i.Err != nil {
		return nil, i.Err
	}
	for i, name := range [...]string{"dns", "connect", "tls", "first_byte", "queued"} {
		made.phase[i] = word("phase", name)
	}
	made.begin()
	return made, w.gauges(m)
}

// begin has counters begin at 0, or the first increase is invisible to whoever looks at rates.
func (m *metrics) begin() {
	ctx := context.Background()
	for _, c := range [...]metric.Int64Counter{m.capped, m.lost, m.completed, m.faults, m.saturated} {
		c.Add(ctx, 0)
	}
	m.attempts.Add(ctx, 0, metric.WithAttributes(attribute.String("class", string(rendezvous.ClassAccepted)),
		attribute.String("namespace", string(rendezvous.PushCaller)), attribute.String("projection", string(rendezvous.ProjectionCloudEvents))))
	for _, r := range [...]rendezvous.ParkReason{rendezvous.ParkGone, rendezvous.ParkExhausted, rendezvous.ParkExpired, rendezvous.ParkRejected, rendezvous.ParkFault} {
		m.parked.Add(ctx, 0, word("reason", string(r)))
	}
	for _, verb := range [...]string{"renew", "settle"} {
		m.fenced.Add(ctx, 0, word("verb", verb))
	}
	for _, why := range [...]store.PushWhy{store.ReleaseGate, store.ReleaseOwn, store.ReleaseDrain} {
		m.deferred.Add(ctx, 0, word("why", string(why)))
	}
	m.targets.Add(ctx, 0, word("rule", "host_not_granted"))
}

// gauges are looked at when somebody asks.
func (w *Worker) gauges(m metric.Meter) error {
	inflight, err1 := m.Int64ObservableGauge("rendezvous.push.inflight", metric.WithUnit("{registration}"), metric.WithDescription("Registrations being worked."))
	memory, err2 := m.Int64ObservableGauge("rendezvous.push.memory.used", metric.WithUnit("By"), metric.WithDescription("Bytes of the budget of pages, bodies and responses."))
	unserved, err3 := m.Int64ObservableGauge("rendezvous.push.unserved", metric.WithUnit("{registration}"),
		metric.WithDescription("Due registrations of a namespace that this worker does not serve, when it looked last."))
	for _, err := range [...]error{err1, err2, err3} {
		if err != nil {
			return err
		}
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(inflight, int64(w.cfg.InFlight-w.places.free()))
		o.ObserveInt64(memory, w.memory.used.Load())
		o.ObserveInt64(unserved, int64(w.counts.total().Unserved))
		return nil
	}, inflight, memory, unserved)
	return err
}

func word(label, value string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(label, value))
}

// sent counts an attempt and its times.
func (t *turn) sent(e rendezvous.PushAttempt, a transport.Attempt) {
	m := t.metrics
	if t.labels == nil || t.labelled != e.Class { // nearly all attempts of a turn come to the same
		t.labelled, t.labels = e.Class, metric.WithAttributes(attribute.String("class", string(e.Class)), attribute.String("namespace", string(t.row.Namespace)),
			attribute.String("projection", string(t.reg.Projection)))
	}
	m.attempts.Add(t.life, 1, t.labels)
	m.duration.Record(t.life, a.Phases.Total.Seconds())
	for i, took := range [...]time.Duration{a.Phases.DNS, a.Phases.Connect, a.Phases.TLS, a.Phases.FirstByte, a.Phases.Queued} {
		if took > 0 {
			m.phases.Record(t.life, took.Seconds(), m.phase[i])
		}
	}
}

func (m *metrics) lag(ctx context.Context, d time.Duration) { m.acked.Record(ctx, d.Seconds()) }

func (m *metrics) retried(ctx context.Context, d time.Duration) { m.delay.Record(ctx, d.Seconds()) }

func (m *metrics) parkedFor(ctx context.Context, r rendezvous.ParkReason) {
	m.parked.Add(ctx, 1, word("reason", string(r)))
}

func (m *metrics) refusedBy(ctx context.Context, rule string) {
	m.targets.Add(ctx, 1, word("rule", rule))
}

func (m *metrics) deferredFor(ctx context.Context, why store.PushWhy) {
	m.deferred.Add(ctx, 1, word("why", string(why)))
}

func (m *metrics) fencedBy(ctx context.Context, verb string) {
	m.fenced.Add(ctx, 1, word("verb", verb))
}

func (m *metrics) settled(ctx context.Context, n int, took time.Duration) {
	m.sizes.Record(ctx, int64(n))
	m.settles.Record(ctx, took.Seconds())
}

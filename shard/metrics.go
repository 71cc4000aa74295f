package shard

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous/telemetry"
)

// metrics are the member's instruments. Counters begin at 0, or the first increase is invisible to whoever looks at rates.
type metrics struct {
	pool     metric.MeasurementOption
	name     attribute.KeyValue
	acquired metric.Int64Counter
	lost     metric.Int64Counter
	fenced   metric.Int64Counter
	failed   metric.Int64Counter
	handover metric.Float64Histogram
}

// reasons of losing a shard. An election lost is one that was never held.
var reasons = [...]string{"taken", "doubted", "slow", "subscribe", "publish", "belief", "election"}

func newMetrics(meter metric.Meter, m *Member) (*metrics, error) {
	i := telemetry.Instruments{Meter: meter}
	name := attribute.String("pool", string(m.deps.Pool))
	made := &metrics{
		pool: metric.WithAttributes(name), name: name,
		acquired: i.Counter("rendezvous.shard.acquisitions", "{shard}", "Shards acquired."),
		lost:     i.Counter("rendezvous.shard.lost", "{shard}", "Shards that were lost or not won, by reason."),
		fenced:   i.Counter("rendezvous.shard.fenced", "{write}", "Writes that were refused because their shard was lost."),
		failed:   i.Counter("rendezvous.shard.renewals.failed", "{round}", "Rounds whose renewal failed."),
		handover: i.Seconds("rendezvous.shard.handover", "Time from a shard seen free to its work begun.", .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30),
	}
	if err := cmp.Or(i.Err, m.gauges(meter, made)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	for _, c := range [...]metric.Int64Counter{made.acquired, made.fenced, made.failed} {
		c.Add(ctx, 0, made.pool)
	}
	for _, r := range reasons {
		made.lose(r, 0)
	}
	return made, nil
}

func (m *metrics) lose(reason string, n int) {
	m.lost.Add(context.Background(), int64(n), metric.WithAttributes(m.name, attribute.String("reason", reason)))
}

// gauges export what the last round saw, and how old that is.
func (m *Member) gauges(meter metric.Meter, made *metrics) error {
	owned, err := meter.Int64ObservableGauge("rendezvous.shard.owned", metric.WithUnit("{shard}"), metric.WithDescription("Shards this pod works on."))
	if err != nil {
		return err
	}
	free, err := meter.Int64ObservableGauge("rendezvous.shard.free", metric.WithUnit("{shard}"), metric.WithDescription("Shards that nobody owns."))
	if err != nil {
		return err
	}
	oldest, err := meter.Float64ObservableGauge("rendezvous.shard.free.age", metric.WithUnit("s"),
		metric.WithDescription("How long there have been free shards; 0 when there are none."))
	if err != nil {
		return err
	}
	age, err := meter.Float64ObservableGauge("rendezvous.shard.renewal.age", metric.WithUnit("s"), metric.WithDescription("Time since the last renewal that succeeded."))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.mu.Lock()
		s := m.status
		m.mu.Unlock()
		if s.renewed.IsZero() {
			return nil
		}
		now := m.deps.Clock.Now()
		o.ObserveInt64(owned, int64(len(s.owned)), made.pool)
		o.ObserveInt64(free, int64(s.free), made.pool)
		o.ObserveFloat64(age, now.Sub(s.renewed).Seconds(), made.pool)
		freeFor := 0.0
		if s.free > 0 {
			freeFor = now.Sub(s.freeFrom).Seconds()
		}
		o.ObserveFloat64(oldest, freeFor, made.pool)
		return nil
	}, owned, free, oldest, age)
	return err
}

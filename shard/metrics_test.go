package shard_test

import (
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The numbers of a member tell what it holds, won and lost, what is free, and how old its last renewal is (shards.md section 5).
func TestMetricsTellWhatAMemberHoldsAndLost(t *testing.T) {
	w := newWorld(t, 4)
	reader := sdkmetric.NewManualReader()
	w.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	p := w.join(1)[0]
	w.run(tick)
	want := func(when string, numbers map[string]float64) {
		t.Helper()
		got := collect(t, reader)
		for name, n := range numbers {
			if got[name] != n {
				t.Errorf("%s, %s is %v, want %v", when, name, got[name], n)
			}
		}
	}
	want("having taken all", map[string]float64{"owned": 4, "free": 0, "free.age": 0, "acquisitions": 4, "handover": 4, "lost taken": 0, "fenced": 0, "renewal.age": 0})
	p.Fenced(2)
	p.cut = true
	w.run(2 * tick) // a notice makes a round 100 ms after the last
	want("cut off", map[string]float64{"owned": 4, "fenced": 2, "renewals.failed": 1, "renewal.age": (2 * tick).Seconds()})
	w.clock.Advance(10 * time.Second)
	w.meter = metricnoop.Meter{}
	other := w.joinAs("other")
	other.Turn(t.Context()) // takes all: the first is no member any more
	p.cut = false
	w.run(tick)
	want("deposed", map[string]float64{"owned": 0, "lost taken": 4, "lost doubted": 0, "renewal.age": 0})
}

// collect is every number, summed up over all but the reason.
func collect(t *testing.T, reader *sdkmetric.ManualReader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &all))
	got := map[string]float64{}
	const prefix = len("rendezvous.shard.")
	for _, m := range all.ScopeMetrics[0].Metrics {
		name := m.Name[prefix:]
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				if reason, ok := p.Attributes.Value("reason"); ok {
					got[name+" "+reason.AsString()] = float64(p.Value)
				} else {
					got[name] = float64(p.Value)
				}
			}
		case metricdata.Gauge[int64]:
			got[name] = float64(data.DataPoints[0].Value)
		case metricdata.Gauge[float64]:
			got[name] = data.DataPoints[0].Value
		case metricdata.Histogram[float64]:
			got[name] = float64(data.DataPoints[0].Count)
		}
	}
	return got
}

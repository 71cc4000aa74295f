package node

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous/clock"
)

// gauges exports the depths of the store, read when somebody looks.
func (n *Node) gauges() error {
	depth, err := n.telemetry.Meter.Int64ObservableGauge("rendezvous.depth", metric.WithUnit("{row}"), metric.WithDescription("Live rows by kind, counted up to 10,000."))
	if err != nil {
		return err
	}
	age, err := n.telemetry.Meter.Float64ObservableGauge("rendezvous.oldest.age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest row by kind; 0 when there is none."))
	if err != nil {
		return err
	}
	kinds := map[string]metric.MeasurementOption{}
	for _, k := range [...]string{"live_events", "open_waits", "parked_waits", "quarantined_waits", "woken"} {
		kinds[k] = metric.WithAttributes(attribute.String("kind", k))
	}
	_, err = n.telemetry.Meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := clock.WithTimeout(ctx, clock.System, 2*time.Second)
		defer cancel()
		d, err := n.store.Depths(ctx)
		if err != nil {
			return n.unseen(ctx, err)
		}
		now, err := n.store.Now(ctx)
		if err != nil {
			return n.unseen(ctx, err)
		}
		for k, v := range map[string]int{
			"live_events": d.LiveEvents, "open_waits": d.OpenWaits, "parked_waits": d.ParkedWaits, "quarantined_waits": d.QuarantinedWaits, "woken": d.Woken,
		} {
			o.ObserveInt64(depth, int64(v), kinds[k])
		}
		for k, t := range map[string]time.Time{"live_events": d.OldestLiveEvent, "parked_waits": d.OldestParked, "woken": d.OldestWoken} {
			seconds := 0.0
			if !t.IsZero() {
				seconds = max(now.Sub(t).Seconds(), 0)
			}
			o.ObserveFloat64(age, seconds, kinds[k])
		}
		return nil
	}, depth, age)
	return err
}

// unseen leaves the depths out of a page: the other metrics are there all the same. An error handed back would be written by OpenTelemetry's global handler,
// past this process's log and its form.
func (n *Node) unseen(ctx context.Context, err error) error {
	n.log.WarnContext(ctx, "depths of the store not measured", "error", err)
	return nil
}

package delivery

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/telemetry"
)

// metrics are the worker's instruments.
type metrics struct {
	offers   metric.Int64Counter
	retries  metric.Int64Counter
	sizes    metric.Int64Histogram
	duration metric.Float64Histogram
	errors   metric.Int64Counter
}

func newMetrics(m metric.Meter) (*metrics, error) {
	i := telemetry.Instruments{Meter: m}
	made := &metrics{
		offers:   i.Counter("rendezvous.delivery.offers", "{item}", "Offered items and pulled-in pairs, by outcome."),
		retries:  i.Counter("rendezvous.delivery.retries", "{wait}", "Parked waits tried again from memory, by outcome."),
		errors:   i.Counter("rendezvous.delivery.batch.errors", "{batch}", "Offers that failed as a whole, by code."),
		sizes:    i.Sizes("rendezvous.delivery.batch.size", "{item}", "Items of an offer.", 1, 2, 5, 10, 25, 50, 100, 250, 500),
		duration: i.Seconds("rendezvous.delivery.batch.duration", "Time of an offer's transaction.", .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
	}
	if i.Err != nil {
		return nil, i.Err
	}
	ctx := context.Background() // counters begin at 0, or the first increase is invisible to whoever looks at rates
	made.errors.Add(ctx, 0, codeOf(rendezvous.CodeUnavailable))
	made.retry(ctx, 0, store.OfferDelivered)
	return made, nil
}

func codeOf(code rendezvous.Code) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("code", string(code)))
}

func (m *metrics) batch(ctx context.Context, n int, took time.Duration, err error) {
	m.sizes.Record(ctx, int64(n))
	m.duration.Record(ctx, took.Seconds())
	if err != nil {
		m.errors.Add(ctx, 1, codeOf(rendezvous.AsError(err).Code))
	}
}

func (m *metrics) offer(ctx context.Context, o store.Offer) {
	m.offers.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", string(o.Outcome))))
}

func (m *metrics) retry(ctx context.Context, n int64, outcome store.OfferOutcome) {
	m.retries.Add(ctx, n, metric.WithAttributes(attribute.String("outcome", string(outcome))))
}

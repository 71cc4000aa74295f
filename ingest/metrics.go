package ingest

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/telemetry"
)

// Metrics counts what comes in.
type Metrics struct {
	events  metric.Int64Counter
	batches metric.Int64Histogram
	errors  metric.Int64Counter
}

// NewMetrics makes the instruments of the doors.
func NewMetrics(m metric.Meter) (*Metrics, error) {
	i := telemetry.Instruments{Meter: m}
	made := &Metrics{
		events: i.Counter("rendezvous.ingest.events", "{event}",
			"Events taken in, by outcome: new, duplicate, matched, kept, dead, not_waiting, conflict, failed; rejected by the stream door."),
		batches: i.Sizes("rendezvous.ingest.batch.size", "{item}", "Items of a group commit.", 1, 2, 5, 10, 25, 50, 100, 250, 500),
		errors:  i.Counter("rendezvous.ingest.batch.errors", "{batch}", "Group commits that failed as a whole, by code."),
	}
	if i.Err != nil {
		return nil, i.Err
	}
	for _, kind := range [...]string{kindBuffer, kindDeliver} { // counters begin at 0, or the first increase is invisible to whoever looks at rates
		made.errors.Add(context.Background(), 0, errorOf(kind, rendezvous.CodeUnavailable))
	}
	return made, nil
}

// Kinds of group commits.
const (
	kindBuffer  = "buffer"
	kindDeliver = "deliver"
)

func errorOf(kind string, code rendezvous.Code) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("kind", kind), attribute.String("code", string(code)))
}

func (m *Metrics) batch(ctx context.Context, kind string, n int, err error) {
	m.batches.Record(ctx, int64(n), metric.WithAttributes(attribute.String("kind", kind)))
	if err != nil {
		m.errors.Add(ctx, 1, errorOf(kind, rendezvous.AsError(err).Code))
	}
}

// fate counts what became of one event.
func (m *Metrics) fate(ctx context.Context, tenant, outcome string, err error) {
	switch {
	case err == nil:
	case rendezvous.CodeOf(err) == rendezvous.CodeConflict:
		outcome = "conflict"
	default:
		outcome = "failed"
	}
	m.count(ctx, tenant, outcome)
}

func (m *Metrics) count(ctx context.Context, tenant, outcome string) {
	m.events.Add(ctx, 1, metric.WithAttributes(attribute.String("tenant", tenant), attribute.String("outcome", outcome)))
}

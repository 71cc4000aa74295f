package ingest

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
)

// Metrics counts what comes in.
type Metrics struct {
	events  metric.Int64Counter
	batches metric.Int64Histogram
	errors  metric.Int64Counter
}

// NewMetrics makes the instruments of the doors.
func NewMetrics(m metric.Meter) (*Metrics, error) {
	events, err1 := m.Int64Counter("rendezvous.ingest.events", metric.WithUnit("{event}"),
		metric.WithDescription("Events taken in, by outcome: new, duplicate, matched, kept, dead, not_waiting, conflict, failed; rejected by the stream door."))
	batches, err2 := m.Int64Histogram("rendezvous.ingest.batch.size", metric.WithUnit("{item}"), metric.WithDescription("Items of a group commit."),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 25, 50, 100, 250, 500))
	errs, err3 := m.Int64Counter("rendezvous.ingest.batch.errors", metric.WithUnit("{batch}"), metric.WithDescription("Group commits that failed as a whole, by code."))
	for _, err := range [...]error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	for _, kind := range [...]string{kindBuffer, kindDeliver} { // counters begin at 0, or the first increase is invisible to whoever looks at rates
		errs.Add(context.Background(), 0, errorOf(kind, rendezvous.CodeUnavailable))
	}
	return &Metrics{events: events, batches: batches, errors: errs}, nil
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

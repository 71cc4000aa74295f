package ingest

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
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
		metric.WithDescription("Events taken in, by outcome: new, duplicate, conflict, failed, rejected."))
	batches, err2 := m.Int64Histogram("rendezvous.ingest.batch.size", metric.WithUnit("{item}"), metric.WithDescription("Items of a group commit."),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 25, 50, 100, 250, 500))
	errs, err3 := m.Int64Counter("rendezvous.ingest.batch.errors", metric.WithUnit("{batch}"), metric.WithDescription("Group commits that failed as a whole, by code."))
	for _, err := range [...]error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	return &Metrics{events: events, batches: batches, errors: errs}, nil
}

func (m *Metrics) batch(ctx context.Context, kind string, n int, err error) {
	m.batches.Record(ctx, int64(n), metric.WithAttributes(attribute.String("kind", kind)))
	if err != nil {
		m.errors.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind), attribute.String("code", string(rendezvous.AsError(err).Code))))
	}
}

func (m *Metrics) buffered(ctx context.Context, tenant string, b store.Buffered) {
	outcome := string(b.Outcome)
	switch rendezvous.CodeOf(b.Err) {
	case "":
	case rendezvous.CodeConflict:
		outcome = "conflict"
	default:
		outcome = "failed"
	}
	m.count(ctx, tenant, outcome)
}

func (m *Metrics) count(ctx context.Context, tenant, outcome string) {
	m.events.Add(ctx, 1, metric.WithAttributes(attribute.String("tenant", tenant), attribute.String("outcome", outcome)))
}

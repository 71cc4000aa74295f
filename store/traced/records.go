package traced

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// counted sees what a transaction applies.
type counted struct {
	backend.Tx
	changes *backend.Changes
}

// Apply implements [backend.Tx].
func (c *counted) Apply(ctx context.Context, changes *backend.Changes) error {
	c.changes = changes
	return c.Tx.Apply(ctx, changes)
}

// recorded counts the records of a transaction that is known to be committed. However a wait was answered, it is counted here, once.
func (b *Backend) recorded(ctx context.Context, c *backend.Changes) {
	if c == nil || b.records == nil {
		return
	}
	kinds := map[rendezvous.Kind]int64{}
	for _, r := range c.Records {
		kinds[r.Kind]++
	}
	for kind, n := range kinds {
		b.records.Add(ctx, n, ofKind(kind))
	}
}

func ofKind(k rendezvous.Kind) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("kind", string(k)))
}

// Package traced decorates a storage backend: a span and a duration for every transaction, by verb and outcome, and a count of the records it wrote. It forwards
// everything.
package traced

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Backend is a decorated backend.
type Backend struct {
	inner    backend.Backend
	tracer   trace.Tracer
	clock    clock.Clock
	duration metric.Float64Histogram
	records  metric.Int64Counter
}

var _ backend.Backend = (*Backend)(nil)

// Wrap makes a decorator. A meter that refuses an instrument leaves its numbers out.
func Wrap(tracer trace.Tracer, meter metric.Meter, c clock.Clock) func(backend.Backend) backend.Backend {
	duration, _ := meter.Float64Histogram("rendezvous.store.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of a store transaction, by verb and outcome: ok, stale (made anew), or the error's code."),
		metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5))
	records, err := meter.Int64Counter("rendezvous.store.records", metric.WithUnit("{record}"), metric.WithDescription("Records written to histories, by kind."))
	if err == nil {
		for _, kind := range [...]rendezvous.Kind{rendezvous.RunStarted, rendezvous.WaitRegistered, rendezvous.WaitAnswered} {
			records.Add(context.Background(), 0, ofKind(kind)) // counters begin at 0, or the first increase is invisible to whoever looks at rates
		}
	}
	return func(inner backend.Backend) backend.Backend {
		return &Backend{inner: inner, tracer: tracer, clock: c, duration: duration, records: records}
	}
}

// Update implements [backend.Backend].
func (b *Backend) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	ctx, end := b.begin(ctx, verb)
	var wrote *backend.Changes // of the last try, where the backend makes more than one
	err := end(b.inner.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error {
		seen := &counted{Tx: tx}
		err := fn(ctx, seen)
		wrote = seen.changes
		return err
	}))
	if err == nil {
		b.recorded(ctx, wrote)
	}
	return err
}

// View implements [backend.Backend].
func (b *Backend) View(ctx context.Context, verb string, fn func(ctx context.Context, r backend.Reader) error) error {
	ctx, end := b.begin(ctx, verb)
	return end(b.inner.View(ctx, verb, fn))
}

// Ping implements [backend.Backend].
func (b *Backend) Ping(ctx context.Context) error { return b.inner.Ping(ctx) }

// Close implements [backend.Backend].
func (b *Backend) Close() error { return b.inner.Close() }

// Shards implements [backend.Backend].
func (b *Backend) Shards() int { return b.inner.Shards() }

func (b *Backend) begin(ctx context.Context, verb string) (context.Context, func(error) error) {
	start := b.clock.Now()
	ctx, span := b.tracer.Start(ctx, "store "+verb, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("db.operation.name", verb)))
	return ctx, func(err error) error {
		outcome := outcomeOf(err)
		if err != nil {
			span.SetStatus(codes.Error, outcome)
		}
		span.End()
		if b.duration != nil {
			b.duration.Record(ctx, b.clock.Now().Sub(start).Seconds(), metric.WithAttributes(attribute.String("verb", verb), attribute.String("outcome", outcome)))
		}
		return err
	}
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, backend.ErrStale), errors.Is(err, backend.ErrRetry):
		return "stale"
	}
	return string(rendezvous.AsError(err).Code)
}

package traced_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/traced"
)

func TestForwards(t *testing.T) {
	tracer := sdktrace.NewTracerProvider().Tracer("test")
	backendtest.Forwards(t, traced.Wrap(tracer, noop.NewMeterProvider().Meter("test"), clock.System))
}

// A transaction is a span of its verb's name, and one that was undone says why.
func TestEveryTransactionIsASpan(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("test")
	b := traced.Wrap(tracer, noop.NewMeterProvider().Meter("test"), clock.System)(memory.Open(clock.System, 4))
	for _, err := range []error{nil, rendezvous.Errorf(rendezvous.CodeUnavailable, "away"), backend.ErrStale} {
		got := b.Update(context.Background(), "append", func(context.Context, backend.Tx) error { return err })
		if !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
	}
	var names []string
	for _, s := range spans.GetSpans() {
		if s.Status.Code == codes.Error {
			names = append(names, s.Name+": "+s.Status.Description)
		} else {
			names = append(names, s.Name)
		}
	}
	if want := []string{"store append", "store append: unavailable", "store append: stale"}; !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}
}

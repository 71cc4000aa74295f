package traced_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/traced"
)

// SH-27.
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

// Records count once they are committed, by kind: those of a transaction that was undone do not.
func TestCommittedRecordsAreCounted(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	tracer := sdktrace.NewTracerProvider().Tracer("test")
	b := traced.Wrap(tracer, meter, clock.System)(memory.Open(clock.System, 4))
	for n, err := range []error{nil, backend.ErrStale, nil} {
		got := b.Update(t.Context(), "append", func(ctx context.Context, tx backend.Tx) error {
			r := &backend.Record{Tenant: "acme", WorkflowID: fmt.Sprint("w", n)}
			r.Seq, r.RunID, r.Kind = 1, fmt.Sprint("r", n), rendezvous.WaitRegistered
			r.Effect = "e"
			_, locked := tx.LockWorkflows(ctx, []backend.WorkflowKey{{Tenant: r.Tenant, ID: r.WorkflowID}})
			return errors.Join(locked, tx.Apply(ctx, &backend.Changes{Records: []*backend.Record{r}}), err)
		})
		if !errors.Is(got, err) {
			t.Fatalf("got %v, want %v", got, err)
		}
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, m := range got.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "rendezvous.store.records" {
			for _, p := range sum.DataPoints {
				kind, _ := p.Attributes.Value("kind")
				counts[kind.AsString()] = p.Value
			}
		}
	}
	if want := map[string]int64{"run.started": 0, "wait.registered": 2, "wait.answered": 0}; !maps.Equal(counts, want) {
		t.Errorf("counted %v, want %v", counts, want)
	}
}

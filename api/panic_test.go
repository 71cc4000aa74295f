package api_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// broken is a store that panics.
type broken struct{ store.Store }

func (broken) Tenant(string) (store.Tenant, error) { panic("a bug") }

// A call that meets a bug fails alone: the caller is told nothing of it but unavailable, the log everything.
func TestPanickingVerbFailsAlone(t *testing.T) {
	var log strings.Builder
	s, err := api.New(api.Config{
		Store: broken{}, Clock: clock.System, Log: slog.New(slog.NewTextHandler(&log, nil)), Tracer: tracenoop.NewTracerProvider().Tracer("test"),
		Meter: metricnoop.NewMeterProvider().Meter("test"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	_, err = s.Call(t.Context(), "default", "runs.get", api.Open(), []byte(`{"run_id":"r"}`))
	if !errors.Is(err, rendezvous.ErrUnavailable) || strings.Contains(err.Error(), "a bug") {
		t.Fatalf("the answer: %v", err)
	}
	if !strings.Contains(log.String(), "a bug") {
		t.Fatalf("the log: %s", &log)
	}
}

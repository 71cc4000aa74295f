package api_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/store"
)

// broken is a store that panics.
type broken struct{ store.Store }

func (broken) Tenant(string) (store.Tenant, error) { panic("a bug") }

// bug is a tracer that panics: outside a verb's own work.
type bug struct{ tracenoop.Tracer }

func (bug) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	panic("a bug")
}

// A call that meets a bug outside its verb fails alone too, over either door, and its caller does not know whether it was done.
func TestAPanicOutsideAVerbEndsItsCallAlone(t *testing.T) {
	log := &lockedLog{}
	s, err := api.New(api.Config{
		Clock: clock.System, Log: slog.New(slog.NewTextHandler(log, nil)), Tracer: bug{}, Meter: metricnoop.NewMeterProvider().Meter("test"),
	})
	must(t, err)
	defer s.Stop(t.Context())
	w := httptest.NewRecorder()
	s.HTTP(nil).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/v1/acme/system.info", nil))
	checkRefused(t, reply{w.Code, w.Header(), w.Body.Bytes()}, 503, "commit_unknown")

	at, _ := nodetest.Broker(t)
	nc := nodetest.NATS(t, at)
	door, err := s.ServeNATS(nc, "rdv", "0.0.1")
	must(t, err)
	defer door.Stop(t.Context())
	for range 2 {
		refused(t, natsDoor{nc}, "acme", "system.info", "", 503, "commit_unknown")
	}
	if text := log.String(); strings.Count(text, "a bug") != 3 || !strings.Contains(text, "panic_test.go") {
		t.Errorf("the log: %s", text)
	}
}

// lockedLog is written by several.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

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

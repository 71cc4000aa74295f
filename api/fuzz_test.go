package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/ingest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/wire"
)

// silent sends no notices.
type silent struct{}

func (silent) Send(context.Context, store.Notices) error { return nil }
func (silent) Try(context.Context, store.Notices)        {}

// newService is a service over a store in memory, without any door.
func newService(t testing.TB, s store.Store) *api.Service {
	t.Helper()
	m, err := ingest.NewMetrics(metricnoop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	door := ingest.NewDoor(s, silent{}, group.Config{}, tracenoop.Tracer{}, m)
	service, err := api.New(api.Config{
		Store: s, Door: door, Sender: silent{}, Clock: clock.System, Log: log, Tracer: tracenoop.Tracer{}, Meter: metricnoop.Meter{}, Version: "0.0.1", Kind: "memory",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(service.Stop(context.Background()), door.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return service
}

func memoryStore(t testing.TB) store.Store {
	t.Helper()
	s, err := open.Open(context.Background(), "memory:", open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// FuzzVerb sends any body to any verb: the answer is JSON or an error of the closed set, and the service lives on.
func FuzzVerb(f *testing.F) {
	for _, s := range append(slices.Clone(drive), steer...) {
		f.Add(s.verb, []byte(s.request))
	}
	for _, c := range badRequests {
		if len(c.body) < 4096 {
			f.Add(c.verb, []byte(c.body))
		}
	}
	service := newService(f, memoryStore(f))
	codes := []rendezvous.Code{
		rendezvous.CodeInvalid, rendezvous.CodeNotFound, rendezvous.CodeConflict, rendezvous.CodeDuplicate, rendezvous.CodeFenced, rendezvous.CodeLeaseHeld,
		rendezvous.CodeSealed, rendezvous.CodeTooLarge, rendezvous.CodeRateLimited,
	}
	f.Fuzz(func(t *testing.T, verb string, body []byte) {
		if verb == "runs.history" && strings.Contains(string(body), "wait") {
			return // a long poll
		}
		got, err := service.Call(t.Context(), "acme", verb, api.Open(), body)
		if err == nil {
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("%s %q: the reply does not encode: %v", verb, body, err)
			}
			return
		}
		e := wire.ErrorOf(err)
		if !slices.Contains(codes, e.Code) {
			t.Errorf("%s %q: %s: %s", verb, body, e.Code, e.Message)
		}
		if len(e.Message) > 1000 {
			t.Errorf("%s %q: a message of %d bytes", verb, body, len(e.Message))
		}
		if _, err := service.Call(t.Context(), "acme", "system.check", api.Open(), nil); err != nil {
			t.Fatalf("after %s %q: %v", verb, body, err)
		}
	})
}

// strangers is a store that hands out the handle of another tenant.
type strangers struct{ store.Store }

func (s strangers) Tenant(string) (store.Tenant, error) { return s.Store.Tenant("stranger") }

// EV-17: every door compares the tenant that a handle names; another one is refused, naming both, and nothing is done.
func TestAHandleOfAnotherTenantIsRefused(t *testing.T) {
	s := memoryStore(t)
	service := newService(t, strangers{s})
	for _, verb := range []string{"runs.start", "system.info", "events.put"} {
		_, err := service.Call(t.Context(), "acme", verb, api.Open(), []byte(`{}`))
		if err == nil || !strings.Contains(err.Error(), "stranger") || !strings.Contains(err.Error(), "acme") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

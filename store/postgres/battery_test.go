package postgres_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/storetest"
	"github.com/rendezvous-events/rendezvous/store/traced"
)

// TestBackend asks postgres what store/engine relies on.
func TestBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) (backend.Backend, func(time.Duration)) {
		url := stopped.Database(t)
		return open(t, url), advancer(t, url)
	})
}

func harness(t *testing.T, o storetest.Options) *storetest.Harness {
	t.Helper()
	url := stopped.Database(t)
	o.Advance, o.Damage = advancer(t, url), damage{url}
	o.Reopen = func(t *testing.T) backend.Backend { return open(t, url) }
	return storetest.Assemble(t, open(t, url), o)
}

// TestBattery proves the contract on postgres.
func TestBattery(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return harness(t, storetest.Options{}) })
}

// TestBatteryDecorated proves that what production puts around a backend changes nothing.
func TestBatteryDecorated(t *testing.T) {
	layers := []func(backend.Backend) backend.Backend{
		traced.Wrap(otel.Tracer("test"), otel.Meter("test"), clock.System),
		func(b backend.Backend) backend.Backend { return fault.Wrap(b) },
	}
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return harness(t, storetest.Options{Layers: layers}) })
}

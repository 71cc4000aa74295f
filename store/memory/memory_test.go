package memory_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/storetest"
	"github.com/rendezvous-events/rendezvous/store/traced"
)

// began is when the clocks of the tests begin: a whole microsecond that is no whole millisecond.
var began = time.Date(2026, 3, 1, 9, 30, 0, 123457000, time.UTC)

func open(t *testing.T, o storetest.Options) *storetest.Harness {
	t.Helper()
	c := clock.NewManual(began)
	b := memory.Open(c, rendezvous.DefaultShards)
	o.Advance, o.Damage = c.Advance, b.Damage()
	return storetest.Assemble(t, b, o)
}

// TestBattery proves the contract on memory.
func TestBattery(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return open(t, storetest.Options{}) })
}

// TestBatteryDecorated proves that what production puts around a backend changes nothing.
func TestBatteryDecorated(t *testing.T) {
	layers := []func(backend.Backend) backend.Backend{
		traced.Wrap(otel.Tracer("test"), otel.Meter("test"), clock.System),
		func(b backend.Backend) backend.Backend { return fault.Wrap(b) },
	}
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return open(t, storetest.Options{Layers: layers, Fewer: 10}) })
}

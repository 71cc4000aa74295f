package postgres_test

import (
	"sync"
	"sync/atomic"
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

// stores lends empty stores, their clocks standing still, to one case after the other: making a database costs more than most cases do.
type stores struct {
	tb   testing.TB // the databases live as long
	mu   sync.Mutex
	free []string
}

// lend answers the URL of an empty store and who is to be told when it is damaged; it comes back when the case is over.
func (s *stores) lend(t *testing.T) (url string, damaged *atomic.Bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		url, s.free = s.free[n-1], s.free[:n-1]
	} else {
		url = stopped.Database(s.tb)
	}
	damaged = &atomic.Bool{}
	t.Cleanup(func() {
		if damaged.Load() || t.Failed() {
			return
		}
		execute(t, url, "DELETE FROM woken; DELETE FROM wait_keys; DELETE FROM waits; DELETE FROM event_keys; DELETE FROM events;"+
			"DELETE FROM batches; DELETE FROM history; DELETE FROM runs; DELETE FROM workflows; DELETE FROM meta")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, url)
	})
	return url, damaged
}

// TestBackend asks postgres what store/engine relies on.
func TestBackend(t *testing.T) {
	s := &stores{tb: t}
	backendtest.Run(t, func(t *testing.T) (backend.Backend, func(time.Duration)) {
		url, _ := s.lend(t)
		return open(t, url), advancer(t, url)
	})
}

func (s *stores) harness(t *testing.T, o storetest.Options) *storetest.Harness {
	t.Helper()
	url, damaged := s.lend(t)
	o.Advance, o.Damage = advancer(t, url), damage{url, damaged}
	o.Reopen = func(t *testing.T) backend.Backend { return open(t, url) }
	return storetest.Assemble(t, open(t, url), o)
}

// TestBattery proves the contract on postgres.
func TestBattery(t *testing.T) {
	s := &stores{tb: t}
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return s.harness(t, storetest.Options{}) })
}

// TestBatteryDecorated proves that what production puts around a backend changes nothing.
func TestBatteryDecorated(t *testing.T) {
	s := &stores{tb: t}
	layers := []func(backend.Backend) backend.Backend{
		traced.Wrap(otel.Tracer("test"), otel.Meter("test"), clock.System),
		func(b backend.Backend) backend.Backend { return fault.Wrap(b) },
	}
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return s.harness(t, storetest.Options{Layers: layers}) })
}

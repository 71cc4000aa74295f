package memory_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// TestBackend asks memory what store/engine relies on.
func TestBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) (backend.Backend, func(time.Duration)) {
		c := clock.NewManual(began)
		return memory.Open(c, rendezvous.DefaultShards), c.Advance
	})
}

// TestACorruptTimer: a timer that does not decode keeps its place and can be put off (R9).
func TestACorruptTimer(t *testing.T) {
	b := memory.Open(clock.NewManual(began), rendezvous.DefaultShards)
	backendtest.CorruptTimer(t, b, b.Damage().Timer)
}

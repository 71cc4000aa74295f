package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

var began = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

func open(t testing.TB, dir string, c clock.Clock) *sqlite.Backend {
	t.Helper()
	b, err := sqlite.Open(context.Background(), sqlite.Config{Dir: dir, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBackend asks sqlite what store/engine relies on.
func TestBackend(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(t *testing.T) (backend.Backend, func(time.Duration)) {
		c := clock.NewManual(began)
		return open(t, t.TempDir(), c), c.Advance
	})
}

// TestACorruptTimer: a timer that does not decode keeps its place and can be put off (R9).
func TestACorruptTimer(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, clock.NewManual(began))
	t.Cleanup(func() { _ = b.Close() })
	backendtest.CorruptTimer(t, b, damage{dir}.Timer)
}

func harness(t *testing.T, o storetest.Options) *storetest.Harness {
	t.Helper()
	dir, c := t.TempDir(), clock.NewManual(began)
	b := open(t, dir, c)
	o.Advance, o.Damage = c.Advance, damage{dir}
	o.Reopen = func(t *testing.T) backend.Backend {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = open(t, dir, c)
		return b
	}
	return storetest.Assemble(t, b, o)
}

// TestBattery proves the contract on sqlite.
func TestBattery(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return harness(t, storetest.Options{}) })
}

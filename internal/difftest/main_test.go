package difftest

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// Sequences is how many sequences a run makes: RDV_SEQUENCES, or 60; the flag -rapid.checks wins.
func TestMain(m *testing.M) {
	set := map[string]string{"rapid.checks": "60", "rapid.steps": "40", "rapid.nofailfile": "true"}
	if n := os.Getenv("RDV_SEQUENCES"); n != "" {
		set["rapid.checks"] = n
	}
	for name, value := range set {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(pgtest.WithCluster(m))
}

func memoryKind() Kind {
	var c *clock.Manual
	return Kind{
		Name: "memory",
		Empty: func() (backend.Backend, error) {
			c = clock.NewManual(Base)
			return memory.Open(c, rendezvous.DefaultShards), nil
		},
		Shift: func(d time.Duration) error { c.Advance(d); return nil },
	}
}

// tables are what a store keeps of its tenants.
const tables = "DELETE FROM woken; DELETE FROM wait_keys; DELETE FROM waits; DELETE FROM event_keys; DELETE FROM events;" +
	"DELETE FROM batches; DELETE FROM history; DELETE FROM runs; DELETE FROM workflows;"

func sqliteKind(t *testing.T) Kind {
	t.Helper()
	c, dir := clock.NewManual(Base), t.TempDir()
	b, err := sqlite.Open(context.Background(), sqlite.Config{Dir: dir, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	other, err := zombie.OpenConn(filepath.Join(dir, "rendezvous.db"), zombie.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return Kind{
		Name: "sqlite",
		Empty: func() (backend.Backend, error) {
			c.Set(Base)
			return b, sqlitex.ExecuteScript(other, tables, nil)
		},
		Shift: func(d time.Duration) error { c.Advance(d); return nil },
	}
}

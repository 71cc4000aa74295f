package difftest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// Sequences is how many sequences a run makes: RDV_SEQUENCES, or 60; the flag -rapid.checks wins.
func TestMain(m *testing.M) {
	set := map[string]string{"rapid.checks": "60", "rapid.steps": "40", "rapid.nofailfile": "true", "rapid.shrinktime": "1ns"}
	set["rapid.checks"] = cmp.Or(os.Getenv("RDV_SEQUENCES"), set["rapid.checks"])
	for name, value := range set {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(pgtest.WithCluster(m))
}

// sequences is how many histories of overlapping calls a test makes.
func sequences(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func memoryKind() Kind {
	var c *clock.Manual
	return Kind{
		Name:   "memory",
		Serial: true,
		Empty: func() (backend.Backend, error) {
			c = clock.NewManual(Base)
			return memory.Open(c, rendezvous.DefaultShards), nil
		},
		Shift: func(d time.Duration) error { c.Advance(d); return nil },
	}
}

// tables are what a store keeps of its tenants.
const tables = "DELETE FROM push_log; DELETE FROM push_registrations; DELETE FROM woken; DELETE FROM wait_keys; DELETE FROM waits; DELETE FROM event_keys; DELETE FROM dead_keys; DELETE FROM events;" +
	"DELETE FROM batches; DELETE FROM history; DELETE FROM runs; DELETE FROM workflows;"

// quickDir is a directory in memory where the system has one: a commit that waits for the disk costs more than all the rest, and nothing here is about that.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "difftest")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func sqliteKind(t *testing.T) Kind {
	t.Helper()
	c, dir := clock.NewManual(Base), quickDir(t)
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
		Name:   "sqlite",
		Serial: true,
		Empty: func() (backend.Backend, error) {
			c.Set(Base)
			return b, sqlitex.ExecuteScript(other, tables, nil)
		},
		Reopen: func() (_ backend.Backend, err error) {
			if err := b.Close(); err != nil {
				return nil, err
			}
			b, err = sqlite.Open(context.Background(), sqlite.Config{Dir: dir, Clock: c})
			return b, err
		},
		Shift: func(d time.Duration) error { c.Advance(d); return nil },
	}
}

// stopped is an empty store whose clock stands.
var stopped = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	return errors.Join(postgres.Migrate(ctx, url), postgres.StopClock(ctx, url))
})

// postgresKind keeps one connection for what [postgres.ShiftClock] would open one for each time. Commits do not wait for the disk: nothing here is about that.
func postgresKind(t *testing.T) Kind {
	t.Helper()
	ctx, url := context.Background(), stopped.Database(t)+"&synchronous_commit=off"
	other, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := postgres.Open(ctx, postgres.Config{URL: url, TestClock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), other.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	sequences := 0
	return Kind{
		Name: "postgres",
		Empty: func() (backend.Backend, error) {
			empty := tables
			if sequences++; sequences%50 == 0 { // rows that are gone make every page longer
				empty = "TRUNCATE push_log, push_registrations, woken, wait_keys, waits, event_keys, dead_keys, events, batches, history, runs, workflows;"
			}
			_, err := other.Exec(ctx, empty+"UPDATE rdv_clock SET shift = '0', stopped_at = '"+Base.Format(time.RFC3339Nano)+"'")
			return b, err
		},
		Reopen: func() (_ backend.Backend, err error) {
			if err := b.Close(); err != nil {
				return nil, err
			}
			b, err = postgres.Open(ctx, postgres.Config{URL: url, TestClock: true})
			return b, err
		},
		Shift: func(d time.Duration) error {
			_, err := other.Exec(ctx, "UPDATE rdv_clock SET shift = shift + $1 * interval '1 microsecond'", d.Microseconds())
			return err
		},
	}
}

package open_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/open"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.WithCluster(m)) }

// works starts a run and reads it back.
func works(t *testing.T, s store.Store) {
	t.Helper()
	ctx := context.Background()
	if err := s.Ping(ctx); err != nil {
		t.Fatalf("ping: %v", err)
	}
	tenant, err := s.Tenant("default")
	if err != nil {
		t.Fatal(err)
	}
	started, err := tenant.StartRun(ctx, store.Start{Type: "order"}, time.Time{})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	records, err := tenant.ReadHistory(ctx, started.WorkflowID)
	if err != nil || len(records) != 1 || records[0].RunID != started.RunID {
		t.Fatalf("the history of the started run is %+v, %v; want its start", records, err)
	}
}

func TestAWrongURLIsRefusedByNameAndKeepsItsSecrets(t *testing.T) {
	for url, says := range map[string]string{
		"":                            "is not a URL",
		"rendezvous":                  "is not a URL",
		"memory:x":                    "nothing behind the colon",
		"memory://":                   "nothing behind the colon",
		"sqlite:":                     "names a directory",
		"postgres:secret@host":        "begins postgres://",
		"mysql://user:secret@host/db": `"mysql" is no store's scheme`,
		strings.Repeat("x", 99) + ":": "is no store's scheme",
	} {
		s, err := open.Open(context.Background(), url, open.Options{})
		if s != nil || !errors.Is(err, rendezvous.ErrInvalid) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v; want invalid, saying %q and no secret", url, s, err, says)
		}
		if kind := open.Kind(url); kind != "" {
			t.Errorf("%q: its kind is %q, want none", url, kind)
		}
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for name, o := range map[string]open.Options{
		"shards":    {Shards: -1},
		"max_event": {MaxEvent: rendezvous.MaxPayload + 1},
	} {
		_, err := open.Open(context.Background(), "memory:", o)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
}

func TestMemoryCannotBeMigrated(t *testing.T) {
	if err := open.Migrate(context.Background(), "memory:"); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("migrating memory: %v, want invalid", err)
	}
}

func TestMemoryIsOpenedOnTheGivenClock(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s, err := open.Open(context.Background(), "memory:", open.Options{Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	works(t, s)
	now, err := s.Now(context.Background())
	if err != nil || !now.Equal(c.Now()) {
		t.Errorf("now is %s, %v; want the clock's %s", now, err, c.Now())
	}
	closed(t, s)
}

func closed(t *testing.T, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestPostgresIsOpenedMigratedOrRefused(t *testing.T) {
	ctx, url := context.Background(), pgtest.Database(t)
	if _, err := open.Open(ctx, url, open.Options{}); err == nil {
		t.Fatal("a database without our schema was opened")
	}
	s, err := open.Open(ctx, url, open.Options{Migrate: true, Shards: 8})
	if err != nil {
		t.Fatalf("open and migrate: %v", err)
	}
	works(t, s)
	closed(t, s)
	if err := open.Migrate(ctx, url); err != nil {
		t.Errorf("migrating what is migrated: %v", err)
	}
	s, err = open.Open(ctx, strings.Replace(url, "postgres:", "postgresql:", 1), open.Options{})
	if err != nil {
		t.Fatalf("open again: %v", err)
	}
	works(t, s)
	closed(t, s)
	if _, err := open.Open(ctx, url, open.Options{Shards: 16}); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("another number of shards than the store's: %v, want invalid", err)
	}
}

func TestDecoratorsSeeEveryTransactionByItsVerb(t *testing.T) {
	var faults *fault.Backend
	s, err := open.Open(context.Background(), "memory:", open.Options{Wrap: func(b backend.Backend) backend.Backend {
		faults = fault.Wrap(b)
		return faults
	}})
	if err != nil {
		t.Fatal(err)
	}
	faults.Arm(fault.Failure{Verb: "start_run", Point: fault.BeforeCommit})
	tenant, err := s.Tenant("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenant.StartRun(context.Background(), store.Start{Type: "order"}, time.Time{}); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("a start under an armed failure: %v, want unavailable", err)
	}
	closed(t, s)
}

func TestSQLiteIsOpenedInADirectoryAndKeepsAll(t *testing.T) {
	ctx, url := context.Background(), "sqlite:"+t.TempDir()+"/store"
	s, err := open.Open(ctx, url, open.Options{Shards: 8})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	tenant, err := s.Tenant("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenant.StartRun(ctx, store.Start{WorkflowID: "w", Type: "order"}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Open(ctx, url, open.Options{}); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("opening it twice: %v, want invalid", err)
	}
	closed(t, s)
	if err := open.Migrate(ctx, url); err != nil {
		t.Errorf("migrating what is migrated: %v", err)
	}
	if s, err = open.Open(ctx, strings.Replace(url, "sqlite:", "sqlite://", 1), open.Options{}); err != nil {
		t.Fatalf("open again: %v", err)
	}
	if tenant, err = s.Tenant("default"); err != nil {
		t.Fatal(err)
	}
	if records, err := tenant.ReadHistory(ctx, "w"); err != nil || len(records) != 1 {
		t.Errorf("the history after reopening is %v, %v", records, err)
	}
	works(t, s)
	closed(t, s)
	if kind := open.Kind(url); kind != "sqlite" {
		t.Errorf("its kind is %q", kind)
	}
	if _, err := open.Open(ctx, url, open.Options{Shards: 16}); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("another number of shards than the store's: %v, want invalid", err)
	}
}

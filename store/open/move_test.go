package open_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// begin starts a run in the store at url and answers its workflow.
func begin(t *testing.T, url string) (workflow string) {
	t.Helper()
	s, err := open.Open(t.Context(), url, open.Options{Migrate: true, Shards: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	tenant, err := s.Tenant("default")
	if err != nil {
		t.Fatal(err)
	}
	started, err := tenant.StartRun(t.Context(), store.Start{Type: "order"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return started.WorkflowID
}

// has fails the test unless the store at url has that workflow, and works.
func has(t *testing.T, url, workflow string) {
	t.Helper()
	s, err := open.Open(t.Context(), url, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	tenant, err := s.Tenant("default")
	if err != nil {
		t.Fatal(err)
	}
	if records, err := tenant.ReadHistory(t.Context(), workflow); err != nil || len(records) != 1 {
		t.Errorf("the history of %s in %.9s: %+v, %v", workflow, url, records, err)
	}
	works(t, s)
}

// A store moves by URL, to a database or a directory that is empty, shards and all, and its name in the mark holds no password.
func TestAStoreIsCopiedByURL(t *testing.T) {
	t.Parallel()
	dir, database := t.TempDir(), pgtest.Database(t)
	here, back := "sqlite:"+filepath.Join(dir, "here"), "sqlite:"+filepath.Join(dir, "back")
	workflow := begin(t, here)
	var seen []move.Progress
	watch := func(p move.Progress) { seen = append(seen, p) }
	report, err := open.Copy(t.Context(), here, database, watch)
	if err != nil || report[backend.Workflows].Rows != 1 || len(seen) == 0 {
		t.Fatalf("%v, %v, %v", report, seen, err)
	}
	if report, err = open.Copy(t.Context(), database, back, nil); err != nil || report[backend.History].Rows != 1 {
		t.Fatalf("%v, %v", report, err)
	}
	has(t, database, workflow)
	has(t, back, workflow)
	if _, err := open.Open(t.Context(), back, open.Options{Shards: 16}); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("another number of shards than the source's: %v", err)
	}
	_, err = open.Copy(t.Context(), here, database, nil)
	if !errors.Is(err, rendezvous.ErrInvalid) || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("onto a store that works: %v", err)
	}
	u, _, _ := strings.Cut(strings.TrimPrefix(database, "postgres://"), "@")
	if _, password, ok := strings.Cut(u, ":"); !ok || strings.Contains(err.Error(), password) {
		t.Errorf("tells the password: %v", err)
	}
}

func TestWhatIsNoStoreIsNeitherCopiedNorBackedUp(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	here := "sqlite:" + filepath.Join(dir, "here")
	begin(t, here)
	refused := func(says string, err error) {
		t.Helper()
		if !errors.Is(err, rendezvous.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want invalid saying %q", err, says)
		}
	}
	copied := func(from, to string) error { _, err := open.Copy(ctx, from, to, nil); return err }
	refused("there is no store in", copied("sqlite:"+dir, here))
	refused("keeps nothing", copied("memory:", here))
	refused("keeps nothing", copied(here, "memory:"))
	refused("is not a URL", copied(here, "elsewhere"))
	refused("in use by another", copied(here, here))
	refused("pg_dump", open.Backup(ctx, "postgres://nobody@127.0.0.1:1/none", filepath.Join(dir, "backup")))
	refused("keeps nothing", open.Backup(ctx, "memory:", filepath.Join(dir, "backup")))
	refused("is there already", open.Backup(ctx, here, dir))
	if err := open.Backup(ctx, here, filepath.Join(dir, "backup")); err != nil {
		t.Error(err)
	}
	if faults, err := open.Check(ctx, "sqlite:"+filepath.Join(dir, "backup")); err != nil || len(faults) > 0 {
		t.Errorf("%q, %v", faults, err)
	}
}

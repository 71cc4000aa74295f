package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// R8, EV-13: where the answer to COMMIT is lost, the caller is told that nobody knows, and the same call again finds out.
func TestLostCommitAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		cut   cut
		again store.BufferOutcome
	}{
		{"COMMIT was carried out", cutAfterCommit, store.BufferDuplicate},
		{"COMMIT never arrived", cutBeforeCommit, store.BufferNew},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, url := startProxy(t, migrated.Database(t))
			s, err := engine.New(open(t, url), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			items := storetest.EventsOf("acme", 0, 3)
			p.arm(c.cut)
			_, err = s.BufferBatch(t.Context(), items, time.Time{})
			if !errors.Is(err, rendezvous.ErrCommitUnknown) {
				t.Fatalf("got %v, want commit_unknown", err)
			}
			again, err := s.BufferBatch(t.Context(), items, time.Time{})
			if err != nil {
				t.Fatalf("the same call again: %v", err)
			}
			for i, a := range again {
				if a.Outcome != c.again {
					t.Errorf("event %d again: %q, want %q", i, a.Outcome, c.again)
				}
			}
		})
	}
}

// A connection cut before COMMIT has written nothing, and the store goes on with another.
func TestCutConnection(t *testing.T) {
	p, url := startProxy(t, migrated.Database(t))
	b := open(t, url)
	defer b.Close()
	err := b.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
		p.cutAll()
		_, err := tx.NewTakes(ctx, 1)
		return err
	})
	if !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	if err := b.Ping(t.Context()); err != nil {
		t.Errorf("ping after the cut: %v", err)
	}
}

// The rows of a batch that broke off before its turn know no columns. They are an error as any, whatever it broke off by.
func TestABatchThatBrokeOffIsAnError(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), migrated.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var batch pgx.Batch
	batch.Queue("SELECT 1").Query(postgres.Each)
	results := conn.SendBatch(t.Context(), &batch)
	rows, _ := results.Query() // as Close hands them to whoever queued the query
	if err := postgres.Each(rows); err == nil {
		t.Error("no error")
	}
	if err := results.Close(); err == nil {
		t.Error("no error of the batch")
	}
}

// A caller that gives up gets nothing written, and its connection is good for others.
func TestCallerThatGivesUp(t *testing.T) {
	b := open(t, migrated.Database(t), func(c *postgres.Config) { c.MaxConns = 1 })
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err := b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Apply(ctx, &backend.Changes{NewBatches: []*backend.Batch{{Tenant: "acme", RunID: "r", ID: "b"}}}); err != nil {
			return err
		}
		cancel()
		return nil
	})
	if !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	key := backend.BatchKey{Tenant: "acme", RunID: "r", ID: "b"}
	err = b.View(t.Context(), "test", func(ctx context.Context, r backend.Reader) error {
		rows, err := r.Batches(ctx, []backend.BatchKey{key})
		if len(rows) != 0 {
			t.Error("what was given up is there")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A killed server is unavailable, and the store serves again once it is back, without being opened again; what was committed is there.
func TestKilledServer(t *testing.T) {
	cluster, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	url := cluster.URL("postgres")
	b := open(t, url, func(c *postgres.Config) { c.Migrate = true })
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	items := storetest.EventsOf("acme", 0, 2)
	storetest.BufferAll(t, s, items[:1])
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	err = s.Ping(t.Context())
	for range 3_000 { // a session that is left over may answer until it notices
		if err != nil || clock.Sleep(t.Context(), clock.System, 10*time.Millisecond) != nil {
			break
		}
		err = s.Ping(t.Context())
	}
	if !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("ping of a killed server: %v, want unavailable", err)
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := s.BufferBatch(t.Context(), items, time.Time{})
	if err != nil {
		t.Fatalf("after the restart: %v", err)
	}
	if done[0].Outcome != store.BufferDuplicate || done[1].Outcome != store.BufferNew {
		t.Errorf("after the restart: %q, %q; want duplicate, new", done[0].Outcome, done[1].Outcome)
	}
}

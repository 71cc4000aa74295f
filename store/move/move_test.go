package move_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

const shards = rendezvous.DefaultShards

var migrated = pgtest.NewTemplate(postgres.Migrate)

// now is about when tests run, so that a copy on PostgreSQL, whose clock is its own, is not hours behind or ahead. A test may move it some seconds on.
func now() *clock.Manual {
	return clock.NewManual(clock.System.Now().Add(-15 * time.Second).Truncate(time.Microsecond))
}

func inMemory(c clock.Clock) *memory.Backend { return memory.Open(c, shards) }

// embedded opens a store in dir to copy to it, or from it.
func embedded(t *testing.T, dir string, c clock.Clock) *sqlite.Backend {
	t.Helper()
	b, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, Clock: c, Shards: shards, Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// server opens a store at url to copy to it, or from it.
func server(t *testing.T, url string) *postgres.Backend {
	t.Helper()
	b, err := postgres.Open(t.Context(), postgres.Config{URL: url, Shards: shards, Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func closed(t *testing.T, b backend.Backend) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// copied copies, a few rows in a transaction.
func copied(t *testing.T, from, to backend.Backend) move.Report {
	t.Helper()
	report, err := move.Copy(t.Context(), from, to, move.Options{From: "there", To: "here", Rows: 3})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// pages are all rows of a store.
func pages(t *testing.T, b backend.Backend) (all []*backend.Page) {
	t.Helper()
	err := b.View(t.Context(), "test", func(ctx context.Context, r backend.Reader) error {
		for _, kind := range backend.Kinds {
			for at := (backend.Position{}); ; {
				p, err := r.(backend.Source).Scan(ctx, kind, at, 7, 1<<20)
				if err != nil {
					return err
				}
				if p.Rows == 0 {
					break
				}
				all, at = append(all, p), p.Last
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Everything comes through every kind of store, and work goes on where the copy ends: a parked wait is delivered, an open wait meets an event, an event that
// was alone meets a wait, and no number is given twice.
func TestEverythingIsCopiedAndWorkGoesOn(t *testing.T) {
	t.Parallel()
	c, dir := now(), t.TempDir()
	first := inMemory(c)
	h := storetest.Assemble(t, first, storetest.Options{Advance: c.Advance})
	w := fill(t, h)
	wantEverything(t, first)

	second := embedded(t, filepath.Join(dir, "second"), c)
	report := copied(t, first, second)
	for kind, tally := range report {
		if tally.Rows == 0 {
			t.Errorf("no %s", kind)
		}
	}
	url := migrated.Database(t)
	third := server(t, url)
	same(t, report, copied(t, second, third))
	closed(t, second)
	fourth := embedded(t, filepath.Join(dir, "fourth"), c)
	same(t, report, copied(t, third, fourth))
	wantEverything(t, fourth)
	closed(t, fourth)
	for _, name := range []string{"second", "fourth"} {
		if faults, err := sqlite.Check(t.Context(), filepath.Join(dir, name)); err != nil || len(faults) > 0 {
			t.Errorf("%v, %q", err, faults)
		}
	}

	given := numbers(t, first)
	fourth, err := sqlite.Open(t.Context(), sqlite.Config{Dir: filepath.Join(dir, "fourth"), Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]backend.Backend{"sqlite": fourth, "postgres": third} {
		t.Run(name, func(t *testing.T) { goOn(t, b, w, given) })
	}
}

func same(t *testing.T, want, got move.Report) {
	t.Helper()
	for kind, tally := range want {
		if kind == backend.ShardLeases && got[kind].Rows == tally.Rows {
			continue // their epochs are later with each copy
		}
		if got[kind] != tally {
			t.Errorf("%s: %v, want %v", kind, got[kind], tally)
		}
	}
}

// numbers is what a store has given.
func numbers(t *testing.T, b backend.Backend) (n backend.Numbers) {
	t.Helper()
	err := b.View(t.Context(), "test", func(ctx context.Context, r backend.Reader) (err error) {
		n, err = r.(backend.Source).Given(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// goOn works on a copy.
func goOn(t *testing.T, b backend.Backend, w *world, given backend.Numbers) {
	err := b.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
		events, _ := tx.NewEventNumbers(ctx, 1)
		waits, _ := tx.NewWaitNumbers(ctx, 1)
		takes, err := tx.NewTakes(ctx, 1)
		if err != nil || events[0] <= given.Event || waits[0] <= given.Wait || takes[0] <= given.Take {
			t.Errorf("%v: numbers %v %v %v are not above %+v", err, events, waits, takes, given)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h := storetest.Assemble(t, b, storetest.Options{Advance: func(time.Duration) {}})
	f := h.FixOf(t, "acme")
	here := func(r *storetest.Flow) *storetest.Flow {
		return &storetest.Flow{F: f, WorkflowID: r.WorkflowID, ID: r.ID}
	}

	here(w.answered).WantAnswered("w", w.paid)
	f.WantLive(w.alone, w.large)

	leased := here(w.leased)
	leased.WantParked("w", w.held)
	d := &storetest.Driver{Flow: leased, Epoch: leased.Describe().LeaseEpoch, Seen: leased.Head()}
	if got := d.Collect(); len(got.Records) != 1 {
		t.Errorf("collected %+v", got)
	}
	leased.WantAnswered("w", w.held)

	e := storetest.EventOf("paid", storetest.K("order", odd))
	e.Source = "shop"
	f.Send(e)
	here(w.free).WantAnswered("w", e)
	late := f.Start()
	if got := late.Register(late.Wait("w", "large", storetest.K("size", "1"))); got.Outcome != "answered" {
		t.Errorf("a wait for an event that was copied: %+v", got)
	}
	late.WantAnswered("w", w.large)
	again := f.Put(w.alone)
	if again.Outcome != "duplicate" {
		t.Errorf("an event that was copied comes again: %+v", again)
	}
}

// Shards are free in a copy, and of epochs that nothing from before can have: no pod of the source passes a fence there, and no hold of one holds (shards.md
// section 5). Members stay behind.
func TestShardsAreFreeInACopy(t *testing.T) {
	t.Parallel()
	c := now()
	from, to := inMemory(c), inMemory(c)
	at := c.Now()
	held := &backend.Timer{
		Tenant: "acme", WorkflowID: "w", TimerID: "t", RunID: "r", Class: rendezvous.TimerAuthor, Shard: 3, FireAt: at, ArmedSeq: 1, DueAt: at,
		ReadyAt: at.Add(time.Hour), Token: 70, Holder: "pod/1", HoldEpoch: 6, HeldUntil: at.Add(time.Hour),
	}
	lease := &backend.ShardLease{Pool: backend.TimerPool, Shard: 3, Owner: "pod/1", Epoch: 6, ExpiresAt: at.Add(time.Minute), Serving: true, Address: "10.0.0.1:4222"}
	err := from.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
		if _, err := tx.LockWorkflows(ctx, []backend.WorkflowKey{{Tenant: "acme", ID: "w"}}); err != nil {
			return err
		}
		return tx.Apply(ctx, &backend.Changes{
			Timers: []*backend.Timer{held}, NewShardLeases: []*backend.ShardLease{lease, {Pool: "sweep", Shard: 0, Epoch: 1}},
			Members: []*backend.Member{{Pool: backend.TimerPool, Incarnation: "pod/1", StartedAt: at, ExpiresAt: at.Add(time.Minute)}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	copied(t, from, to)
	err = to.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
		leases, _ := tx.ShardLeases(ctx, backend.TimerPool)
		sweep, _ := tx.ShardLeases(ctx, "sweep")
		want := backend.ShardLease{Pool: backend.TimerPool, Shard: 3, Epoch: 6 + 1<<32}
		if len(leases) != 1 || *leases[0] != want || len(sweep) != 1 || sweep[0].Epoch != 1+1<<32 {
			t.Errorf("leases %+v and %+v", leases, sweep)
		}
		if members, _ := tx.Members(ctx, backend.TimerPool); len(members) > 0 {
			t.Errorf("members %+v", members)
		}
		due, _, err := tx.DueTimers(ctx, []int{3}, 10)
		if len(due) != 1 {
			t.Errorf("due timers %+v", due)
		}
		takes, _ := tx.NewTakes(ctx, 1)
		if takes[0] <= 70 {
			t.Errorf("take %d was given", takes[0])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

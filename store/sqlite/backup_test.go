package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// mounted is the store in dir with the verbs that tests use.
func mounted(t *testing.T, dir string) (*sqlite.Backend, *storetest.Fix) {
	t.Helper()
	c := clock.NewManual(began)
	b := open(t, dir, c)
	return b, storetest.Assemble(t, b, storetest.Options{Advance: c.Advance, Damage: damage{dir}}).Fix(t)
}

// wantSound fails the test unless the store in dir is as it should be.
func wantSound(t *testing.T, dir string) {
	t.Helper()
	if faults, err := sqlite.Check(t.Context(), dir); err != nil || len(faults) > 0 {
		t.Errorf("%s: %v, %q", dir, err, faults)
	}
}

// A backup of a store in use holds a state the store was in, while nobody waits for it; opened, it goes on from there, and gives no number twice.
func TestABackupOfAStoreInUseIsAStore(t *testing.T) {
	t.Parallel()
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	b, f := mounted(t, dir)
	answered, waiting := f.Start(), f.Start()
	parked := f.Start().Drive()
	answered.Waits("w", "paid", storetest.K("order", "1"))
	paid := storetest.EventOf("paid", storetest.K("order", "1"))
	f.Send(paid)
	waiting.Waits("w", "paid", storetest.K("order", "2"))
	held := parked.Parked("w")
	alone := f.PutNew("paid", storetest.K("order", "3"))
	owner := f.H.Pod(t)
	owner.Acquire(3)
	owner.Renew()

	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 4 { // pairs, which no snapshot may part
		writers.Go(func() {
			for ctx.Err() == nil {
				if err := writePair(b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 { // so that there is something to copy
		if err := writePair(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Backup(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	stop()
	writers.Wait()
	if err := b.Backup(t.Context(), target); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("onto a backup: %v, want invalid", err)
	}
	if left, err := filepath.Glob(target + "*"); err != nil || len(left) != 1 {
		t.Errorf("beside the backup: %v, %v", left, err)
	}
	wantSound(t, dir)
	wantSound(t, target)

	copied, g := mounted(t, target)
	pairs(t, copied)
	err := copied.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
		n, err := tx.NewEventNumbers(ctx, 1)
		if err == nil && n[0] <= 1<<32 {
			t.Errorf("number %d after the backup", n[0])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	again := func(r *storetest.Flow) *storetest.Flow {
		return &storetest.Flow{F: g, WorkflowID: r.WorkflowID, ID: r.ID}
	}
	again(answered).WantAnswer("w", paid)
	d := &storetest.Driver{Flow: again(parked.Flow), Epoch: parked.Epoch}
	if _, err := g.Collect(t.Context(), d.ID, d.Epoch); !errors.Is(err, rendezvous.ErrFenced) {
		t.Errorf("who drove before the backup: %v, want fenced", err)
	}
	g.WantState(held.EventID, rendezvous.EventClaimed)
	g.H.Advance(time.Minute)
	g.H.SweepLeases(t)
	d.WantAnswered("w", held)
	if got := again(answered).Drive().Epoch; got != 1<<32+1 {
		t.Errorf("the first epoch after the backup is %d", got)
	}
	if d, err := g.H.Store.ShardDirectory(t.Context(), store.PoolTimer); err != nil || d.Shards[3].Owner != "" || len(d.Members) != 0 {
		t.Errorf("the pool after the backup: %+v, %+v, %v; want a free shard and nobody", d.Shards[3], d.Members, err)
	}
	if got := g.H.Pod(t).Acquire(3); got[0].Epoch != 1<<32+2 {
		t.Errorf("the first epoch of a shard after the backup is %d", got[0].Epoch)
	}
	second := storetest.EventOf("paid", storetest.K("order", "2"))
	g.Send(second)
	again(waiting).WantAnswer("w", second)
	if got := g.WantState(alone.EventID, rendezvous.EventLive); string(got.Payload) != string(alone.Payload) {
		t.Errorf("payload %q", got.Payload)
	}
}

// writePair writes two events at once.
func writePair(b backend.Backend) error {
	return b.Update(context.Background(), "test", func(ctx context.Context, tx backend.Tx) error {
		numbers, err := tx.NewEventNumbers(ctx, 2)
		if err != nil {
			return err
		}
		var c backend.Changes
		for i, n := range numbers {
			c.NewEvents = append(c.NewEvents, &backend.Event{
				Number: n, Tenant: "pairs", Source: []string{"left", "right"}[i], ID: storetest.ID("pair"), Type: "pair", Payload: make([]byte, 2000), Digest: make([]byte, 32),
				ReceivedAt: began, LiveSince: began, State: rendezvous.EventLive,
			})
		}
		return tx.Apply(ctx, &c)
	})
}

// pairs fails the test unless as many left events are live as right ones.
func pairs(t *testing.T, b backend.Backend) {
	t.Helper()
	count := map[string]int{}
	err := b.View(t.Context(), "test", func(ctx context.Context, r backend.Reader) error {
		found, err := r.LiveEvents(ctx, []backend.Lookup{{Tenant: "pairs", Type: "pair", Limit: 1_000_000}})
		if err == nil {
			for _, e := range found[0] {
				count[e.Source]++
			}
		}
		return err
	})
	if err != nil || count["left"] < 50 || count["left"] != count["right"] {
		t.Errorf("%v: %v", count, err)
	}
}

func TestABackupThatCannotBeMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, f := mounted(t, dir)
	f.Start()
	target := filepath.Join(t.TempDir(), "backup")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"a caller that has gone": b.Backup(gone, target),
		"no folder to stand in":  b.Backup(t.Context(), filepath.Join(target, "below")),
		"no target":              b.Backup(t.Context(), ""),
		"no store":               sqlite.Backup(t.Context(), t.TempDir(), target),
	} {
		if err == nil {
			t.Errorf("%s: a backup", what)
		}
	}
	if left, err := filepath.Glob(target + "*"); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// Check says what is wrong with a store, and goes on behind a row that does not decode.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, f := mounted(t, dir)
	r := f.Start()
	r.Waits("w", "paid", storetest.K("order", "1"))
	r.Waits("v", "paid", storetest.K("order", "2"))
	e := f.PutNew("shipped", storetest.K("order", "1"))
	parked := f.Start().Drive()
	parked.Parked("w")
	hour := time.Hour
	if _, err := f.ArmTimer(t.Context(), store.Arm{RunID: r.ID, TimerID: "t", After: &hour, BatchID: "arm"}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	f.Erase(f.PutNew("lost", storetest.K("lost", "1")).EventID)
	wantSound(t, dir)
	for _, damaged := range []struct {
		says string
		do   step
		undo step
	}{
		{"live event 1 has not all its key rows", step{sql: `DELETE FROM event_keys WHERE number = 1`}, step{sql: `INSERT INTO event_keys SELECT tenant, 'order', '1', type, number, live_since, expires_at FROM events WHERE number = 1`}},
		{"open wait 1 has not all its key rows", step{sql: `DELETE FROM wait_keys WHERE number = 1`}, step{sql: `INSERT INTO wait_keys SELECT tenant, 'order', '1', type, number, open_since FROM waits WHERE number = 1`}},
		{"wait 2 has a key row that it must not have", step{sql: `INSERT INTO wait_keys SELECT tenant, 'order', '9', type, 2, 0 FROM waits WHERE number = 2`}, step{sql: `DELETE FROM wait_keys WHERE value = '9'`}},
		{"event 7 has a key row that it must not have", step{sql: `INSERT INTO event_keys VALUES ('acme', 'order', '9', 'paid', 7, 0, NULL)`}, step{sql: `DELETE FROM event_keys WHERE number = 7`}},
		{"the key rows of event 1 say another age", step{sql: `UPDATE event_keys SET live_since = live_since + 1 WHERE number = 1`}, step{sql: `UPDATE event_keys SET live_since = live_since - 1 WHERE number = 1`}},
		{"the key rows of event 1 say another age", step{sql: `UPDATE event_keys SET expires_at = 1 WHERE number = 1`}, step{sql: `UPDATE event_keys SET expires_at = NULL WHERE number = 1`}},
		{"dead letter 3 has not all its key rows", step{sql: `DELETE FROM dead_keys`}, step{sql: `INSERT INTO dead_keys VALUES ('acme', 'lost', '1', 3)`}},
		{"event 1 has a key row of dead letters", step{sql: `INSERT INTO dead_keys VALUES ('acme', 'order', '1', 1)`}, step{sql: `DELETE FROM dead_keys WHERE number = 1`}},
		{"event 3 has a key row of dead letters", step{sql: `INSERT INTO dead_keys VALUES ('acme', 'lost', '2', 3)`}, step{sql: `DELETE FROM dead_keys WHERE value = '2'`}},
		{"parked wait 3 holds an event that is not claimed for it", step{sql: `UPDATE events SET claim_effect = 'x' WHERE number = 2`}, step{sql: `UPDATE events SET claim_effect = 'w' WHERE number = 2`}},
		{"event 2 is claimed for a wait that does not hold it", step{sql: `UPDATE waits SET held_number = 1 WHERE number = 3`}, step{sql: `UPDATE waits SET held_number = 2 WHERE number = 3`}},
		{"the history of workflow acme", step{sql: `UPDATE workflows SET head_seq = head_seq + 1`}, step{sql: `UPDATE workflows SET head_seq = head_seq - 1`}},
		{"belongs to no workflow, or stands in another shard", step{sql: `UPDATE timers SET shard = shard + 1`}, step{sql: `UPDATE timers SET shard = shard - 1`}},
		{"belongs to no workflow, or stands in another shard", step{sql: `UPDATE timers SET workflow_id = workflow_id || 'x'`}, step{sql: `UPDATE timers SET workflow_id = substr(workflow_id, 1, length(workflow_id) - 1)`}},
		{"says that a record armed it which its run does not have", step{sql: `UPDATE timers SET armed_seq = armed_seq + 90`}, step{sql: `UPDATE timers SET armed_seq = armed_seq - 90`}},
		{"the counter of take numbers", step{sql: `UPDATE timers SET token = 1000000`}, step{sql: `UPDATE timers SET token = 0`}},
		{"the stored lease of a shard does not decode (epoch)", step{sql: `INSERT INTO shard_leases VALUES ('timer', 0, '', 0, NULL, 0, '')`}, step{sql: `DELETE FROM shard_leases`}},
		{"the counter of wait numbers", step{sql: `UPDATE counters SET value = 1 WHERE name = 'wait'`}, step{sql: `UPDATE counters SET value = 10000 WHERE name = 'wait'`}},
		{"the stored run row does not decode (status)", step{sql: `UPDATE runs SET status = 'asleep'`}, step{sql: `UPDATE runs SET status = 'running'`}},
	} {
		if err := (damage{dir}).do(damaged.do); err != nil {
			t.Fatal(err)
		}
		faults, err := sqlite.Check(t.Context(), dir)
		if err != nil || !strings.Contains(strings.Join(faults, "\n"), damaged.says) {
			t.Errorf("%s: found %q, %v", damaged.says, faults, err)
		}
		if err := (damage{dir}).do(damaged.undo); err != nil {
			t.Fatal(err)
		}
		wantSound(t, dir)
	}
	for what, err := range map[string]error{
		"event": f.H.Damage.Event("acme", e.EventID), "wait": f.H.Damage.Wait("acme", r.WaitID("w")), "record": f.H.Damage.Record("acme", r.WorkflowID, 2),
		"timer": f.H.Damage.Timer("acme", r.WorkflowID, "t"),
	} {
		if err != nil {
			t.Fatal(what, err)
		}
	}
	faults, err := sqlite.Check(t.Context(), dir)
	told := strings.Join(faults, "\n")
	for _, want := range []string{"history: corrupt", "events: corrupt", "waits: corrupt", "timers: corrupt", r.WorkflowID} {
		if err != nil || !strings.Contains(told, want) {
			t.Errorf("found %v, %s; want %q", err, told, want)
		}
	}
}

func TestCheckTellsOfDamagedPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, _ := mounted(t, dir)
	for range 20 {
		if err := writePair(b); err != nil {
			t.Fatal(err)
		}
	}
	target := filepath.Join(t.TempDir(), "backup")
	if err := b.Backup(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(target, "rendezvous.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(raw) / 4; i < len(raw)/2; i++ {
		raw[i] ^= 0x55
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if faults, err := sqlite.Check(t.Context(), target); err != nil || len(faults) == 0 {
		t.Errorf("%q, %v", faults, err)
	}
}

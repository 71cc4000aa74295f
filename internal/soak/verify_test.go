package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
)

const tenant = "acme"

// migrated is a store that is brought up to date once.
var migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	s, err := open.Open(ctx, url, open.Options{Clock: clock.System, Migrate: true})
	if err != nil {
		return err
	}
	return s.Close()
})

// must fails the test on an error of a step that only prepares.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// world is a small store in order, and what was promised about it: run r1 with an answered wait and an open one, r2 completed, an event that waits.
func world(t *testing.T) (*ledger, string) {
	t.Helper()
	ctx, url := t.Context(), migrated.Database(t)
	s := must[store.Store](t)(open.Open(ctx, url, open.Options{Clock: clock.System}))
	defer s.Close()
	tx := must[store.Tenant](t)(s.Tenant(tenant))
	l := newLedger()
	for _, run := range []string{"r1", "r2"} {
		must[store.Started](t)(tx.StartRun(ctx, store.Start{WorkflowID: "w-" + run, RunID: run, Type: "soak", Queue: queueIdle}, time.Time{}))
		l.started(tenant, "w-"+run, run)
	}
	for _, id := range []string{"a", "left"} {
		must[store.Buffered](t)(tx.Buffer(ctx, event(id, key(id)), time.Time{}))
		l.accepted(tenant, rendezvous.EventID{Source: source, ID: id}, requestDoor)
	}
	for _, effect := range []string{"a", "open"} {
		w := rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: "r1", Effect: effect}, Type: eventType, Keys: []rendezvous.Key{key(effect)}}
		got := must[store.Registered](t)(tx.RegisterWait(ctx, store.Registration{Wait: w}, time.Time{}))
		l.registered(tenant, w.WaitID, got.Answer != nil)
		l.meet(tenant, w.WaitID, rendezvous.EventID{Source: source, ID: effect})
	}
	must[store.Concluded](t)(tx.Conclude(ctx, store.Conclusion{RunID: "r2", ExpectedSeq: 1, BatchID: "end", Outcome: rendezvous.StatusCompleted}, time.Time{}))
	l.concluded(tenant, "r2")
	l.completes(tenant, "w-r2")
	timely(t, s, tx, l)
	return l, url
}

// judge is a verifier of the world.
func judge(t *testing.T) *verifier {
	t.Helper()
	l, url := world(t)
	judged := func(context.Context) (string, error) { return url, nil }
	v := newVerifier(judged, false, l, t.Logf)
	t.Cleanup(func() { v.close(context.Background()) })
	if err := v.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	return v
}

// A store in order passes every check.
func TestChecksFindNothingInAStoreInOrder(t *testing.T) {
	ran, found, err := judge(t).all(t.Context())
	if err != nil || ran == 0 || len(found) > 0 {
		t.Errorf("%d checks found %v, %v", ran, found, err)
	}
}

// damages of a check, one by one.
type damages struct {
	check  string
	damage []string
}

const (
	unlawful = `ALTER TABLE waits DROP CONSTRAINT waits_held, DROP CONSTRAINT waits_open`
	claim    = `UPDATE events SET state = 'claimed', claim_run = 'r1', claim_effect = 'open', claimed_at = now() WHERE id = 'left'`
)

// Each check finds the damage it is there for: a soak that finds nothing says something.
func TestEveryCheckFindsItsDamage(t *testing.T) {
	v, tested := judge(t), map[string]bool{}
	for _, c := range append([]damages{
		{"event_accepted_and_lost", []string{`DELETE FROM events WHERE id = 'left'`}},
		{"event_neither_answered_nor_live", []string{`UPDATE events SET state = 'dead', dead_reason = 'unclaimed', dead_at = now() WHERE id = 'left'`}},
		{"event_consumed_without_answer", []string{`UPDATE events SET seq = 2 WHERE id = 'a'`}},
		{"answer_without_event", []string{`DELETE FROM events WHERE id = 'a'`}},
		{"event_answered_twice", []string{copied(`{"run_id":"r2","effect":"x","workflow_id":"w-r2","seq":9}`)}},
		{"wait_answered_twice", []string{`DROP INDEX history_effects`, copied(`{"seq":9}`)}},
		{"answer_of_a_strange_event", []string{`UPDATE history SET payload = '{"id":"left"}' WHERE kind = 'wait.answered'`}},
		{"answer_of_a_strange_event", []string{`UPDATE events SET keys = '{case,z}' WHERE id = 'a'`}},
		{"answer_of_a_strange_event", []string{`UPDATE events SET type = 'z' WHERE id = 'a'`}},
		{"claim_left_standing", []string{claim}},
		{"claim_left_standing", []string{unlawful, `UPDATE waits SET held_number = 1`}},
		{"pair_left_apart", []string{`UPDATE events SET keys = '{case,z,case,open}' WHERE id = 'left'`}},
		{"pair_left_apart", []string{`UPDATE events SET target = 'r1', keys = '{}' WHERE id = 'left'`}},
		{"accepted_event_of_a_wait_not_its_answer", []string{`UPDATE events SET effect = 'open' WHERE id = 'a'`}},
		{"registration_lost", []string{`DELETE FROM history WHERE kind = 'wait.registered' AND effect = 'open'`}},
		{"registration_lost", []string{`DELETE FROM history WHERE kind = 'wait.answered'`}},
		{"open_wait_without_row", []string{`DELETE FROM waits`}},
		{"open_wait_without_row", []string{`UPDATE waits SET effect = 'a'`}},
		{"history_with_a_gap", []string{`DELETE FROM history WHERE seq = 2 AND workflow_id = 'w-r1'`}},
		{"history_with_a_gap", []string{`UPDATE workflows SET head_seq = head_seq + 1 WHERE workflow_id = 'w-r1'`}},
		{"chain_broken", []string{`UPDATE runs SET last_seq = 1 WHERE run_id = 'r2'`}},
		{"chain_broken", []string{`UPDATE workflows SET run_id = 'r0' WHERE workflow_id = 'w-r1'`}},
		{"run_lost", []string{`DELETE FROM runs WHERE run_id = 'r1'`}},
		{"run_lost", []string{`UPDATE runs SET sealed_at = NULL, outcome = '' WHERE run_id = 'r2'`}},
		{"run_not_completed", []string{`UPDATE workflows SET status = 'failed' WHERE workflow_id = 'w-r2'`}},
		{"match_index_wrong", []string{`DELETE FROM event_keys`}},
		{"match_index_wrong", []string{`DELETE FROM wait_keys`}},
		{"match_index_wrong", []string{`UPDATE event_keys SET value = 'z'`}},
		{"match_index_wrong", []string{`INSERT INTO wait_keys SELECT tenant, namespace, 'z', type, number, open_since FROM wait_keys`}},
		{"count_off", []string{`UPDATE workflows SET open_waits = 0 WHERE workflow_id = 'w-r1'`}},
		{"lease_left_standing", []string{`UPDATE workflows SET lease_owner = 'x', lease_epoch = 1, lease_expires = now() WHERE workflow_id = 'w-r1'`}},
		{"woken_wrong", []string{`UPDATE woken SET run_id = 'r0' WHERE workflow_id = 'w-r1'`}},
	}, timelyDamages...) {
		tested[c.check] = true
		t.Run(c.check, func(t *testing.T) { findsDamage(t, v, c.check, c.damage) })
	}
	if ran, _, err := v.all(t.Context()); err != nil || ran != len(tested) {
		t.Errorf("%d of %d checks are tested: %v", len(tested), ran, err)
	}
}

// findsDamage does damage, looks, and takes it back.
func findsDamage(t *testing.T, v *verifier, check string, damage []string) {
	ctx := t.Context()
	tx := must[pgx.Tx](t)(v.conn.Begin(ctx))
	defer func() { _ = tx.Rollback(context.Background()) }()
	for _, sql := range damage {
		tag := must[pgconn.CommandTag](t)(tx.Exec(ctx, sql))
		if tag.RowsAffected() == 0 && (tag.Update() || tag.Delete() || tag.Insert()) {
			t.Fatalf("%s: damages nothing", sql)
		}
	}
	if f := must[finding](t)(v.check(ctx, check)); len(f.keys) == 0 {
		t.Errorf("after %q it finds nothing", damage)
	}
}

// copied inserts the answer once more, with other columns given as JSON.
func copied(columns string) string {
	return fmt.Sprintf(`INSERT INTO history SELECT (jsonb_populate_record(h, '%s')).* FROM history h WHERE kind = 'wait.answered'`, columns)
}

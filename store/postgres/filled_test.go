package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// fill is a store with much finished work, 20,000 workflows, and a little that is live: ten runs of acme with a wait each ("live-<i>", effect "w", key order/live-<i>), five
// live events nobody waits for (source "live", id and key "alone-<i>"), and parked and quarantined waits and marks of globex.
var fill = []string{
	`INSERT INTO workflows SELECT 'acme', 'done-' || i, 0, 'done-' || i, 'order', 'default', 'completed', 4, t, t, t, t, '', '', '', '', 0, 0, 0, 0, '', 1, NULL,
		'released', '', 0, NULL, NULL, '', '', NULL FROM generate_series(1, 20000) i, LATERAL (SELECT rdv_now() - interval '1 day' + i * interval '1 s') x (t)`,
	`INSERT INTO runs SELECT tenant, run_id, workflow_id, '', '', 'completed', 1, 4, started_at, closed_at, closed_at, 'run.completed', '', NULL FROM workflows
		WHERE workflow_id LIKE 'done-%'`,
	`INSERT INTO history SELECT tenant, workflow_id, s, run_id, (ARRAY['run.started', 'wait.registered', 'wait.answered', 'run.completed'])[s], 1,
		CASE WHEN s IN (2, 3) THEN 'w' ELSE '' END, CASE WHEN s IN (2, 3) THEN 1 ELSE 0 END, s = 3, '{}', NULL, '', '', '', '', started_at, ''
		FROM workflows, generate_series(1, 4) s WHERE workflow_id LIKE 'done-%'`,
	`INSERT INTO events SELECT nextval('event_number'), 2, tenant, 'done', workflow_id, 'paid', ARRAY['order', workflow_id], '', NULL, sha256('x'), started_at,
		started_at, NULL, '', 'consumed', '', '', NULL, workflow_id, run_id, 'w', 3, '', '', NULL, false, 0, 0, NULL, false, 0, 0, false, '', '', '', '', '', '', '' FROM workflows
		WHERE workflow_id LIKE 'done-%'`,
	`INSERT INTO batches SELECT tenant, run_id, 'b', sha256('x'), 1, 4, '{}' FROM workflows WHERE workflow_id LIKE 'done-%'`,
	// Dead letters on the very key and type that live waits and events have.
	`INSERT INTO events SELECT nextval('event_number'), 2, 'acme', 'dead', i::text, 'paid', ARRAY['order', 'live-1'], '', 'x', sha256('x'), rdv_now(), rdv_now(), NULL, '',
		'dead', '', '', NULL, '', '', '', 0, 'unclaimed', '', rdv_now(), false, 0, 0, NULL, false, 0, 0, false, '', '', '', '', '', '', '' FROM generate_series(1, 5000) i`,
	`INSERT INTO dead_keys SELECT tenant, 'order', 'live-1', number FROM events WHERE source = 'dead'`,
	// Live.
	`INSERT INTO workflows SELECT 'acme', 'live-' || i, 0, 'live-' || i, 'order', 'default', 'running', 2, rdv_now(), rdv_now(), NULL, rdv_now(), '', '', '', '', 0, 1, 0, 0, '', 0,
		NULL, '', '', 0, NULL, NULL, '', '', NULL FROM generate_series(0, 9) i`,
	`INSERT INTO workflows SELECT 'globex', 'live-' || i, 0, 'live-' || i, 'order', 'default', 'running', 2, rdv_now(), rdv_now(), NULL, rdv_now(), '', '', '', '', 0, 1, 0, 0,
		CASE WHEN i < 3 THEN 'pod' ELSE '' END, 1, CASE WHEN i < 3 THEN rdv_now() - interval '1 s' END, '', '', 0, NULL, NULL, '', '', NULL FROM generate_series(0, 9) i`,
	`INSERT INTO runs SELECT tenant, run_id, workflow_id, '', '', 'running', 1, 0, started_at, NULL, NULL, '', '', NULL FROM workflows WHERE workflow_id LIKE 'live-%'`,
	`INSERT INTO history SELECT tenant, workflow_id, s, run_id, (ARRAY['run.started', 'wait.registered'])[s], 1, (ARRAY['', 'w'])[s], s - 1, false, '{}', NULL, '', '', '', '',
		started_at, '' FROM workflows, generate_series(1, 2) s WHERE workflow_id LIKE 'live-%'`,
	`INSERT INTO waits SELECT nextval('wait_number'), 1, tenant, run_id, 'w', workflow_id, 0, 1, 'paid', ARRAY['order', workflow_id], '', '', '', rdv_now(), NULL, rdv_now(), NULL, '', '',
		0, NULL, 0, NULL, '', 0, NULL, false, NULL FROM workflows WHERE workflow_id LIKE 'live-%' AND tenant = 'acme'`,
	`INSERT INTO wait_keys SELECT tenant, 'order', workflow_id, 'paid', number, rdv_now() FROM waits WHERE tenant = 'acme'`,
	`INSERT INTO events SELECT nextval('event_number'), 1, 'globex', 'live', 'held-' || run_id, 'paid', ARRAY['order', workflow_id], '', 'x', sha256('x'), rdv_now(), rdv_now(),
		NULL, '', 'claimed', run_id, 'w', rdv_now(), '', '', '', 0, '', '', NULL, false, 0, 0, NULL, false, 0, 0, false, '', '', '', '', '', '', '' FROM workflows WHERE tenant = 'globex'`,
	`INSERT INTO waits SELECT nextval('wait_number'), 1, tenant, claim_run, 'w', claim_run, 0, 1, 'paid', keys, '', '', '', rdv_now(), NULL, rdv_now(), number, source, id,
		nextval('wait_number'), rdv_now(), 0, rdv_now() - interval '1 s', '', 0, NULL, false, CASE WHEN id > 'held-live-6' THEN rdv_now() END FROM events WHERE source = 'live' AND state = 'claimed'`,
	`INSERT INTO woken SELECT tenant, workflow_id, run_id, queue, rdv_now(), 'answered', 1, 0, rdv_now() - interval '1 s', '{}' FROM workflows WHERE tenant = 'globex'`,
	`INSERT INTO events SELECT nextval('event_number'), 1, 'acme', 'live', 'alone-' || i, 'paid', ARRAY['order', 'alone-' || i], '', 'x', sha256('x'), rdv_now(), rdv_now(), NULL,
		CASE WHEN i = 4 THEN 'done-1' ELSE '' END, 'live', '', '', NULL, '', '', '', 0, '', '', NULL, false, 0, 0, NULL, false, 0, 0, false, '', '', '', '', '', '', '' FROM generate_series(0, 4) i`,
	`INSERT INTO event_keys SELECT tenant, CASE WHEN target = '' THEN 'order' ELSE '' END, CASE WHEN target = '' THEN id ELSE target END, 'paid', number, rdv_now()
		FROM events WHERE source = 'live' AND state = 'live'`,
	// Timers of shard 0: 20,000 that are not due, 5,000 in front that are held, and of globex 10 that are due and 3 whose hold is void. More is due elsewhere.
	`INSERT INTO timers SELECT 'acme', 'live-0', 'future-' || i, 'live-0', 'author', '', 0, t, 1, t, t, 0, '', 0, 0, '', 0, NULL, '', '' FROM generate_series(1, 20000) i,
		LATERAL (SELECT rdv_now() + interval '1 day' + i * interval '1 s') x (t)`,
	`INSERT INTO timers SELECT 'acme', 'live-0', 'held-' || i, 'live-0', 'author', '', 0, t, 1, t, u, 0, '', 0, i, 'pod', 2, u, '', '' FROM generate_series(1, 5000) i,
		LATERAL (SELECT rdv_now() - interval '1 day' + i * interval '1 s', rdv_now() + interval '1 hour') x (t, u)`,
	`INSERT INTO timers SELECT 'acme', 'live-0', 'other-' || i, 'live-0', 'author', '', 5, t, 1, t, t, 0, '', 0, 0, '', 0, NULL, '', '' FROM generate_series(1, 5000) i,
		LATERAL (SELECT rdv_now() - interval '1 day' + i * interval '1 s') x (t)`,
	`INSERT INTO timers SELECT tenant, workflow_id, 'due', run_id, 'author', '', 0, t, 1, t, t, 0, '', 0, 0, '', 0, NULL, '', '' FROM workflows,
		LATERAL (SELECT rdv_now() - interval '1 s') x (t) WHERE tenant = 'globex'`,
	`INSERT INTO timers SELECT tenant, workflow_id, 'void', run_id, 'author', '', 0, t, 1, t, u, 0, '', 0, 10000, 'pod', 1, u, '', '' FROM workflows,
		LATERAL (SELECT rdv_now() - interval '1 s', rdv_now() + interval '1 hour') x (t, u) WHERE tenant = 'globex' AND workflow_id < 'live-3'`,
	`INSERT INTO shard_leases SELECT 'timer', s, 'pod', 2, rdv_now() + interval '1 hour', true, '' FROM generate_series(0, 63) s`,
	`INSERT INTO members SELECT 'timer', 'pod/' || i, '', rdv_now(), false, rdv_now() FROM generate_series(1, 3) i`,
	// A run that slept often.
	`INSERT INTO history SELECT 'acme', 'live-2', 2 + i, 'live-2', (ARRAY['timer.started', 'timer.fired'])[2 - i % 2], 1, '', 0, false, '{}', NULL, '', '', '', '', rdv_now(), '',
		't-' || (i + 1) / 2 FROM generate_series(1, 2001) i`,
	// Push registrations of acme: 20,000 that rest, 5,000 that are parked, 5,000 that are due tomorrow, and a log. Of globex 10 that are due at one gate, 3 whose
	// lease has run out, 2 that somebody sends for and that have been failing, 2 that are gone; and 3 of operators.
	`INSERT INTO push_registrations ` + pushOf("'acme', 'live-0', 'idle-' || i, 'live-0', 'caller', 'g' || i % 100", "'idle'", "rdv_now()", "0, ''", "NULL", "NULL, ''") + ` FROM generate_series(1, 20000) i`,
	`INSERT INTO push_registrations ` + pushOf("'acme', 'live-0', 'parked-' || i, 'live-0', 'caller', 'g' || i % 100", "'parked'", "rdv_now()", "0, ''", "NULL", "rdv_now() + i * interval '1 s', 'gone'") + ` FROM generate_series(1, 5000) i`,
	`INSERT INTO push_registrations ` + pushOf("'acme', 'live-0', 'later-' || i, 'live-0', 'caller', 'g' || i % 100", "'live'", "rdv_now() + interval '1 day' + i * interval '1 s'", "0, ''", "NULL", "NULL, ''") + ` FROM generate_series(1, 5000) i`,
	`INSERT INTO push_registrations ` + pushOf("tenant, run_id, 'due', workflow_id, 'caller', 'g'", "'live'", "rdv_now() - interval '1 s'", "0, ''", "NULL", "NULL, ''") + ` FROM workflows WHERE tenant = 'globex'`,
	`INSERT INTO push_registrations ` + pushOf("'globex', 'live-1', 'lapsed-' || i, 'live-1', 'caller', 'h'", "'live'", "rdv_now() - interval '1 h'", "1000 + i, 'pod'", "rdv_now() - interval '1 s'", "NULL, ''") + ` FROM generate_series(1, 3) i`,
	`INSERT INTO push_registrations ` + pushOf("'globex', 'live-2', 'sent-' || i, 'live-2', 'caller', 'h'", "'live'", "rdv_now() - interval '1 h'", "2000 + i, 'pod'", "rdv_now() + interval '1 h'", "NULL, ''") + ` FROM generate_series(1, 2) i`,
	`INSERT INTO push_registrations ` + pushOf("'globex', 'live-3', 'gone-' || i, 'live-3', 'caller', 'h'", "'gone'", "rdv_now()", "3000 + i, 'pod'", "rdv_now() - interval '1 s'", "NULL, ''") + ` FROM generate_series(1, 2) i`,
	`INSERT INTO push_registrations ` + pushOf("'globex', 'live-4', 'operator:' || i, 'live-4', 'operator', 'operator:' || i", "'live'", "rdv_now() - interval '1 s'", "0, ''", "NULL", "NULL, ''") + ` FROM generate_series(1, 3) i`,
	`UPDATE push_registrations SET failing_since = rdv_now() - interval '4 days' WHERE id IN ('sent-1', 'sent-2', 'lapsed-1', 'operator:1')`,
	`UPDATE push_registrations SET logged = 150 WHERE tenant = 'acme' AND id = 'idle-1'`,
	`INSERT INTO push_log SELECT 'acme', 'live-0', 'idle-' || j, 1, i, 'e' || i, rdv_now() - interval '1 day' + i * interval '1 s', false, '{"attempt_no":1,"at":"2026-01-01T00:00:00Z","outcome":"failed"}'
		FROM generate_series(1, 150) i, generate_series(1, 50) j`,
	// What queues leave behind until it is vacuumed: many rows that came and went.
	`INSERT INTO event_keys SELECT 'acme', 'order', 'live-1', 'paid', 1000000 + i, rdv_now() FROM generate_series(1, 5000) i`,
	`DELETE FROM event_keys WHERE number > 1000000`,
}

// What is known of the filled store's statistics: nothing; everything; or how little there was when its plans were made.
var (
	filled   = pgtest.NewTemplate(func(ctx context.Context, url string) error { return prepare(ctx, url, fill...) })
	analyzed = pgtest.NewTemplate(func(ctx context.Context, url string) error {
		return prepare(ctx, url, append(slices.Clone(fill), "VACUUM ANALYZE")...)
	})
	small = pgtest.NewTemplate(func(ctx context.Context, url string) error { return prepare(ctx, url) })
)

// prepare makes a store to which autovacuum never comes.
func prepare(ctx context.Context, url string, statements ...string) error {
	if err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	for _, table := range []string{"workflows", "runs", "history", "batches", "events", "event_keys", "dead_keys", "waits", "wait_keys", "woken", "timers", "shard_leases", "members", "remnants", "push_registrations", "push_log"} {
		if _, err := conn.Exec(ctx, "ALTER TABLE "+table+" SET (autovacuum_enabled = off)"); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", sql, err), conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// onFilled runs a test on filled stores of all three kinds.
func onFilled(t *testing.T, test func(t *testing.T, url string, b *postgres.Backend, seen *observer)) {
	for name, template := range map[string]*pgtest.Template{"without statistics": filled, "with statistics": analyzed} {
		t.Run(name, func(t *testing.T) {
			url := template.Database(t)
			b, seen := observed(t, url)
			defer b.Close()
			test(t, url, b, seen)
		})
	}
	t.Run("planned while it was small", func(t *testing.T) {
		url := small.Database(t)
		b, seen := observed(t, url)
		defer b.Close()
		// A few rows of everything, and statistics that say so; then every statement is planned, on the one connection the store has.
		use(t, b, "warm", 3)
		execute(t, url, "VACUUM ANALYZE")
		use(t, b, "warmer", 3)
		for _, q := range slices.Concat(queries, timerQueries, pushQueries) {
			if err := b.Update(t.Context(), "test", q.run); err != nil {
				t.Fatal(err)
			}
		}
		execute(t, url, fill...)
		test(t, url, b, seen)
	})
}

// use has a tenant's n runs meet n events each way round, and leaves as many live.
func use(tb testing.TB, b *postgres.Backend, tenant string, n int) {
	tb.Helper()
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	storetest.StartRuns(tb, b, tenant, 0, 3*n)
	storetest.BufferAll(tb, s, storetest.EventsOf(tenant, 0, n))
	storetest.RegisterAll(tb, s, storetest.WaitsOf(tenant, 0, n), store.RegisterAnswered)
	storetest.RegisterAll(tb, s, storetest.WaitsOf(tenant, n, 2*n), store.RegisterWaiting)
	storetest.BufferAll(tb, s, storetest.EventsOf(tenant, n, n))
	storetest.OfferAll(tb, s, storetest.EventsOf(tenant, n, n), store.OfferDelivered)
	storetest.BufferAll(tb, s, storetest.EventsOf(tenant, 3*n, n))
}

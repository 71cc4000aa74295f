package postgres_test

import (
	"fmt"
	"testing"

	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// BenchmarkFilled measures the sweeper's verbs and the operator's over a filled store (SW-27, SW-35).
func BenchmarkFilled(b *testing.B) {
	url := migrated.Database(b)
	fillWith(b, url, storetest.FilledSize(b))
	storetest.BenchmarkFilled(b, open(b, url))
}

// fillWith fills a store, and lets it have the statistics that it has after a while.
func fillWith(tb testing.TB, url string, size storetest.Filled) {
	tb.Helper()
	const rest = `false, 0, 0, NULL, false, 0, 0, false, '', '', '', '', '', '', ''`
	event := func(state, dead string) string {
		return `1, 'acme', 'shop', %[1]s, 'paid', ARRAY['order', %[1]s], 'text/plain', ` + map[bool]string{true: "NULL", false: "'x'"}[state == "consumed"] +
			`, sha256('x'), t, t, NULL, '', '` + state + `', '', '', NULL, ` + dead + ", " + rest
	}
	insert := func(n int, what string) string {
		return fmt.Sprintf("INSERT INTO %s FROM generate_series(0, %d) i, LATERAL (SELECT now() - interval '10 s' - i * interval '1 us') x (t)", what, n-1)
	}
	flow := func(prefix, status, closed string, waits int) string {
		return fmt.Sprintf(`workflows SELECT 'acme', '%[1]s-' || i, 0, '%[1]s-' || i, 'order', 'default', '%[2]s', 2, t, t, %[3]s, t, '', '', '', '', 0, %[4]d, 0, 0, '', 0, NULL,
			'', '', 0, NULL, NULL, '', '', NULL`, prefix, status, closed, waits)
	}
	execute(
		tb, url, "SET synchronous_commit = off",
		insert(size.Consumed/5, flow("done", "completed", "t", 0)),
		insert(size.Consumed/5, `runs SELECT 'acme', 'done-' || i, 'done-' || i, '', '', 'completed', 1, 2, t, t, t, 'run.completed', '', NULL`),
		insert(size.Consumed, `events SELECT nextval('event_number'), `+fmt.Sprintf(event("consumed", `'done-' || i / 5, 'done-' || i / 5, 'w', 2, '', '', NULL`), `'consumed-' || i`)),
		insert(size.Letters, `events SELECT nextval('event_number'), `+fmt.Sprintf(event("dead", `'', '', '', 0, 'unclaimed', '', t`), `'letter-' || i`)),
		`INSERT INTO dead_keys SELECT tenant, 'order', id, number FROM events WHERE state = 'dead'`,
		insert(size.Waits, flow("wait", "running", "NULL", 1)),
		insert(size.Waits, `runs SELECT 'acme', 'wait-' || i, 'wait-' || i, '', '', 'running', 1, 0, t, NULL, NULL, '', '', NULL`),
		insert(size.Waits, `history SELECT 'acme', 'wait-' || i, 1, 'wait-' || i, 'run.started', 1, '', 0, false, '{"type":"order","queue":"default"}', NULL, '', '', '', '', t, ''`),
		insert(size.Waits, `history SELECT 'acme', 'wait-' || i, 2, 'wait-' || i, 'wait.registered', 1, 'w', 1, false,
			'{"type":"paid","keys":[{"namespace":"order","value":"wait-' || i || '"}]}', NULL, '', '', '', '', t, ''`),
		insert(size.Waits, `waits SELECT nextval('wait_number'), 1, 'acme', 'wait-' || i, 'w', 'wait-' || i, 0, 1, 'paid', ARRAY['order', 'wait-' || i], '', '', '', t, NULL, t, NULL,
			'', '', 0, NULL, 0, NULL, '', 0, NULL, false, NULL`),
		`INSERT INTO wait_keys SELECT tenant, 'order', run_id, 'paid', number, open_since FROM waits`,
		insert(size.Live, `events SELECT nextval('event_number'), `+fmt.Sprintf(event("live", `'', '', '', 0, '', '', NULL`), `'alone-' || i`)),
		`INSERT INTO event_keys SELECT tenant, 'order', id, 'paid', number, live_since FROM events WHERE state = 'live'`,
		"VACUUM ANALYZE", "CHECKPOINT",
	)
}

package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// BenchmarkFilled measures the sweeper's verbs and the operator's over a filled store (SW-27, SW-35).
func BenchmarkFilled(b *testing.B) {
	dir := b.TempDir()
	if err := open(b, dir, clock.System).Close(); err != nil {
		b.Fatal(err)
	}
	fillWith(b, dir, storetest.FilledSize(b))
	storetest.BenchmarkFilled(b, open(b, dir, clock.System))
}

// fillWith fills a store.
func fillWith(tb testing.TB, dir string, size storetest.Filled) {
	tb.Helper()
	first := clock.System.Now().Add(-10 * time.Second).UnixMicro()
	insert := func(n int, what string, args ...any) step {
		return step{sql: fmt.Sprintf(`WITH RECURSIVE i (n, t) AS (SELECT 0, %d UNION ALL SELECT n + 1, t - 1 FROM i WHERE n < %d) INSERT INTO `, first, n-1) +
			fmt.Sprintf(what, args...) + ` FROM i`}
	}
	const flow = `workflows SELECT 'acme', '%[1]s-' || n, 0, '%[1]s-' || n, 'order', 'default', '%[2]s', 2, t, t, %[3]s, t, '', '', '', '', 0, %[4]d, 0, 0, '', 0, NULL, '', '', 0, NULL,
		NULL, '', '', NULL, 0`
	// Numbers: the kinds one behind the other.
	const event = `events SELECT %[1]d + n, 1, 'acme', 'shop', '%[2]s-' || n, 'paid', '[["order","%[2]s-' || n || '"]]', zeroblob(32), t, t, NULL, '', '%[3]s', '', '', NULL, %[4]s, 0, 0, 0,
		NULL, 0, 0, 0, 0, '', '', '', '', '', '', '', 'text/plain', %[5]s`
	letters, live := size.Consumed+1, size.Consumed+size.Letters+1
	steps := []step{
		insert(size.Consumed/5, flow, "done", "completed", "t", 0),
		insert(size.Consumed/5, `runs SELECT 'acme', 'done-' || n, 'done-' || n, '', '', 'completed', 1, 2, t, t, t, 'run.completed', zeroblob(32), NULL`),
		insert(size.Consumed, event, 1, "consumed", "consumed", `'done-' || n / 5, 'done-' || n / 5, 'w', 2, '', '', NULL`, "NULL"),
		insert(size.Letters, event, letters, "letter", "dead", `'', '', '', 0, 'unclaimed', '', t`, "x'78'"),
		{sql: `INSERT INTO dead_keys SELECT tenant, 'order', id, number FROM events WHERE number >= ?`, args: []any{letters}},
		insert(size.Waits, flow, "wait", "running", "NULL", 1),
		insert(size.Waits, `runs SELECT 'acme', 'wait-' || n, 'wait-' || n, '', '', 'running', 1, 0, t, NULL, NULL, '', zeroblob(32), NULL`),
		insert(size.Waits, `history SELECT 'acme', 'wait-' || n, 1, 'wait-' || n, 'run.started', 1, '', 0, 0, '{"type":"order","queue":"default"}', NULL, '', '', '', '', t, ''`),
		insert(size.Waits, `history SELECT 'acme', 'wait-' || n, 2, 'wait-' || n, 'wait.registered', 1, 'w', 1, 0,
			'{"type":"paid","keys":[{"namespace":"order","value":"wait-' || n || '"}]}', NULL, '', '', '', '', t, ''`),
		insert(size.Waits, `waits SELECT n + 1, 1, 'acme', 'wait-' || n, 'w', 'wait-' || n, 0, 1, 'paid', '[["order","wait-' || n || '"]]', '', '', '', t, NULL, t, NULL, '', '', 0, NULL, 0,
			NULL, '', 0, NULL, 0, NULL`),
		{sql: `INSERT INTO wait_keys SELECT tenant, 'order', run_id, 'paid', number, open_since FROM waits ORDER BY run_id`},
		insert(size.Live, event, live, "alone", "live", `'', '', '', 0, '', '', NULL`, "x'78'"),
		{sql: `INSERT INTO event_keys SELECT tenant, 'order', id, 'paid', number, live_since, NULL FROM events WHERE number >= ? ORDER BY id`, args: []any{live}},
		{sql: `UPDATE counters SET value = CASE name WHEN 'event' THEN ? WHEN 'wait' THEN ? ELSE value END`, args: []any{live + size.Live, size.Waits + 1}},
	}
	for _, s := range steps { // each its own transaction
		if err := (damage{dir}).do(s); err != nil {
			tb.Fatal(err)
		}
	}
}

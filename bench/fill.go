package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// filler writes rows straight into a store's tables, which both kinds name alike.
type filler struct {
	execute func(statement string) error
	instant func(t time.Time) string // as a literal
	bytes   func(text string) string // likewise
	timerID bool                     // history has a column for it
	settled []string                 // statements that leave the store as it is after a while
}

// fill makes a store, and in it what a timer-worker finds at its start: n runs that finished after a sleep, n that sleep until tomorrow, and one, due, whose timer came
// due an hour ago.
func fill(ctx context.Context, url string, n int) error {
	f, done, err := fillerOf(ctx, url)
	if err != nil {
		return err
	}
	defer done()
	now := time.Now().Truncate(time.Microsecond)
	began := now.Add(-2 * time.Hour)
	statements := f.sleeping("due", 1, began, now.Add(-time.Hour))
	if n > 0 {
		statements = append(statements, f.finished("done", n, began)...)
		statements = append(statements, f.sleeping("armed", n, began, now.Add(24*time.Hour))...)
	}
	for _, s := range append(statements, f.settled...) {
		if err := f.execute(s); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return nil
}

// fillerOf makes the tables of the store at url.
func fillerOf(ctx context.Context, url string) (filler, func(), error) {
	if open.Kind(url) == "postgres" {
		if err := postgres.Migrate(ctx, url); err != nil {
			return filler{}, nil, err
		}
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return filler{}, nil, err
		}
		return filler{
			execute: func(s string) error { _, err := conn.Exec(ctx, s); return err },
			instant: func(t time.Time) string { return "'" + rendezvous.FormatInstant(t) + "'::timestamptz" },
			bytes:   func(text string) string { return "'" + text + "'::bytea" },
			timerID: true,
			settled: []string{"VACUUM ANALYZE", "CHECKPOINT"},
		}, func() { _ = conn.Close(ctx) }, nil
	}
	dir := strings.TrimPrefix(url, "sqlite:")
	made, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return filler{}, nil, err
	}
	if err := made.Close(); err != nil {
		return filler{}, nil, err
	}
	conn, err := zombie.OpenConn(filepath.Join(dir, "rendezvous.db"), zombie.OpenReadWrite)
	if err != nil {
		return filler{}, nil, err
	}
	return filler{
		execute: func(s string) error { return sqlitex.ExecuteTransient(conn, s, nil) },
		instant: func(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) },
		bytes:   func(text string) string { return "CAST('" + text + "' AS BLOB)" },
		settled: []string{"PRAGMA wal_checkpoint(TRUNCATE)"},
	}, func() { _ = conn.Close() }, nil
}

// insert writes n rows whose values may name their number i.
func insert(n int, table, columns, values string) string {
	return fmt.Sprintf(`WITH RECURSIVE x (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x WHERE i < %d) INSERT INTO %s (%s) SELECT %s FROM x`, n, table, columns, values)
}

// flow is a workflow and its run, both named prefix-i.
func (f filler) flow(prefix string, n int, status rendezvous.Status, head, live int, began time.Time) []string {
	at, closed, last, outcome := f.instant(began), "NULL", 0, ""
	if status.Terminal() {
		closed, last, outcome = at, head, string(rendezvous.RunCompleted)
	}
	id := "'" + prefix + "-' || i"
	return []string{
		insert(n, "workflows", `tenant, workflow_id, shard, run_id, type, queue, status, head_seq, created_at, started_at, closed_at, updated_at, parent, failure_code,
			failure_reason, failed_effect, open_effects, open_waits, live_timers, reopened, lease_owner, lease_epoch, lease_ended, acquire_id, reclaims, paused_actor, paused_basis`,
			fmt.Sprintf(`'bench', %[1]s, i %% %[7]d, %[1]s, 'order', '%[2]s', '%[3]s', %[4]d, %[5]s, %[5]s, %[6]s, %[5]s, '', '', '', '', 0, 0, %[8]d, 0, '', 0, '', '', 0, '', ''`,
				id, sleepers, status, head, at, closed, rendezvous.DefaultShards, live)),
		insert(n, "runs", `tenant, run_id, workflow_id, previous_run, next_run, status, first_seq, last_seq, started_at, closed_at, sealed_at, outcome`,
			fmt.Sprintf(`'bench', %[1]s, %[1]s, '', '', '%[2]s', 1, %[3]d, %[4]s, %[5]s, %[5]s, '%[6]s'`, id, status, last, at, closed, outcome)),
	}
}

// records are the same history for each of n runs.
func (f filler) records(prefix string, n int, at time.Time, kinds []rendezvous.Kind, data ...any) []string {
	out := make([]string, len(kinds))
	for i, kind := range kinds {
		columns := `tenant, workflow_id, seq, run_id, kind, v, effect, attempt, closes, data, content_type, source, operator_actor, operator_basis, recorded_at, batch_id`
		values := fmt.Sprintf(`'bench', '%[1]s-' || i, %[2]d, '%[1]s-' || i, '%[3]s', %[4]d, '', 0, false, '%[5]s', '', '', '', '', %[6]s, ''`,
			prefix, i+1, kind, rendezvous.KindVersion, rendezvous.EncodeData(data[i]), f.instant(at))
		if f.timerID && strings.HasPrefix(string(kind), "timer.") {
			columns, values = columns+", timer_id", values+", 'sleep'"
		}
		out[i] = insert(n, "history", columns, values)
	}
	return out
}

// sleeping are n runs that sleep until fire.
func (f filler) sleeping(prefix string, n int, began, fire time.Time) []string {
	statements := append(f.flow(prefix, n, rendezvous.StatusRunning, 2, 1, began),
		f.records(prefix, n, began, []rendezvous.Kind{rendezvous.RunStarted, rendezvous.TimerStarted},
			rendezvous.RunStartedData{Type: "order", Queue: sleepers}, rendezvous.TimerStartedData{FireAt: rendezvous.FormatInstant(fire), TimerID: "sleep"})...)
	return append(statements, insert(n, "timers", `tenant, workflow_id, timer_id, run_id, class, effect, shard, fire_at, armed_seq, due_at, ready_at, attempts, last_error, parks,
		token, holder, hold_epoch, trace_parent, trace_state`, fmt.Sprintf(`'bench', '%[1]s-' || i, 'sleep', '%[1]s-' || i, 'author', '', i %% %[3]d, %[2]s, 2, %[2]s, %[2]s, 0, '', 0,
		0, '', 0, '', ''`, prefix, f.instant(fire), rendezvous.DefaultShards)))
}

// finished are n runs that slept and completed.
func (f filler) finished(prefix string, n int, at time.Time) []string {
	fire := rendezvous.FormatInstant(at)
	return append(f.flow(prefix, n, rendezvous.StatusCompleted, 4, 0, at),
		f.records(prefix, n, at, []rendezvous.Kind{rendezvous.RunStarted, rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.RunCompleted},
			rendezvous.RunStartedData{Type: "order", Queue: sleepers}, rendezvous.TimerStartedData{FireAt: fire, TimerID: "sleep"},
			rendezvous.TimerFiredData{ArmedSeq: 2, FireAt: fire, TimerID: "sleep"}, struct{}{})...)
}

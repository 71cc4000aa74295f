package sqlite_test

import (
	"context"
	"testing"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// BenchmarkStore measures the hot path.
func BenchmarkStore(b *testing.B) {
	storetest.Benchmarks(b, func(b *testing.B) backend.Backend { return open(b, b.TempDir(), clock.System) })
}

// finished fills a store with runs that ended, each with a start and an end in its history.
func finished(b *testing.B, dir string, n int) {
	b.Helper()
	const count = `WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?) `
	steps := []step{
		{sql: count + `INSERT INTO workflows SELECT 'acme', 'w-' || n, 1, 'r-' || n, 'order', 'default', 'completed', 2, n, n, n, n, '', '', '', '', 0, 0, 0, 0, '', 1, NULL, '', '', 0,
			NULL, NULL, '', '', NULL, 0 FROM i`, args: []any{n}},
		{sql: count + `INSERT INTO runs SELECT 'acme', 'r-' || n, 'w-' || n, '', '', 'completed', 1, 2, n, n, n, 'run.completed', zeroblob(32), NULL FROM i`, args: []any{n}},
	}
	for seq, kind := range []string{"run.started", "run.completed"} {
		steps = append(steps, step{sql: count + `INSERT INTO history SELECT 'acme', 'w-' || n, ?, 'r-' || n, ?, 1, '', 0, 0, '{"type":"order","queue":"default"}', NULL, '', '', '',
			'', n, '' FROM i`, args: []any{n, seq + 1, kind}})
	}
	if err := (damage{dir}).do(steps...); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpen is a start with a million finished runs in the store, after a kill: the WAL is as the process left it.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	if err := open(b, dir, clock.System).Close(); err != nil {
		b.Fatal(err)
	}
	finished(b, dir, 1_000_000)
	b.ResetTimer()
	for range b.N {
		x := open(b, dir, clock.System)
		err := x.View(b.Context(), "look", func(ctx context.Context, r backend.Reader) error {
			rows, _, err := r.ListWorkflows(ctx, "acme", backend.WorkflowFilter{}, backend.WorkflowPosition{}, backend.Span{Limit: 100, Look: 10_000})
			if err == nil && len(rows) != 100 {
				b.Errorf("%d rows", len(rows))
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

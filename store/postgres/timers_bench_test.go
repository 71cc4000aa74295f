package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/postgres"
)

// BenchmarkTimers measures what the timer-worker asks of this backend: arming and firing in pages of 500, and looks at many rows.
func BenchmarkTimers(b *testing.B) {
	const page = rendezvous.MaxBatchItems
	sleepers := func(b *testing.B) *postgres.Backend {
		url := migrated.Database(b)
		execute(b, url, `INSERT INTO workflows SELECT 'acme', 'w' || i, i % 64, 'r' || i, 'order', 'default', 'running', 1, now(), now(), NULL, now(), '', '', '', '', 0, 0, 0, 0, '',
			0, NULL, '', '', 0, NULL, NULL, '', '', NULL FROM generate_series(0, 9999) i`, "VACUUM ANALYZE", "CHECKPOINT")
		return open(b, url)
	}
	b.Run("arm", func(b *testing.B) {
		s := sleepers(b)
		defer s.Close()
		n := 0
		for b.Loop() {
			armPage(b, s, n*page%10_000, page)
			n++
		}
		b.ReportMetric(float64(n*page)/b.Elapsed().Seconds(), "timers/s")
	})
	b.Run("fire", func(b *testing.B) {
		s := sleepers(b)
		defer s.Close()
		n := 0
		for b.Loop() {
			b.StopTimer()
			armPage(b, s, n*page%10_000, page)
			b.StartTimer()
			firePage(b, s, page)
			n++
		}
		b.ReportMetric(float64(n*page)/b.Elapsed().Seconds(), "timers/s")
	})
	looks := func(b *testing.B, tenants int, at string, rows int, look func(ctx context.Context, tx backend.Tx) error) {
		url := migrated.Database(b)
		execute(b, url, fmt.Sprintf(`INSERT INTO timers SELECT 't' || i %% %d, 'w' || i, 't', 'r', 'author', '', i / 7 %% 64, t, 1, t, t, 0, '', 0, 0, '', 0, NULL, '', ''
			FROM generate_series(1, %d) i, LATERAL (SELECT now() + interval '%s' + i * interval '1 ms') x (t)`, tenants, rows, at),
			`INSERT INTO shard_leases SELECT 'timer', s, 'pod', 2, now() + interval '1 hour', true, '' FROM generate_series(0, 63) s`, "VACUUM ANALYZE", "CHECKPOINT")
		s := open(b, url)
		defer s.Close()
		for b.Loop() {
			if err := s.Update(b.Context(), "bench", look); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("nothing", func(b *testing.B) {
		looks(b, 1, "1 day", 1, func(context.Context, backend.Tx) error { return nil })
	})
	b.Run("NextDue of 64 shards, 1,000,000 ahead", func(b *testing.B) {
		looks(b, 10, "1 day", 1_000_000, func(ctx context.Context, tx backend.Tx) error { return ask(tx.NextDue(ctx, upTo(64))) })
	})
	for _, c := range []struct{ tenants, shards, limit int }{{1, 64, page}, {100, 64, page}, {1000, 64, page}, {1, 1, page}, {100, 1, page}, {100, 64, 2000}} {
		b.Run(fmt.Sprintf("DueTimers of %d tenants in %d shards, %d of 100,000", c.tenants, c.shards, c.limit), func(b *testing.B) {
			looks(b, c.tenants, "-1 day", 100_000, func(ctx context.Context, tx backend.Tx) error {
				rows, _, err := tx.DueTimers(ctx, upTo(c.shards), c.limit)
				if err == nil && len(rows) != c.limit {
					err = fmt.Errorf("%d rows", len(rows))
				}
				return err
			})
		})
	}
	b.Run("ExpiredTimers, 500 of 100,000", func(b *testing.B) {
		looks(b, 100, "-1 day", 100_000, func(ctx context.Context, tx backend.Tx) error {
			return ask(tx.ExpiredTimers(ctx, tx.Now(), backend.Owned{}, backend.TimerPosition{}, page))
		})
	})
}

// armPage arms a timer of each of n workflows, in one transaction.
func armPage(b *testing.B, s *postgres.Backend, from, n int) {
	b.Helper()
	keys := make([]backend.WorkflowKey, n)
	for i := range keys {
		keys[i] = backend.WorkflowKey{Tenant: "acme", ID: fmt.Sprint("w", from+i)}
	}
	err := s.Update(b.Context(), "arm", func(ctx context.Context, tx backend.Tx) error {
		flows, err := tx.LockWorkflows(ctx, keys)
		if err != nil {
			return err
		}
		var c backend.Changes
		for _, k := range keys {
			f := flows[k]
			f.Head++
			f.LiveTimers++
			f.UpdatedAt = tx.Now()
			t := &backend.Timer{
				Tenant: f.Tenant, WorkflowID: f.ID, TimerID: fmt.Sprint("t", f.Head), RunID: f.RunID, Class: rendezvous.TimerAuthor, Shard: f.Shard,
				FireAt: tx.Now(), ArmedSeq: f.Head, DueAt: tx.Now(), ReadyAt: tx.Now(),
			}
			c.Workflows, c.Timers = append(c.Workflows, f), append(c.Timers, t)
			c.Records = append(c.Records, about(t, f.Head, rendezvous.TimerStarted, tx.Now()))
		}
		return tx.Apply(ctx, &c)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// firePage fires n due timers, in one transaction.
func firePage(b *testing.B, s *postgres.Backend, n int) {
	b.Helper()
	err := s.Update(b.Context(), "fire", func(ctx context.Context, tx backend.Tx) error {
		if _, err := tx.LockShards(ctx, "timer", upTo(64), backend.ShardFence); err != nil {
			return err
		}
		rows, _, err := tx.DueTimers(ctx, upTo(64), n)
		if err != nil || len(rows) != n {
			return fmt.Errorf("%d rows, %w", len(rows), err)
		}
		var keys []backend.WorkflowKey
		var c backend.Changes
		for _, t := range rows {
			keys = append(keys, backend.WorkflowKey{Tenant: t.Tenant, ID: t.WorkflowID})
			c.GoneTimers = append(c.GoneTimers, t.Key())
		}
		flows, err := tx.TryLockWorkflows(ctx, keys)
		if err != nil {
			return err
		}
		if _, err := tx.Timers(ctx, c.GoneTimers); err != nil { // as they are under the lock
			return err
		}
		for i, t := range rows {
			f := flows[keys[i]]
			f.Head++
			f.LiveTimers--
			f.UpdatedAt = tx.Now()
			c.Workflows = append(c.Workflows, f)
			c.Records = append(c.Records, about(t, f.Head, rendezvous.TimerFired, tx.Now()))
		}
		return tx.Apply(ctx, &c)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// about is a record of that kind about a timer.
func about(t *backend.Timer, seq int64, kind rendezvous.Kind, at time.Time) *backend.Record {
	data := rendezvous.EncodeData(rendezvous.TimerFiredData{ArmedSeq: t.ArmedSeq, FireAt: rendezvous.FormatInstant(t.FireAt), TimerID: t.TimerID})
	return &backend.Record{Tenant: t.Tenant, WorkflowID: t.WorkflowID, Record: rendezvous.Record{
		Seq: seq, RunID: t.RunID, Kind: kind, V: rendezvous.KindVersion, Data: data, RecordedAt: at,
	}}
}

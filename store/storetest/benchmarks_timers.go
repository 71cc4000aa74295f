package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// armAll arms a timer each of runs run-<from>..., due an hour ago: what ArmTimer leaves, in batches.
func armAll(tb testing.TB, b backend.Backend, tenant string, from, n int) {
	tb.Helper()
	for ; n > 0; from, n = from+batchSize, n-batchSize {
		err := b.Update(context.Background(), "test", func(ctx context.Context, tx backend.Tx) error {
			var c backend.Changes
			keys := make([]backend.WorkflowKey, min(n, batchSize))
			for i := range keys {
				keys[i] = backend.WorkflowKey{Tenant: tenant, ID: fmt.Sprintf("run-%06d", from+i)}
			}
			flows, err := tx.LockWorkflows(ctx, keys)
			if err != nil {
				return err
			}
			due := tx.Now().Add(-time.Hour)
			for _, k := range keys {
				f := flows[k]
				f.Head, f.LiveTimers = f.Head+1, 1
				c.Workflows = append(c.Workflows, f)
				c.Records = append(c.Records, &backend.Record{Tenant: tenant, WorkflowID: k.ID, Record: rendezvous.Record{
					Seq: f.Head, RunID: f.RunID, Kind: rendezvous.TimerStarted, V: rendezvous.KindVersion, RecordedAt: tx.Now(),
					Data: rendezvous.EncodeData(rendezvous.TimerStartedData{TimerID: "sleep", FireAt: rendezvous.FormatInstant(due)}),
				}})
				c.Timers = append(c.Timers, &backend.Timer{
					Tenant: tenant, WorkflowID: k.ID, TimerID: "sleep", RunID: f.RunID, Class: rendezvous.TimerAuthor, Shard: f.Shard, FireAt: due, ArmedSeq: f.Head,
					DueAt: due, ReadyAt: due,
				})
			}
			return tx.Apply(ctx, &c)
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// fireAll works pages of due timers until n are recorded, or nothing is due.
func fireAll(tb testing.TB, s store.Store, name string, shard int) {
	tb.Helper()
	h, err := s.PoolHandle(store.PoolTimer, name+"/1")
	if err != nil {
		tb.Error(err)
		return
	}
	lease, err := h.AcquireOwnedShard(context.Background(), shard, store.MaxShardTTL)
	if err != nil {
		tb.Error(err)
		return
	}
	for {
		page, err := h.FireDueTimers(context.Background(), []store.ShardEpoch{{Shard: shard, Epoch: lease.Epoch}}, 0)
		if err != nil {
			tb.Error(err)
			return
		}
		for _, f := range page.Fires {
			if f.Outcome != store.FireFired {
				tb.Error(f.Outcome, f.Err)
				return
			}
		}
		if len(page.Fires) == 0 && page.Busy == 0 {
			return
		}
	}
}

// WithDeadlines are those waits, each with a deadline that far behind its registration.
func WithDeadlines(items []store.RegisterItem, after time.Duration) []store.RegisterItem {
	for i := range items {
		items[i].Wait.DeadlineAfter = &after
	}
	return items
}

// timerBenchmarks measure arming and firing; an iteration is one timer.
func timerBenchmarks(b *testing.B, open func(b *testing.B) backend.Backend) {
	b.Run("RegisterBatchWithDeadline", func(b *testing.B) { // RegisterBatch, each wait arming its deadline
		measured(b, open, func(b *testing.B, _ store.Store, x backend.Backend) { startAll(b, x) }, func(b *testing.B, s store.Store, from, n int) {
			RegisterAll(b, s, WithDeadlines(WaitsOf("acme", from, n), time.Hour), store.RegisterWaiting)
		})
	})
	b.Run("FireDueTimers", func(b *testing.B) { // fires a timer each of runs that sleep, in one shard
		alone(b, open, func(b *testing.B, _ store.Store, x backend.Backend) {
			startAll(b, x)
			armAll(b, x, "acme", 0, b.N)
		}, func(b *testing.B, s store.Store) { fireAll(b, s, "pod", 0) })
	})
	b.Run("FireDeadlines", func(b *testing.B) { // times waits out
		alone(b, open, func(b *testing.B, s store.Store, x backend.Backend) {
			startAll(b, x)
			RegisterAll(b, s, WithDeadlines(WaitsOf("acme", 0, b.N), time.Millisecond), store.RegisterWaiting)
		}, func(b *testing.B, s store.Store) { fireAll(b, s, "pod", 0) })
	})
}

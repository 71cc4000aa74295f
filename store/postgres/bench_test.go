package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/postgres"
)

const benchBatch = rendezvous.MaxBatchItems

// benchStore is a store on a running clock.
func benchStore(tb testing.TB, changes ...func(*postgres.Config)) (store.Store, *postgres.Backend, string) {
	tb.Helper()
	url := migrated.Database(tb)
	b := open(tb, url, changes...)
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s, b, url
}

// startRuns starts runs run-<from>..., each in a workflow of its own, as many starts at once would leave them.
func startRuns(tb testing.TB, b *postgres.Backend, tenant string, from, n int) {
	tb.Helper()
	err := b.Update(context.Background(), "test", func(ctx context.Context, tx backend.Tx) error {
		var c backend.Changes
		for i := range n {
			id := fmt.Sprintf("run-%06d", from+i)
			c.NewWorkflows = append(c.NewWorkflows, &backend.Workflow{
				Tenant: tenant, ID: id, RunID: id, Type: "order", Queue: "default", Status: rendezvous.StatusRunning, Head: 1,
				CreatedAt: tx.Now(), StartedAt: tx.Now(), UpdatedAt: tx.Now(),
			})
			c.NewRuns = append(c.NewRuns, &backend.Run{
				Tenant: tenant, ID: id, WorkflowID: id, Status: rendezvous.StatusRunning, FirstSeq: 1, StartedAt: tx.Now(), StartDigest: []byte(id),
			})
			c.Records = append(c.Records, &backend.Record{Tenant: tenant, WorkflowID: id, Record: rendezvous.Record{
				Seq: 1, RunID: id, Kind: rendezvous.RunStarted, V: rendezvous.KindVersion, RecordedAt: tx.Now(),
				Data: rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: "default"}),
			}})
		}
		return tx.Apply(ctx, &c)
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func benchKeys(i int) []rendezvous.Key {
	return []rendezvous.Key{{Namespace: "order", Value: fmt.Sprintf("order-%06d", i)}}
}

// benchEvents are events for runs run-<from>..., of 256 bytes.
func benchEvents(tenant string, from, n int) []store.BufferItem {
	items := make([]store.BufferItem, n)
	for i := range items {
		items[i] = store.BufferItem{Tenant: tenant, Event: rendezvous.Event{
			EventID: rendezvous.EventID{Source: "https://shop.example/orders", ID: fmt.Sprintf("event-%06d", from+i)}, Type: "order.paid",
			Keys: benchKeys(from + i), ContentType: "application/json", Payload: make([]byte, 256),
		}}
	}
	return items
}

func benchWaits(tenant string, from, n int) []store.RegisterItem {
	items := make([]store.RegisterItem, n)
	for i := range items {
		items[i] = store.RegisterItem{Tenant: tenant, Registration: store.Registration{Wait: rendezvous.Wait{
			WaitID: rendezvous.WaitID{RunID: fmt.Sprintf("run-%06d", from+i), Effect: "payment"}, Type: "order.paid", Keys: benchKeys(from + i),
		}}}
	}
	return items
}

func buffer(tb testing.TB, s store.Store, items []store.BufferItem) {
	tb.Helper()
	for len(items) > 0 {
		n := min(benchBatch, len(items))
		done, err := s.BufferBatch(context.Background(), items[:n], time.Time{})
		if err != nil || done[0].Outcome != store.BufferNew {
			tb.Error(err, done)
			return
		}
		items = items[n:]
	}
}

func register(tb testing.TB, s store.Store, items []store.RegisterItem, want store.RegisterOutcome) {
	tb.Helper()
	for len(items) > 0 {
		n := min(benchBatch, len(items))
		done, err := s.RegisterBatch(context.Background(), items[:n], time.Time{})
		if err != nil || done[0].Err != nil || done[0].Outcome != want {
			tb.Error(err, done[0])
			return
		}
		items = items[n:]
	}
}

func offer(tb testing.TB, s store.Store, events []store.BufferItem, want store.OfferOutcome) {
	tb.Helper()
	for len(events) > 0 {
		n := min(benchBatch, len(events))
		items := make([]store.OfferItem, n)
		for i := range items {
			items[i] = store.OfferItem{Tenant: events[i].Tenant, Event: &events[i].Event.EventID}
		}
		done, err := s.OfferBatch(context.Background(), items, time.Time{})
		if err != nil || done.Items[0].Outcome != want {
			tb.Error(err, done.Items)
			return
		}
		events = events[n:]
	}
}

// inShares lets clients work shares of whole batches at once, as several workers would.
func inShares(clients, n int, work func(from, n int)) {
	var all sync.WaitGroup
	share := (n/benchBatch + clients) / clients * benchBatch
	for from := 0; from < n; from += share {
		all.Go(func() { work(from, min(share, n-from)) })
	}
	all.Wait()
}

// measured runs work over b.N items in batches of 500, by one client and by four at once. An iteration is one item.
func measured(b *testing.B, prepare func(b *testing.B, s store.Store, pg *postgres.Backend), work func(b *testing.B, s store.Store, from, n int)) {
	for _, clients := range []int{1, 4} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			s, pg, _ := benchStore(b)
			prepare(b, s, pg)
			b.ResetTimer()
			inShares(clients, b.N, func(from, n int) { work(b, s, from, n) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
		})
	}
}

func startAll(b *testing.B, pg *postgres.Backend) {
	for from := 0; from < b.N; from += benchBatch {
		startRuns(b, pg, "acme", from, min(benchBatch, b.N-from))
	}
}

// BenchmarkBufferBatch stores events.
func BenchmarkBufferBatch(b *testing.B) {
	measured(b, func(*testing.B, store.Store, *postgres.Backend) {}, func(b *testing.B, s store.Store, from, n int) {
		buffer(b, s, benchEvents("acme", from, n))
	})
}

// BenchmarkRegisterBatch registers a wait each of runs, nothing being there to answer it.
func BenchmarkRegisterBatch(b *testing.B) {
	measured(b, func(b *testing.B, _ store.Store, pg *postgres.Backend) { startAll(b, pg) }, func(b *testing.B, s store.Store, from, n int) {
		register(b, s, benchWaits("acme", from, n), store.RegisterWaiting)
	})
}

// BenchmarkOfferBatch matches events with waits that were there before, each of a run of its own: claim, record and retire.
func BenchmarkOfferBatch(b *testing.B) {
	measured(b, func(b *testing.B, s store.Store, pg *postgres.Backend) {
		startAll(b, pg)
		register(b, s, benchWaits("acme", 0, b.N), store.RegisterWaiting)
		buffer(b, s, benchEvents("acme", 0, b.N))
	}, func(b *testing.B, s store.Store, from, n int) {
		offer(b, s, benchEvents("acme", from, n), store.OfferDelivered)
	})
}

// BenchmarkRegisterAnswered registers waits for which an event was there before: the answer is recorded in the registration.
func BenchmarkRegisterAnswered(b *testing.B) {
	measured(b, func(b *testing.B, s store.Store, pg *postgres.Backend) {
		startAll(b, pg)
		buffer(b, s, benchEvents("acme", 0, b.N))
	}, func(b *testing.B, s store.Store, from, n int) {
		register(b, s, benchWaits("acme", from, n), store.RegisterAnswered)
	})
}

package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

const batchSize = rendezvous.MaxBatchItems

// StartRuns starts runs run-<from>..., each in a workflow of its own, as many starts at once would leave them.
func StartRuns(tb testing.TB, b backend.Backend, tenant string, from, n int) {
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

// KeysOf are the keys of the i-th event and wait.
func KeysOf(i int) []rendezvous.Key {
	return []rendezvous.Key{{Namespace: "order", Value: fmt.Sprintf("order-%06d", i)}}
}

// EventsOf are events for runs run-<from>..., of 256 bytes.
func EventsOf(tenant string, from, n int) []store.BufferItem {
	items := make([]store.BufferItem, n)
	for i := range items {
		items[i] = store.BufferItem{Tenant: tenant, Event: rendezvous.Event{
			EventID: rendezvous.EventID{Source: "https://shop.example/orders", ID: fmt.Sprintf("event-%06d", from+i)}, Type: "order.paid",
			Keys: KeysOf(from + i), ContentType: "application/json", Payload: make([]byte, 256),
		}}
	}
	return items
}

// WaitsOf are waits of runs run-<from>..., each met by the event of its number.
func WaitsOf(tenant string, from, n int) []store.RegisterItem {
	items := make([]store.RegisterItem, n)
	for i := range items {
		items[i] = store.RegisterItem{Tenant: tenant, Registration: store.Registration{Wait: rendezvous.Wait{
			WaitID: rendezvous.WaitID{RunID: fmt.Sprintf("run-%06d", from+i), Effect: "payment"}, Type: "order.paid", Keys: KeysOf(from + i),
		}}}
	}
	return items
}

// BufferAll stores new events in batches.
func BufferAll(tb testing.TB, s store.Store, items []store.BufferItem) {
	tb.Helper()
	for len(items) > 0 {
		n := min(batchSize, len(items))
		done, err := s.BufferBatch(context.Background(), items[:n], time.Time{})
		if err != nil || done[0].Outcome != store.BufferNew {
			tb.Error(err, done)
			return
		}
		items = items[n:]
	}
}

// RegisterAll registers waits in batches, all with that outcome.
func RegisterAll(tb testing.TB, s store.Store, items []store.RegisterItem, want store.RegisterOutcome) {
	tb.Helper()
	for len(items) > 0 {
		n := min(batchSize, len(items))
		done, err := s.RegisterBatch(context.Background(), items[:n], time.Time{})
		if err != nil || done[0].Err != nil || done[0].Outcome != want {
			tb.Error(err, done[0])
			return
		}
		items = items[n:]
	}
}

// OfferAll offers events in batches, all with that outcome.
func OfferAll(tb testing.TB, s store.Store, events []store.BufferItem, want store.OfferOutcome) {
	tb.Helper()
	for len(events) > 0 {
		n := min(batchSize, len(events))
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

// farAhead is behind every event of a benchmark.
var farAhead = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// requeueAll brings letters of a tenant back in batches.
func requeueAll(tb testing.TB, s store.Store, events []store.BufferItem) {
	tb.Helper()
	for len(events) > 0 {
		n := min(batchSize, len(events))
		t, err := s.Tenant(events[0].Tenant)
		if err != nil {
			tb.Fatal(err)
		}
		var sel store.Selection
		for _, e := range events[:n] {
			sel.Events = append(sel.Events, e.Event.EventID)
		}
		done, err := t.RequeueDeadLetters(context.Background(), sel, store.Requeue{}, *kim, ID("op"), time.Time{})
		if err != nil || done.Items[0].Outcome != store.RequeueRequeued {
			tb.Error(err, done.Items)
			return
		}
		events = events[n:]
	}
}

// inShares lets clients work shares of whole batches at once, as several workers would.
func inShares(clients, n int, work func(from, n int)) {
	var all sync.WaitGroup
	share := (n/batchSize + clients) / clients * batchSize
	for from := 0; from < n; from += share {
		all.Go(func() { work(from, min(share, n-from)) })
	}
	all.Wait()
}

// Benchmarks measure the verbs of the hot path, in batches of 500, by one client and by four at once; an iteration is one item. open makes an empty store on a
// running clock.
func Benchmarks(b *testing.B, open func(b *testing.B) backend.Backend) {
	none := func(*testing.B, store.Store, backend.Backend) {}
	b.Run("BufferBatch", func(b *testing.B) { // stores events
		measured(b, open, none, func(b *testing.B, s store.Store, from, n int) { BufferAll(b, s, EventsOf("acme", from, n)) })
	})
	b.Run("RegisterBatch", func(b *testing.B) { // registers a wait each of runs, nothing being there to answer it
		measured(b, open, func(b *testing.B, _ store.Store, x backend.Backend) { startAll(b, x) }, func(b *testing.B, s store.Store, from, n int) {
			RegisterAll(b, s, WaitsOf("acme", from, n), store.RegisterWaiting)
		})
	})
	b.Run("OfferBatch", func(b *testing.B) { // matches events with waits that were there before: claim, record and retire
		measured(b, open, func(b *testing.B, s store.Store, x backend.Backend) {
			startAll(b, x)
			RegisterAll(b, s, WaitsOf("acme", 0, b.N), store.RegisterWaiting)
			BufferAll(b, s, EventsOf("acme", 0, b.N))
		}, func(b *testing.B, s store.Store, from, n int) {
			OfferAll(b, s, EventsOf("acme", from, n), store.OfferDelivered)
		})
	})
	b.Run("RegisterAnswered", func(b *testing.B) { // registers waits for which an event was there before
		measured(b, open, func(b *testing.B, s store.Store, x backend.Backend) {
			startAll(b, x)
			BufferAll(b, s, EventsOf("acme", 0, b.N))
		}, func(b *testing.B, s store.Store, from, n int) {
			RegisterAll(b, s, WaitsOf("acme", from, n), store.RegisterAnswered)
		})
	})
	b.Run("SweepUnclaimed", func(b *testing.B) { // retires events that nobody wanted, 5,000 a page
		measured(b, open, func(b *testing.B, s store.Store, _ backend.Backend) { BufferAll(b, s, EventsOf("acme", 0, b.N)) },
			func(b *testing.B, s store.Store, from, n int) {
				for left := n; left > 0; {
					swept, err := s.SweepUnclaimed(context.Background(), farAhead, farAhead, "", 5000)
					if err != nil {
						b.Error(err)
					}
					if left -= len(swept.Retired); len(swept.Retired) == 0 {
						break // other clients did
					}
				}
			})
	})
	b.Run("RequeueDeadLetters", func(b *testing.B) { // brings dead letters back
		measured(b, open, func(b *testing.B, s store.Store, _ backend.Backend) {
			BufferAll(b, s, EventsOf("acme", 0, b.N))
			for more := true; more; {
				swept, err := s.SweepUnclaimed(context.Background(), farAhead, farAhead, "", 5000)
				if err != nil {
					b.Fatal(err)
				}
				more = swept.More
			}
		}, func(b *testing.B, s store.Store, from, n int) { requeueAll(b, s, EventsOf("acme", from, n)) })
	})
	timerBenchmarks(b, open)
	b.Run("OneByOne", func(b *testing.B) { // buffers an event and offers it to its wait, 32 callers at once, each alone
		x := open(b)
		s, err := engine.New(x, engine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		startAll(b, x)
		RegisterAll(b, s, WaitsOf("acme", 0, b.N), store.RegisterWaiting)
		b.ResetTimer()
		var next atomic.Int64
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < b.N; i = int(next.Add(1)) - 1 {
					one := EventsOf("acme", i, 1)
					BufferAll(b, s, one)
					OfferAll(b, s, one, store.OfferDelivered)
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
	})
}

func measured(b *testing.B, open func(b *testing.B) backend.Backend, prepare func(*testing.B, store.Store, backend.Backend), work func(b *testing.B, s store.Store, from, n int)) {
	for _, clients := range []int{1, 4} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			x := open(b)
			s, err := engine.New(x, engine.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			prepare(b, s, x)
			b.ResetTimer()
			inShares(clients, b.N, func(from, n int) { work(b, s, from, n) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
		})
	}
}

// alone is measured for one client that does all.
func alone(b *testing.B, open func(b *testing.B) backend.Backend, prepare func(*testing.B, store.Store, backend.Backend), work func(b *testing.B, s store.Store)) {
	x := open(b)
	s, err := engine.New(x, engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	prepare(b, s, x)
	b.ResetTimer()
	work(b, s)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
}

func startAll(b *testing.B, x backend.Backend) {
	for from := 0; from < b.N; from += batchSize {
		StartRuns(b, x, "acme", from, min(batchSize, b.N-from))
	}
}

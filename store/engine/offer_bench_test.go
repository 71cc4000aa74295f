package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// BenchmarkOfferBatch is the cost of one pair in batches of 500 on distinct keys, the backend's share being that of the memory backend.
func BenchmarkOfferBatch(b *testing.B) {
	s, err := engine.New(memory.Open(clock.System, 8), engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	tenant, err := s.Tenant("default")
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for n := 0; n < b.N; n += rendezvous.MaxBatchItems {
		b.StopTimer()
		var events []store.BufferItem
		var waits []store.RegisterItem
		var items []store.OfferItem
		for i := range rendezvous.MaxBatchItems {
			run := fmt.Sprintf("r-%d-%d", n, i)
			if _, err := tenant.StartRun(ctx, store.Start{WorkflowID: run, RunID: run, Type: "order"}, time.Time{}); err != nil {
				b.Fatal(err)
			}
			waits = append(waits, store.RegisterItem{Tenant: "default", Registration: registrationOf(run, "pay", 0, run)})
			e := rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: run}, Type: "paid", Keys: orderKeys(run), Payload: make([]byte, 256)}
			events = append(events, store.BufferItem{Tenant: "default", Event: e})
			items = append(items, store.OfferItem{Tenant: "default", Event: &e.EventID})
		}
		if _, err := s.RegisterBatch(ctx, waits, time.Time{}); err != nil {
			b.Fatal(err)
		}
		if _, err := s.BufferBatch(ctx, events, time.Time{}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		o, err := s.OfferBatch(ctx, items, time.Time{})
		if err != nil || o.Items[0].Outcome != store.OfferDelivered {
			b.Fatal(err, o.Items[0])
		}
	}
}

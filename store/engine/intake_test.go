package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// few draws events of few identities, so that batches and stores meet the same ones again, with equal content and with other content.
func few(t *rapid.T) rendezvous.Event {
	k := func(v string) rendezvous.Key { return rendezvous.Key{Namespace: "k", Value: v} }
	return rendezvous.Event{
		EventID: rendezvous.EventID{Source: rapid.SampledFrom([]string{"s", "s2"}).Draw(t, "source"), ID: rapid.SampledFrom([]string{"1", "2", "3", "4", ""}).Draw(t, "id")},
		Type:    rapid.SampledFrom([]string{"paid", "paid", "sent"}).Draw(t, "type"),
		Keys:    rapid.SampledFrom([][]rendezvous.Key{nil, {k("a")}, {k("a")}, {k("a"), k("b")}, {k("b"), k("a"), k("b")}}).Draw(t, "keys"),
		Payload: rapid.SampledFrom([][]byte{[]byte("x"), []byte("x"), {}, nil}).Draw(t, "payload"),
	}
}

func open(t interface{ Fatal(...any) }) (store.Store, store.Tenant) {
	s, err := engine.New(memory.Open(clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), 8), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	return s, tenant
}

// TestIntakeIsAMapOfFirstArrivals: whatever comes in whatever batches, the first arrival of an identity is New and stands, an equal one is Duplicate,
// another one conflicts and changes nothing, and numbers rise in input order (EV-1..EV-5, EV-7, EV-8).
func TestIntakeIsAMapOfFirstArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, tenant := open(t)
		model := map[rendezvous.EventID]rendezvous.Event{}
		last := int64(0)
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			items := make([]store.BufferItem, rapid.IntRange(1, 8).Draw(t, "items"))
			for i := range items {
				items[i] = store.BufferItem{Tenant: "acme", Event: few(t)}
			}
			out, err := s.BufferBatch(t.Context(), items, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for i, item := range items {
				first, known := model[item.Event.EventID]
				switch got := out[i]; {
				case item.Event.ID == "":
					if rendezvous.CodeOf(got.Err) != rendezvous.CodeInvalid {
						t.Fatalf("item %d: %+v, want invalid", i, got)
					}
				case !known:
					if got.Outcome != store.BufferNew || got.Number <= last || len(got.Notices.Events) != 1 {
						t.Fatalf("item %d: %+v, want new above %d", i, got, last)
					}
					last = got.Number
					model[item.Event.EventID] = item.Event
				case first.Digest() == item.Event.Digest():
					if got.Outcome != store.BufferDuplicate || got.State != rendezvous.EventLive || len(got.Notices.Events) != 1 {
						t.Fatalf("item %d: %+v, want duplicate", i, got)
					}
				default:
					if rendezvous.CodeOf(got.Err) != rendezvous.CodeConflict || got.Outcome != "" || !got.Notices.Empty() {
						t.Fatalf("item %d: %+v, want conflict", i, got)
					}
				}
			}
		}
		for id, e := range model {
			got, err := tenant.LookupEvent(t.Context(), id, true)
			if err != nil || got.Type != e.Type || !rendezvous.SameKeys(got.Keys, e.Keys) || !bytes.Equal(got.Payload, e.Payload) || (got.Payload == nil) != (e.Payload == nil) {
				t.Fatalf("stored %+v, %v; want %+v", got, err, e)
			}
		}
	})
}

// TestABatchOfDeliveriesIsThemOneByOne: DeliverToBatch answers and leaves what its single verbs do in the same order (EV-87), over open, parked and
// missing waits, concluded and unknown runs, known and buffered events, with and without keep.
func TestABatchOfDeliveriesIsThemOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batched, a := open(t)
		_, b := open(t)
		both := func(do func(store.Tenant) error) {
			for _, tenant := range []store.Tenant{a, b} {
				if err := do(tenant); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, run := range []string{"r1", "r2", "done"} {
			both(func(x store.Tenant) error {
				_, err := x.StartRun(t.Context(), store.Start{WorkflowID: "wf-" + run, RunID: run, Type: "order"}, time.Time{})
				return err
			})
		}
		both(func(x store.Tenant) error {
			_, err := x.Conclude(t.Context(), store.Conclusion{RunID: "done", ExpectedSeq: 1, BatchID: "end", Outcome: rendezvous.StatusCompleted}, time.Time{})
			return err
		})
		for i := range rapid.IntRange(0, 4).Draw(t, "waits") {
			e := few(t)
			run := rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run")
			both(func(x store.Tenant) error {
				_, err := x.RegisterWait(t.Context(), store.Registration{
					Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: run, Effect: fmt.Sprint("w", i)}, Type: e.Type, Keys: e.Keys},
				}, time.Time{})
				return err
			})
		}
		items := make([]store.DeliverItem, rapid.IntRange(1, 8).Draw(t, "items"))
		ids := []rendezvous.EventID{}
		for i := range items {
			items[i] = store.DeliverItem{
				Tenant: "acme", RunID: rapid.SampledFrom([]string{"r1", "r1", "r2", "done", "unknown"}).Draw(t, "run"), Event: few(t), Keep: rapid.Bool().Draw(t, "keep"),
			}
			if id := items[i].Event.EventID; id.ID != "" {
				ids = append(ids, id)
			}
			if rapid.IntRange(0, 3).Draw(t, "buffered") == 0 {
				both(func(x store.Tenant) error {
					_, err := x.Buffer(t.Context(), items[i].Event, time.Time{})
					if c := rendezvous.CodeOf(err); c == rendezvous.CodeConflict || c == rendezvous.CodeInvalid {
						return nil
					}
					return err
				})
			}
		}
		out, err := batched.DeliverToBatch(t.Context(), items, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for i, item := range items {
			one, err := b.DeliverTo(t.Context(), item.RunID, item.Event, item.Keep, time.Time{})
			got := out[i]
			if got.Outcome != one.Outcome || got.Place != one.Place || got.Again != one.Again || got.Why != one.Why ||
				rendezvous.CodeOf(got.Err) != rendezvous.CodeOf(err) || len(got.Notices.Events) != len(one.Notices.Events) {
				t.Fatalf("item %d %+v:\nin the batch %+v\nby itself     %+v, %v", i, item, got, one, err)
			}
		}
		for _, id := range ids {
			x, errA := a.LookupEvent(t.Context(), id, true)
			y, errB := b.LookupEvent(t.Context(), id, true)
			if rendezvous.CodeOf(errA) != rendezvous.CodeOf(errB) || x.Place != y.Place || x.Target != y.Target || !bytes.Equal(x.Payload, y.Payload) {
				t.Fatalf("%v is %+v, %v after the batch and %+v, %v one by one", id, x, errA, y, errB)
			}
		}
		if x, y := parkedBy(t, a), parkedBy(t, b); !slices.Equal(x, y) {
			t.Fatalf("parked %v after the batch, %v one by one", x, y)
		}
	})
}

func parkedBy(t *rapid.T, x store.Tenant) []string {
	page, err := x.Waiting(t.Context(), store.WaitFilter{}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range page.Waits {
		held := ""
		if w.Held != nil {
			held = w.Held.Source + "/" + w.Held.ID
		}
		all = append(all, fmt.Sprint(w.RunID, w.Effect, w.State, held))
	}
	return all
}

package difftest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// TestNoPairIsLeftApart: whatever overlaps, once every registration has returned and every notice was followed by an offer, nothing that meets is apart, and
// nothing is claimed but for the run that is driven (O6, EV-24).
func TestNoPairIsLeftApart(t *testing.T) {
	overlaps(t, func(t *testing.T, w *World, s *side, seed uint64) string {
		w.Do(StartRun{Tenant: "a", Workflow: "w1", Run: "free", Type: "order"})
		w.Do(StartRun{Tenant: "a", Workflow: "w2", Run: driven, Type: "order"})
		w.Do(AcquireLease{"a", driven, "pod/1", time.Hour, "k1"})
		var all []func(Ask)
		for i := range clients {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			all = append(all, func(ask Ask) {
				for range calls {
					got, err := ask(leaves(rnd))
					if err == nil {
						follow(s, noticesIn(got))
					}
				}
			})
		}
		history := Overlap(s, all...)
		if wrong := leftApart(t, w); wrong != "" {
			return wrong + "\n" + told(history)
		}
		return ""
	})
}

// leaves is a call after which something may be left for others to do.
func leaves(rnd *rand.Rand) Step {
	id, effect := fmt.Sprint(rnd.IntN(8)), fmt.Sprint(rnd.IntN(8))
	run, epoch := "free", int64(0)
	if effect < "3" {
		run, epoch = driven, 1
	}
	var keys []string
	for range 1 + rnd.IntN(2) {
		keys = append(keys, []string{"o=1", "o=2", "c=1"}[rnd.IntN(3)])
	}
	switch rnd.IntN(10) {
	case 0, 1, 2, 3:
		return Buffer{Tenant: "a", Event: Event{Source: "shop", ID: id, Type: "paid", Keys: keys}}
	case 4, 5, 6, 7:
		return RegisterWait{Tenant: "a", Wait: Wait{Run: run, Effect: effect, Type: "paid", Keys: keys, Epoch: epoch}}
	case 8:
		return Unsubscribe{Tenant: "a", Run: run, Effect: effect, Epoch: epoch}
	}
	return ErasePayload{Tenant: "a", Source: "shop", ID: id}
}

func noticesIn(got any) store.Notices {
	switch got := got.(type) {
	case store.Buffered:
		return got.Notices
	case store.Registered:
		return got.Notices
	case store.Withdrawn:
		return got.Notices
	case store.Erasure:
		return got.Notices
	}
	return store.Notices{}
}

// follow offers what notices name until nothing more is named, as a delivery worker does. A call that did not go through is made again, as a notice is.
func follow(s *side, n store.Notices) {
	for tries := 0; len(n.Events)+len(n.Waits) > 0 && tries < 100; tries++ {
		var items []store.OfferItem
		for _, e := range n.Events {
			items = append(items, store.OfferItem{Tenant: e.Tenant, Event: &e.EventID})
		}
		for _, w := range n.Waits {
			items = append(items, store.OfferItem{Tenant: w.Tenant, Wait: &w.WaitID})
		}
		if out, err := s.store.OfferBatch(ctx, items, time.Time{}); err == nil {
			n = out.Notices
		}
	}
}

// leftApart says which event and wait meet and have not met, "" for none.
func leftApart(t *testing.T, w *World) string {
	t.Helper()
	tenant := w.look("a")
	page, err := tenant.Waiting(ctx, store.WaitFilter{}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		e, err := tenant.LookupEvent(ctx, rendezvous.EventID{Source: "shop", ID: fmt.Sprint(i)}, false)
		if err != nil {
			continue
		}
		if e.State == rendezvous.EventClaimed && e.RunID != driven {
			return fmt.Sprintf("event %s is claimed for the run %s, which nobody drives", e.ID, e.RunID)
		}
		for _, row := range page.Waits {
			if _, shared := rendezvous.SharedKey(row.Keys, e.Keys); shared && e.State == rendezvous.EventLive && row.Held == nil {
				return fmt.Sprintf("event %s and the wait %s of %s are left apart", e.ID, row.Effect, row.RunID)
			}
		}
	}
	return ""
}

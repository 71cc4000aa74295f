package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// deadWalking are the cases of filters that an operator's calls work through (sweep.md section 5, I17).
var deadWalking = []Case{
	{Name: "SW-11 one op walks a filter page by page, and any page again is that page", Run: walkingUnderOneOp},
	{Name: "SW-11 one op of a filter at once changes no more than its bound", Run: walkingAtOnce},
}

// many kills n events on a key.
func (f *Fix) many(n int, key rendezvous.Key) {
	f.T.Helper()
	for range n {
		f.PutNew("paid", key)
	}
	f.H.Advance(time.Microsecond)
	f.Sweep(0)
}

func walkingUnderOneOp(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		key := K("order", ID("order"))
		f.many(5, key)
		s := store.Selection{Filter: &store.DeadFilter{Key: &key}, Bound: 2}
		seen := map[rendezvous.EventID]bool{}
		for pages := 1; ; pages++ {
			page := must(f.RequeueDeadLetters(ctx, s, store.Requeue{}, *kim, "walk", now))(t, "requeue")
			again := must(f.RequeueDeadLetters(ctx, s, store.Requeue{}, *kim, "walk", now))(t, "requeue the page again")
			eq(t, "the page again", again.Items, page.Items)
			eq(t, "behind it", again.NextCursor, page.NextCursor)
			for _, item := range page.Items {
				eq(t, "outcome", item.Outcome, store.RequeueRequeued)
				eq(t, "met before", seen[item.EventID], false)
				seen[item.EventID] = true
			}
			if s.Cursor = page.NextCursor; !page.More || pages == 5 {
				break
			}
		}
		eq(t, "requeued", len(seen), 5)
		eq(t, "letters left", f.Count(store.DeadFilter{Key: &key}), 0)
	}
}

func walkingAtOnce(t *testing.T, h *Harness) {
	for range h.Rounds(t) {
		f := h.FixOf(t, ID("acme")) // a page looks at 5,000 letters, and memory has one order for all filters
		key, op := K("order", ID("order")), ID("op")
		f.many(6, key)
		s := store.Selection{Filter: &store.DeadFilter{Key: &key}, Bound: 2}
		var errs [3]error
		call := func(i int) func() {
			return func() { _, errs[i] = f.RequeueDeadLetters(ctx, s, store.Requeue{}, *kim, op, now) }
		}
		Race(t, call(0), call(1), call(2))
		for _, err := range errs {
			done(t, "requeue", err)
		}
		eq(t, "letters left", f.Count(store.DeadFilter{Key: &key}), 4)
	}
}

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// What a sweep and TakeUnmet do about events that meet a wait and whose offers were lost; dead_sweeping.go lists the cases.

// sweepInnocent has a worker die of one event, each time with the whole page in its hands.
func sweepInnocent(t *testing.T, h *Harness) {
	f := h.Fix(t)
	met := func(n int) (*Flow, rendezvous.Event) {
		r, key := f.Start(), K("order", fmt.Sprint(n))
		r.Waits("w", "paid", key)
		return r, f.PutNew("paid", key)
	}
	r0, first := met(0)
	rBad, bad := met(1)
	r2, last := met(2)
	h.Advance(time.Hour)
	deaths, cursor := 0, ""
	for f.Stored(bad.EventID).State == rendezvous.EventLive {
		page, next, err := h.Store.TakeUnmet(ctx, grace, 0, time.Second, cursor)
		done(t, "take unmet", err)
		var n store.Notices
		for _, p := range page.Rows {
			n.Events = append(n.Events, p.Event)
		}
		if slices.ContainsFunc(page.Rows, func(p store.UnmetPair) bool { return p.Event.EventID == bad.EventID }) {
			deaths, next = deaths+1, "" // its successor starts from the front
		} else if len(page.Rows) > 0 {
			h.Offer(t, n)
		} else {
			h.Advance(11 * time.Minute)
		}
		cursor = next
	}
	r0.WantAnswered("w", first)
	r2.WantAnswered("w", last)
	f.WantDead(bad.EventID, rendezvous.DeadUndeliverable)
	eq(t, "deaths until the event is set aside", deaths, rendezvous.UndeliverableFrom)
	rBad.WantOpen("w")
}

func sweepLostTake(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "1"))
	for n := 1; n < rendezvous.UndeliverableFrom; n++ {
		h.Advance(time.Hour)
		page, _, err := h.Store.TakeUnmet(ctx, grace, 0, time.Second, "")
		done(t, "take unmet", err)
		eq(t, "taken", len(page.Rows), 1)
		h.Advance(time.Hour)
		eq(t, "named", len(f.Sweep(0).Unmet), 1)
		eq(t, "failures", f.Stored(e.EventID).OfferFailures, n)
		eq(t, "named again", len(f.Sweep(0).Unmet), 0)
	}
	h.Advance(time.Hour)
	_, _, err := h.Store.TakeUnmet(ctx, grace, 0, time.Second, "")
	done(t, "take unmet", err)
	h.Advance(time.Hour)
	eq(t, "retired", f.Sweep(0).Retired, []store.RetiredEvent{{Tenant: f.Name(), EventID: e.EventID, Type: "paid", Reason: rendezvous.DeadUndeliverable}})
	f.WantDead(e.EventID, rendezvous.DeadUndeliverable)
	r.WantOpen("w")
}

// sweepCutPage has a busy tenant's events in front, and behind them another's whose take was lost: fair places go to both, and the cut is at the last.
func sweepCutPage(t *testing.T, h *Harness) {
	busy, other := h.FixOf(t, ID("busy")), h.FixOf(t, ID("other"))
	owed := map[string]int{}
	left := func(f *Fix) {
		key := K("order", ID("order"))
		f.Start().Waits("w", "paid", key)
		owed[f.PutNew("paid", key).ID] = 0
	}
	for range 6 {
		left(busy)
	}
	left(other)
	h.Advance(time.Hour)
	all, _, err := h.Store.TakeUnmet(ctx, grace, 0, time.Second, "")
	done(t, "take unmet", err)
	eq(t, "left apart", len(all.Rows), 7)
	others := slices.DeleteFunc(slices.Clone(all.Rows), func(p store.UnmetPair) bool { return p.Tenant == other.Name() })
	done(t, "give back", h.Store.GiveBackUnmet(ctx, others, 0))
	h.Advance(time.Hour)
	for cursor, pages := "", 0; pages == 0 || cursor != "" && pages < 20; pages++ {
		page, next, err := h.Store.TakeUnmet(ctx, grace, 4, time.Minute, cursor)
		done(t, "take unmet", err)
		for _, p := range page.Rows {
			owed[p.Event.ID]++
		}
		cursor = next
	}
	for id, n := range owed {
		eq(t, "times that "+id+" was taken in one round", n, 1)
	}
}

func sweepBehindUnmet(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	key := K("order", ID("order"))
	r.Waits("w", "paid", key)
	const many = 2*rendezvous.MaxBatchItems + 100
	for left := many; left > 0; left -= rendezvous.MaxBatchItems {
		batch := make([]store.BufferItem, min(left, rendezvous.MaxBatchItems))
		for i := range batch {
			batch[i] = store.BufferItem{Tenant: f.Name(), Event: EventOf("paid", key)}
		}
		_, err := h.Store.BufferBatch(ctx, batch, now)
		done(t, "buffer", err)
	}
	h.Advance(time.Second)
	behind := f.PutNew("paid", K("order", ID("another")))
	h.Advance(time.Hour)
	named := map[string]int{}
	var retired []string
	for more := true; more; {
		s := f.Sweep(time.Minute)
		for _, ref := range s.Unmet {
			named[ref.ID]++
			eq(t, "named "+ref.ID, named[ref.ID], 1)
		}
		retired = append(retired, sweptIDs(s)...)
		more = s.More
	}
	eq(t, "named", len(named), many)
	eq(t, "retired", retired, []string{behind.ID})
	eq(t, "named while somebody offers them", f.Sweep(time.Minute), store.Swept{})
	h.Advance(31 * time.Second)
	eq(t, "named again, as nobody did", len(f.Sweep(time.Minute).Unmet), rendezvous.MaxBatchItems)
}

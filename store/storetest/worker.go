package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Delivery is what a delivery worker did.
type Delivery struct {
	Offers []store.Offer // of items and pulled-in pairs alike, in the order they were made
	Resume []store.ResumeRef
}

// Made are the offers of that outcome.
func (d Delivery) Made(o store.OfferOutcome) []store.Offer {
	return slices.DeleteFunc(slices.Clone(d.Offers), func(x store.Offer) bool { return x.Outcome != o })
}

// Woke reports whether a RESUME for that run is among the notices.
func (d Delivery) Woke(run string) bool {
	return slices.ContainsFunc(d.Resume, func(r store.ResumeRef) bool { return r.RunID == run })
}

// Offer does what a delivery worker does with notices: it offers all events and waits, and what follows from that, until nothing follows. Parked pairs
// are left to their run.
func (h *Harness) Offer(t testing.TB, n store.Notices) Delivery {
	t.Helper()
	var d Delivery
	d.Resume = append(d.Resume, n.Resume...)
	items := offersOf(n)
	for rounds := 0; len(items) > 0; rounds++ {
		if rounds == 100 {
			t.Fatalf("offers never end: %d items still follow", len(items))
		}
		page := items[:min(len(items), rendezvous.MaxBatchItems)]
		out := must(h.Store.OfferBatch(ctx, page, now))(t, "offer a batch")
		eq(t, "outcomes of a batch", len(out.Items), len(page))
		rest := slices.Clone(items[len(page):])
		for i, o := range out.Items {
			if o.Outcome == store.OfferLater {
				rest = append(rest, page[i])
			}
		}
		items = append(rest, offersOf(out.Notices)...)
		d.Offers = append(append(d.Offers, out.Items...), out.Also...)
		d.Resume = append(d.Resume, out.Notices.Resume...)
	}
	return d
}

func offersOf(n store.Notices) []store.OfferItem {
	var items []store.OfferItem
	for _, e := range n.Events {
		items = append(items, store.OfferItem{Tenant: e.Tenant, Event: &e.EventID})
	}
	for _, w := range n.Waits {
		items = append(items, store.OfferItem{Tenant: w.Tenant, Wait: &w.WaitID})
	}
	return items
}

// Sweeping takes at most this many rows a page and holds them this long.
const (
	sweepPage = 500
	sweepHold = 30 * time.Second
	grace     = 2 * time.Second
)

// SweepUnmet runs the lost-notice pass once around, a little more than its grace from now: what is left apart is offered.
func (h *Harness) SweepUnmet(t testing.TB) Delivery {
	t.Helper()
	h.Advance(grace + time.Second)
	var d Delivery
	for cursor, pages := "", 0; ; pages++ {
		if pages == 100 {
			t.Fatal("the lost-notice pass never comes around")
		}
		page, next, err := h.Store.TakeUnmet(ctx, grace, sweepPage, sweepHold, cursor)
		done(t, "take unmet pairs", err)
		var n store.Notices
		for _, row := range page.Rows {
			n.Events = append(n.Events, row.Event)
		}
		made := h.Offer(t, n)
		d.Offers, d.Resume = append(d.Offers, made.Offers...), append(d.Resume, made.Resume...)
		if cursor = next; cursor == "" {
			return d
		}
	}
}

// SweepParked takes what is parked and due and delivers it, or parks it again as the sweeper does.
func (h *Harness) SweepParked(t testing.TB) Delivery {
	t.Helper()
	return h.deliverTaken(t, must(h.Store.TakeParked(ctx, sweepPage, sweepHold))(t, "take parked waits").Rows)
}

// deliverTaken delivers a page of takes.
func (h *Harness) deliverTaken(t testing.TB, taken []store.TakenWait) Delivery {
	t.Helper()
	if len(taken) == 0 {
		return Delivery{}
	}
	refs := make([]store.WaitRef, len(taken))
	for i, w := range taken {
		refs[i] = store.WaitRef{Tenant: w.Tenant, WaitID: w.WaitID, Keys: w.Keys}
	}
	out := must(h.Store.DeliverParked(ctx, refs, now))(t, "deliver parked waits")
	var again []store.ParkItem
	for i, o := range out.Items {
		item := store.ParkItem{Tenant: refs[i].Tenant, WaitID: refs[i].WaitID, Take: taken[i].Take, RetryIn: time.Second}
		switch o.Outcome {
		case store.OfferParked:
			item.Cause = store.ParkLeased
		case store.OfferFailed:
			item.Cause, item.Error = store.ParkFailed, o.Err.Error()
		default:
			continue
		}
		again = append(again, item)
	}
	if len(again) > 0 {
		must(h.Store.ParkWait(ctx, again, now))(t, "park again")
	}
	made := h.Offer(t, store.Notices{Events: out.Notices.Events, Waits: out.Notices.Waits})
	return Delivery{
		Offers: slices.Concat(out.Items, out.Also, made.Offers), Resume: slices.Concat(out.Notices.Resume, made.Resume),
	}
}

// SweepLeases reclaims every abandoned run.
func (h *Harness) SweepLeases(t testing.TB) []store.Reclaimed {
	t.Helper()
	var all []store.Reclaimed
	for cursor := ""; ; {
		rows, next, err := h.Store.AbandonedRuns(ctx, 0, cursor)
		done(t, "list abandoned runs", err)
		var items []store.ReclaimItem
		for _, r := range rows {
			if r.Corrupt == nil {
				items = append(items, store.ReclaimItem{Tenant: r.Tenant, WorkflowID: r.WorkflowID, Epoch: r.Epoch, ExpiresAt: r.ExpiresAt})
			}
		}
		if len(items) > 0 {
			all = append(all, must(h.Store.ReclaimRun(ctx, items))(t, "reclaim runs")...)
		}
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// SweepWoken takes the woken runs whose notice is due.
func (h *Harness) SweepWoken(t testing.TB) []store.ResumeRef {
	t.Helper()
	return must(h.Store.TakeWoken(ctx, sweepPage))(t, "take woken runs").Rows
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// sweepings are the cases of passes that have more before them than a page (SW-15, SW-25, SW-27, SW-35).
var sweepings = []Case{
	{Name: "SW-15 128 pairs that fail for ever hide no good one behind them, back off and end quarantined", Run: poisonInFront},
	{Name: "SW-25 a tenant with many due rows keeps another one's single row out of no first page", Run: manyBesideOne},
	{Name: "SW-27 SW-21 passes with nothing due write nothing", Run: quietPasses},
	{Name: "SW-35 depths are exact to the cap, and say where they are capped", Run: depthsCapped},
}

// parkedTick works pages of parked waits as a tick of the sweeper does, of that many rows each.
func (h *Harness) parkedTick(t testing.TB, limit int) (made Delivery, pages int) {
	t.Helper()
	for pages < 20 {
		pages++
		taken := must(h.Store.TakeParked(ctx, limit, sweepHold))(t, "take parked waits")
		if len(taken.Rows) > limit {
			t.Fatalf("a page of %d rows", len(taken.Rows))
		}
		made.add(h.deliverTaken(t, taken.Rows))
		if !taken.Saturated {
			break
		}
	}
	return made, pages
}

func (d *Delivery) add(o Delivery) {
	d.Offers, d.Resume = append(d.Offers, o.Offers...), append(d.Resume, o.Resume...)
}

func poisonInFront(t *testing.T, h *Harness) {
	const many, page = 128, 32
	f := h.Fix(t)
	var bad []*Flow
	for range many {
		r, e := parkedBy(t, f)
		done(t, "damage", h.Damage.Event(f.Name(), e.EventID))
		bad = append(bad, r)
	}
	h.Advance(time.Second)
	good, e := parkedBy(t, f) // due behind them
	h.Advance(3 * time.Second)
	first, pages := h.parkedTick(t, page)
	eq(t, "pages of the first tick, and what failed", []any{pages, len(first.Made(store.OfferFailed))}, []any{5, many})
	good.WantAnswered("w", e)
	beside, e := parkedBy(t, f)
	h.Advance(3 * time.Second)
	h.parkedTick(t, page)
	beside.WantAnswered("w", e)

	parked := func() (rows []store.WaitRow, last time.Time) {
		for cursor := ""; ; {
			got := must(f.ParkedWaits(ctx, store.WaitFilter{}, 0, cursor))(t, "list parked waits")
			rows = append(rows, got.Waits...)
			if cursor = got.NextCursor; cursor == "" {
				break
			}
		}
		for _, w := range rows {
			if w.State == rendezvous.WaitParked && w.NextAttemptAt.After(last) {
				last = w.NextAttemptAt
			}
		}
		return rows, last
	}
	var pauses []time.Duration
	for ticks := 0; ; ticks++ {
		rows, last := parked()
		eq(t, "listed", len(rows), many)
		if last.IsZero() {
			break
		}
		if ticks > 2*rendezvous.QuarantineAfter {
			t.Fatal("the poison is not quarantined")
		}
		pauses = append(pauses, last.Sub(h.Now(t)))
		h.Advance(max(last.Sub(h.Now(t)), 0))
		h.parkedTick(t, page)
	}
	if n := len(pauses); n < 10 || pauses[0] > 10*time.Second || pauses[n-1] < 2*time.Minute {
		t.Fatalf("the pauses do not grow: %v", pauses)
	}
	rows, _ := parked()
	for _, w := range rows {
		if w.State != rendezvous.WaitQuarantined || w.Attempts != rendezvous.QuarantineAfter || w.LastError == "" || w.QuarantinedAt.IsZero() {
			t.Fatalf("listed: %+v", w)
		}
	}
	why := bad[many/2].WhyWait("w")
	eq(t, "explained", []any{why.Verdict, why.Facts.Hold.State, why.Facts.Hold.LastError != ""}, []any{rendezvous.VerdictHeld, rendezvous.HoldQuarantined, true})
	h.Advance(time.Hour)
	h.Untaken(t)
}

// Owed is how Owe leaves its runs.
type Owed int

// The ways.
const (
	OwedParked Owed = iota // its wait holds an event that nobody recorded
	OwedApart              // its wait and an event that meets it are both there, and nobody offered the one to the other
	OwedNotice             // a RESUME of it is due
	OwedLease              // its driver died: its lease ran out
)

// Owe makes n runs of a tenant that were forgotten, as lost notices and dead workers would leave them; those with a wait and an event have what [WaitsOf] and
// [EventsOf] say.
func Owe(tb testing.TB, b backend.Backend, tenant string, n int, how Owed) {
	tb.Helper()
	for from := 0; from < n; from += batchSize {
		StartRuns(tb, b, tenant, from, min(batchSize, n-from))
	}
	for from := 0; from < n; from += batchSize {
		err := b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
			n := min(batchSize, n-from)
			switch how {
			case OwedNotice:
				return tx.Apply(ctx, oweNotices(tx.Now(), tenant, from, n))
			case OwedLease:
				c, err := oweLeases(ctx, tx, tenant, from, n)
				return errors.Join(err, tx.Apply(ctx, c))
			}
			c, err := owePairs(ctx, tx, tenant, from, n, how == OwedParked)
			return errors.Join(err, tx.Apply(ctx, c))
		})
		done(tb, "fill", err)
	}
}

func oweNotices(now time.Time, tenant string, from, n int) *backend.Changes {
	c := &backend.Changes{}
	for i := range n {
		id := fmt.Sprintf("run-%06d", from+i)
		c.Woken = append(c.Woken, &backend.Woken{
			Tenant: tenant, WorkflowID: id, RunID: id, Queue: "default", Since: now, Cause: rendezvous.CauseStarted, Seq: 1, NextNoticeAt: now,
		})
	}
	return c
}

func owingKeys(tenant string, from, n int) []backend.WorkflowKey {
	keys := make([]backend.WorkflowKey, n)
	for i := range n {
		keys[i] = backend.WorkflowKey{Tenant: tenant, ID: fmt.Sprintf("run-%06d", from+i)}
	}
	return keys
}

func oweLeases(ctx context.Context, tx backend.Tx, tenant string, from, n int) (*backend.Changes, error) {
	c := &backend.Changes{}
	flows, err := tx.LockWorkflows(ctx, owingKeys(tenant, from, n))
	for _, f := range flows {
		f.LeaseOwner, f.LeaseEpoch, f.LeaseExpires, f.AcquireID = "pod", 1, tx.Now(), "acquire"
		c.Workflows = append(c.Workflows, f)
	}
	return c, err
}

func owePairs(ctx context.Context, tx backend.Tx, tenant string, from, n int, parked bool) (*backend.Changes, error) {
	c, keys := &backend.Changes{}, owingKeys(tenant, from, n)
	flows, err1 := tx.LockWorkflows(ctx, keys)
	events, err2 := tx.NewEventNumbers(ctx, n)
	waits, err3 := tx.NewWaitNumbers(ctx, 2*n)
	if err := errors.Join(err1, err2, err3); err != nil {
		return c, err
	}
	for i, k := range keys {
		f, e, w := flows[k], EventsOf(tenant, from+i, 1)[0].Event, WaitsOf(tenant, from+i, 1)[0].Wait
		f.Head, f.OpenWaits = 2, 1
		c.Workflows = append(c.Workflows, f)
		c.Records = append(c.Records, &backend.Record{Tenant: tenant, WorkflowID: k.ID, Record: rendezvous.Record{
			Seq: 2, RunID: k.ID, Kind: rendezvous.WaitRegistered, V: rendezvous.KindVersion, Effect: w.Effect, Attempt: 1, RecordedAt: tx.Now(),
			Data: rendezvous.EncodeData(rendezvous.WaitRegisteredData{Type: w.Type, Keys: w.Keys}),
		}})
		event := &backend.Event{
			Number: events[i], Tenant: tenant, Source: e.Source, ID: e.ID, Type: e.Type, Keys: e.Keys, ContentType: e.ContentType, Payload: e.Payload, HasPayload: true,
			Digest: make([]byte, 32), ReceivedAt: tx.Now(), LiveSince: tx.Now(), State: rendezvous.EventLive,
		}
		wait := &backend.Wait{
			Number: waits[2*i], Tenant: tenant, RunID: k.ID, Effect: w.Effect, WorkflowID: k.ID, Shard: f.Shard, Attempt: 1, Type: w.Type, Keys: w.Keys,
			RegisteredAt: tx.Now(), OpenSince: tx.Now(),
		}
		if parked {
			event.State, event.ClaimRun, event.ClaimEffect, event.ClaimedAt = rendezvous.EventClaimed, k.ID, w.Effect, tx.Now()
			wait.Held = &backend.HeldEvent{Number: event.Number, Source: e.Source, ID: e.ID, Claim: waits[2*i+1]}
			wait.ParkedAt, wait.NextAttemptAt = tx.Now(), tx.Now()
		}
		c.NewEvents, c.NewWaits = append(c.NewEvents, event), append(c.NewWaits, wait)
	}
	return c, nil
}

func manyBesideOne(t *testing.T, h *Harness) {
	const many, page = 1000, 100
	ways := []Owed{OwedParked, OwedApart, OwedNotice, OwedLease}
	for _, how := range ways {
		Owe(t, h.backend, fmt.Sprint("many-", how), many, how)
	}
	h.Advance(time.Second) // the others are due longer
	for _, how := range ways {
		Owe(t, h.backend, fmt.Sprint("one-", how), 1, how)
	}
	h.Advance(grace + time.Second)
	parked := must(h.Store.TakeParked(ctx, page, 0))(t, "take parked waits")
	fullPage(t, OwedParked, parked, func(r store.TakenWait) string { return r.Tenant })
	woken := must(h.Store.TakeWoken(ctx, page))(t, "take woken runs")
	fullPage(t, OwedNotice, woken, func(r store.ResumeRef) string { return r.Tenant })
	unmet, _, err := h.Store.TakeUnmet(ctx, grace, page, 0, "")
	done(t, "take unmet events", err)
	fullPage(t, OwedApart, unmet, func(r store.UnmetPair) string { return r.Tenant })
	leases, next, err := h.Store.DueLeases(ctx, page, "")
	done(t, "list leases that ran out", err)
	fullPage(t, OwedLease, store.Taken[store.AbandonedRun]{Rows: leases, Saturated: next != ""}, func(r store.AbandonedRun) string { return r.Tenant })
	eq(t, "delivered of what was taken", len(h.deliverTaken(t, parked.Rows).Made(store.OfferDelivered)), page)

	// Of a tenant alone, the longest due first.
	first := must(h.Store.TakeParked(ctx, 1, 0))(t, "take a parked wait").Rows[0]
	eq(t, "the next one", first.RunID, fmt.Sprintf("run-%06d", page-1))
}

// fullPage fails the test unless the page is full and has the lone tenant's row.
func fullPage[T any](t *testing.T, how Owed, taken store.Taken[T], tenant func(T) string) {
	t.Helper()
	lone := 0
	for _, r := range taken.Rows {
		if tenant(r) == fmt.Sprint("one-", how) {
			lone++
		}
	}
	eq(t, "rows, the lone tenant's, more", []any{len(taken.Rows), lone, taken.Saturated}, []any{100, 1, true})
}

func quietPasses(t *testing.T, h *Harness) {
	f := h.Fix(t)
	waiting, driven, paused := f.Start(), f.Start(), f.Start()
	waiting.Waits("w", "paid", K("order", "1"))
	driven.Drive().Waits("w", "paid", K("order", "2"))
	f.Send(EventOf("paid", K("order", "2"))) // parked, its run is leased
	f.PutNew("paid", K("order", "3"))
	paused.Waits("w", "shipped", K("order", "1"))
	answered := f.Start()
	answered.Waits("w", "paid", K("order", "4"))
	f.Send(EventOf("paid", K("order", "4")))
	h.SweepUnmet(t)
	h.SweepWoken(t)
	h.Counting.Reset()
	eq(t, "unmet", len(h.SweepUnmet(t).Offers), 0)
	news, _, err := h.Store.TakeNews(ctx, grace, 0, 0, "")
	done(t, "take news", err)
	eq(t, "news", len(news.Rows), 0)
	eq(t, "parked", len(h.Take(t)), 0)
	eq(t, "woken", len(h.SweepWoken(t)), 0)
	eq(t, "abandoned", len(h.SweepLeases(t)), 0)
	eq(t, "retired", len(must(h.Store.SweepUnclaimed(ctx, h.Now(t).Add(-time.Hour), now, "", 0))(t, "sweep").Retired), 0)
	eq(t, "closed workflows", must(h.Store.PruneWorkflows(ctx, h.Now(t), 0, ""))(t, "prune"), store.Pruned{})
	eq(t, "records of pruned ones", must(h.Store.PruneRecords(ctx, 0))(t, "prune records"), store.PrunedRecords{})
	eq(t, "old letters", must(h.Store.PurgeOldLetters(ctx, h.Now(t), 0, ""))(t, "purge"), store.OldLetters{})
	eq(t, "writes", h.Counting.Counts().Writes, 0)
}

func depthsCapped(t *testing.T, h *Harness) {
	const most, more = 10, 15
	Owe(t, h.backend, "acme", more, OwedParked)
	Owe(t, h.backend, "globex", most-1, OwedApart)
	Owe(t, h.backend, "hooli", more, OwedNotice)
	f := h.FixOf(t, "umbrella")
	var letters []rendezvous.Event
	for range more {
		letters = append(letters, f.PutNew("paid"))
	}
	h.Advance(time.Second)
	eq(t, "retired", len(must(f.SweepUnclaimed(ctx, h.Now(t), now, "", 0))(t, "sweep").Retired), len(letters))
	depths := func(most int) (d backend.Depths) {
		done(t, "depths", h.backend.View(ctx, "test", func(ctx context.Context, r backend.Reader) (err error) {
			d, err = r.Depths(ctx, most)
			return err
		}))
		return d
	}
	capped, exact := depths(most), depths(more)
	eq(t, "capped", []int{capped.LiveEvents, capped.OpenWaits, capped.ParkedWaits, capped.Woken, capped.Dead[rendezvous.DeadUnclaimed]}, []int{most - 1, most - 1, most, most, most})
	eq(t, "exact", []int{exact.LiveEvents, exact.OpenWaits, exact.ParkedWaits, exact.Woken, exact.Dead[rendezvous.DeadUnclaimed]}, []int{most - 1, most - 1, more, more, more})
	eq(t, "said of all", must(h.Store.Depths(ctx))(t, "depths").Capped, false)
}

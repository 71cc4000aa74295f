package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// deadSweeping are the cases of events that nobody wanted in time (SW-1..SW-8, SW-20, SW-22, SW-25).
var deadSweeping = []Case{
	{Name: "SW-1 both bounds are inclusive, to the microsecond", Run: sweepBounds},
	{Name: "SW-2 a sweep names what it retired, once; a long window protects", Run: sweepAgain},
	{Name: "SW-3 claimed and consumed events are never touched", Run: sweepSparesClaimed},
	{Name: "SW-4 SW-5 an own expiry decides alone, and only a sweep makes it a death", Run: sweepExpiries},
	{Name: "SW-6 SW-20 what meets an open wait is offered, not retired", Run: sweepUnmet},
	{Name: "SW-25 what stands beside an open wait takes no other tenant's place", Run: sweepFairlyBesideWaits},
	{Name: "SW-8 the longest due goes first, also beside an open wait", Run: sweepInOrderBesideWaits},
	{Name: "SW-6 SW-8 any number of events that meet a wait hide nothing behind them, and each is named once", Run: sweepBehindUnmet},
	{Name: "SW-6 what stands beside an open wait and does not meet it is retired", Run: sweepNearMisses},
	{Name: "SW-7 a letter lists its keys, and the given text", Run: sweepDetail},
	{Name: "SW-8 SW-25 pages of the limit, fair by tenant, the longest due first", Run: sweepPages},
	{Name: "SW-22 an event whose offers are lost again and again ends undeliverable, listed and requeueable", Run: sweepUndeliverable},
	{Name: "SW-22 EV-60 what was taken beside an event that ends its workers is not blamed for it", Run: sweepInnocent},
	{Name: "SW-22 a sweep counts a lost take too", Run: sweepLostTake},
	{Name: "SW-25 a page cut at a lost take leaves nothing out of the round", Run: sweepCutPage},
	{Name: "EV-30 two events for one wait: only the other one becomes a dead letter", Run: sweepTheOther},
	{Name: "SW-3 a sweep against a claim: exactly one wins", Run: sweepAgainstClaim},
	{Name: "S5 two sweeps at once retire each event once", Run: sweepTwice},
	{Name: "a sweep at any step is done or not done", Run: sweepOrNot},
	{Name: "an event that does not decode is retired alone and listed as corrupt", Run: sweepCorrupt},
	{Name: "limits of a sweep are refused by name", Run: sweepLimits},
}

// Sweep retires what is older than the window in the tenant, or past its own expiry, one page.
func (f *Fix) Sweep(window time.Duration) store.Swept {
	f.T.Helper()
	return must(f.SweepUnclaimed(ctx, must(f.H.Store.Now(ctx))(f.T, "ask the store's now").Add(-window), now, "", 0))(f.T, "sweep")
}

// SweptIDs are the events that a sweep retired.
func sweptIDs(s store.Swept) []string {
	var ids []string
	for _, r := range s.Retired {
		ids = append(ids, r.ID)
	}
	return ids
}

func sweepBounds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := f.PutNew("paid", K("order", "1"))
	since := f.Stored(e.EventID).LiveSince
	at := func(olderThan, at time.Time) store.Swept {
		return must(f.SweepUnclaimed(ctx, olderThan, at, "", 0))(t, "sweep")
	}
	eq(t, "retired a microsecond early", at(since.Add(-time.Microsecond), now).Retired, nil)
	f.WantLive(e)
	eq(t, "retired at the cutoff", at(since, now).Retired, []store.RetiredEvent{{Tenant: f.Name(), EventID: e.EventID, Type: "paid", Reason: rendezvous.DeadUnclaimed}})
	f.WantDead(e.EventID, rendezvous.DeadUnclaimed)

	x := EventOf("paid", K("order", "2"))
	x.ExpiresAt = since.Add(time.Hour)
	f.Put(x)
	eq(t, "expired a microsecond early", at(since, x.ExpiresAt.Add(-time.Microsecond)).Retired, nil)
	eq(t, "expired", at(since, x.ExpiresAt).Retired, []store.RetiredEvent{{Tenant: f.Name(), EventID: x.EventID, Type: "paid", Reason: rendezvous.DeadExpired}})
	eq(t, "dead at", f.WantDead(x.EventID, rendezvous.DeadExpired).DeadAt, x.ExpiresAt)
}

func sweepAgain(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		plain, bare := f.PutNew("paid", K("order", "1")), f.PutNew("shipped")
		many := f.PutNew("paid", K("a", "1"), K("b", "1"), K("c", "1"))
		kept := EventOf("paid", K("order", "1"))
		f.Start().Kept(kept)
		h.Advance(time.Hour)
		eq(t, "retired within a long window", f.Sweep(2*time.Hour).Retired, nil)
		eq(t, "retired within the longest window", f.Sweep(math.MaxInt64).Retired, nil)
		for _, none := range []time.Time{{}, time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)} {
			eq(t, "retired by a window longer than time", must(f.SweepUnclaimed(ctx, none, now, "", 0))(t, "sweep").Retired, nil)
		}
		swept := f.Sweep(time.Hour)
		eq(t, "retired, in order", sweptIDs(swept), []string{plain.ID, bare.ID, many.ID, kept.ID})
		eq(t, "more", swept.More, false)
		eq(t, "retired again", f.Sweep(0), store.Swept{})
		for _, e := range []rendezvous.Event{plain, bare, many, kept} {
			stored := f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
			eq(t, "detail", stored.Detail, "")
			SamePayload(t, stored.Payload, e.Payload)
			again := f.Put(e)
			eq(t, "replay", []any{again.Outcome, again.State}, []any{store.BufferDuplicate, rendezvous.EventDead})
		}
		r := f.Start()
		r.Waits("w", "paid", K("order", "1")) // nothing dead is matched
	}
}

func sweepSparesClaimed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		d := f.Start().Drive()
		held := d.Parked("held")
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
		consumed := EventOf("paid", K("order", "1"))
		f.Send(consumed)
		claimed := EventOf("paid", K("order", "2"))
		claimed.ExpiresAt = h.Now(t).Add(time.Second)
		d.Waits("v", "paid", K("order", "2"))
		f.Send(claimed)
		h.Advance(24 * time.Hour)
		eq(t, "swept", f.Sweep(0), store.Swept{})
		eq(t, "letters", f.Letters(store.DeadFilter{}), nil)
		f.WantState(held.EventID, rendezvous.EventClaimed)
		f.WantState(claimed.EventID, rendezvous.EventClaimed)
		f.WantState(consumed.EventID, rendezvous.EventConsumed)
	}
}

func sweepExpiries(t *testing.T, h *Harness) {
	f := h.Fix(t)
	late, long := EventOf("paid", K("order", "1")), EventOf("paid", K("order", "2"))
	late.ExpiresAt, long.ExpiresAt = h.Now(t).Add(-time.Hour), h.Now(t).Add(72*time.Hour)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	f.Put(late)
	f.Put(long)
	eq(t, "offer of what came late", f.OfferEvent(late.EventID).Outcome, store.OfferExpired)
	r.WantOpen("w")
	f.WantLive(late, long) // whatever its age on arrival
	eq(t, "swept at once", sweptIDs(f.Sweep(time.Hour)), []string{late.ID})
	f.WantDead(late.EventID, rendezvous.DeadExpired)
	h.Advance(71 * time.Hour)
	eq(t, "swept long after the window", f.Sweep(time.Hour).Retired, nil)
	f.WantLive(long)
	h.Advance(time.Hour)
	eq(t, "swept at the expiry", sweptIDs(f.Sweep(time.Hour)), []string{long.ID})
	f.WantDead(long.EventID, rendezvous.DeadExpired)
}

func sweepUnmet(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r, other := f.Start(), f.Start()
		r.Waits("w", "paid", K("order", "1"))
		e, alone := f.PutNew("paid", K("x", "1"), K("order", "1")), f.PutNew("paid", K("order", "9"))
		other.Subscribes("w", "paid", K("order", "7")) // its caller died before it claimed
		before := f.PutNew("paid", K("order", "7"))
		kept := EventOf("paid", K("order", "3"))
		keeper := f.Start()
		keeper.Kept(kept)
		keeper.Subscribes("w", "paid")
		h.Advance(2 * time.Hour)
		swept := must(f.SweepUnclaimed(ctx, h.Now(t), now, "", 1))(t, "sweep") // what is unmet does not use the limit up
		eq(t, "retired", sweptIDs(swept), []string{alone.ID})
		var unmet []string
		for _, ref := range swept.Unmet {
			eq(t, "tenant of the unmet", ref.Tenant, f.Name())
			unmet = append(unmet, ref.ID)
		}
		eq(t, "unmet", unmet, []string{e.ID, before.ID, kept.ID})
		eq(t, "events to offer", swept.Notices.Events, swept.Unmet)
		h.Offer(t, swept.Notices)
		r.WantAnswered("w", e)
		other.WantAnswered("w", before)
		keeper.WantAnswered("w", kept)
		eq(t, "swept again", f.Sweep(0), store.Swept{})
	}
}

// sweepNearMisses: a wait that shares key and type and is met by none of them protects none of them, for ever.
func sweepNearMisses(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	w := r.Wait("w", "paid", K("order", "1"))
	w.From = "bank"
	eq(t, "registering", r.Register(w).Outcome, store.RegisterWaiting)
	other := f.PutNew("paid", K("order", "1")) // from the shop
	restored(t, f, "w", "paid", K("order", "2"))
	sealed := f.PutNew("paid", K("order", "2"))
	target := f.Start()
	target.Waits("w", "paid", K("order", "3"))
	kept := EventOf("paid", K("order", "4"))
	target.Kept(kept)
	own := EventOf("paid", K("order", "3")) // it would meet the wait, but for its expiry
	own.ExpiresAt = h.Now(t).Add(time.Minute)
	f.Put(own)
	h.Advance(time.Hour)
	swept := must(f.SweepUnclaimed(ctx, h.Now(t).Add(-time.Hour), now, "", 3))(t, "sweep")
	eq(t, "first page", []any{len(swept.Retired), swept.Unmet, swept.More}, []any{3, []store.EventRef(nil), true})
	eq(t, "rest", len(f.Sweep(time.Hour).Retired), 1)
	for _, e := range []rendezvous.Event{other, sealed, kept} {
		f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
	}
	f.WantDead(own.EventID, rendezvous.DeadExpired)
	r.WantOpen("w")
}

func sweepDetail(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := EventOf("paid", K("b", "ü\" '"), K("a", "1"))
	e.MintedBy, e.Source = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}, "rendezvous:operator"
	f.Put(e)
	h.Advance(time.Second)
	must(f.SweepUnclaimed(ctx, h.Now(t), now, "nobody\ncame", 0))(t, "sweep")
	letters := f.Letters(store.DeadFilter{})
	eq(t, "letters", len(letters), 1)
	got := letters[0]
	eq(t, "event", got.Event, func() rendezvous.Event { e := e; e.Payload, e.ContentType = nil, ""; return e }())
	eq(t, "death", []any{got.Reason, got.Detail, got.DeadAt, got.HasPayload}, []any{rendezvous.DeadUnclaimed, "nobody\ncame", h.Now(t), true})
	eq(t, "stored", got.StoredEvent, func() store.StoredEvent { s := f.Stored(e.EventID); s.Payload, s.ContentType = nil, ""; return s }())
	page := must(f.DeadLetters(ctx, store.DeadFilter{}, 0, "", true))(t, "list with payloads")
	SamePayload(t, page.Letters[0].Payload, e.Payload)
	eq(t, "content type", page.Letters[0].ContentType, e.ContentType)
}

func sweepPages(t *testing.T, h *Harness) {
	const many, page = 10_000, 500
	BufferAll(t, h.Store, EventsOf("acme", 0, many))
	h.Advance(time.Second)
	lone := h.FixOf(t, "globex")
	e := lone.PutNew("paid")
	x := EventOf("paid", K("order", "1"), K("order", "2"))
	x.ExpiresAt = h.Now(t).Add(time.Second)
	lone.Put(x)
	h.Advance(time.Second)
	sweep := func(limit int) store.Swept {
		t.Helper()
		return must(h.Store.SweepUnclaimed(ctx, h.Now(t), now, "", limit))(t, "sweep all")
	}
	first := sweep(page)
	eq(t, "first page", []any{len(first.Retired), first.More}, []any{page, true})
	var others []string
	for i, r := range first.Retired {
		if r.Tenant == "globex" {
			others = append(others, r.ID)
		} else {
			eq(t, "place of an event", r.ID, fmt.Sprintf("event-%06d", i)) // those with the lowest number of equal age
		}
	}
	eq(t, "the other tenant's", others, []string{e.ID, x.ID}) // longest due first: one since its arrival, one since its expiry
	retired, pages := len(first.Retired), 1
	seen := map[string]bool{}
	for more := true; more; pages++ {
		swept := sweep(5000)
		if len(swept.Retired) > 5000 {
			t.Fatalf("a page of %d", len(swept.Retired))
		}
		for _, r := range swept.Retired {
			if seen[r.ID] {
				t.Fatalf("%s retired twice", r.ID)
			}
			seen[r.ID] = true
		}
		retired += len(swept.Retired)
		more = swept.More
	}
	eq(t, "retired", retired, many+2)
	eq(t, "pages", pages, 3)
	d := must(h.Store.Depths(ctx))(t, "depths")
	eq(t, "depths", []any{d.LiveEvents, d.DeadLetters, d.Dead, d.Capped}, []any{
		0, store.DepthCap, map[rendezvous.DeadReason]int{rendezvous.DeadUnclaimed: store.DepthCap, rendezvous.DeadExpired: 1}, true,
	})
}

func sweepUndeliverable(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "1"))
	later := f.Start()
	later.Waits("w", "paid", K("order", "2"))
	behind := f.PutNew("paid", K("order", "2"))
	h.Advance(time.Hour)
	for range rendezvous.UndeliverableFrom + 1 { // its workers are lost
		page, _, err := h.Store.TakeUnmet(ctx, grace, 0, time.Second, "")
		done(t, "take unmet", err)
		for _, p := range page.Rows {
			if p.Event.EventID == behind.EventID { // offered in the same tick, whatever stands before it
				h.Offer(t, store.Notices{Events: []store.EventRef{p.Event}})
			}
		}
		h.Advance(11 * time.Minute)
	}
	later.WantAnswered("w", behind)
	f.WantDead(e.EventID, rendezvous.DeadUndeliverable)
	eq(t, "letters", len(f.Letters(store.DeadFilter{Reason: rendezvous.DeadUndeliverable})), 1)
	out := f.RequeueAll(e.EventID)
	eq(t, "requeued", out.Items[0].Outcome, store.RequeueRequeued)
	eq(t, "failures", f.Stored(e.EventID).OfferFailures, 0)
	h.Offer(t, out.Notices)
	r.WantAnswered("w", e)
}

func sweepTheOther(t *testing.T, h *Harness) {
	for range h.Rounds(t) {
		f := h.Fix(t)
		key := K("order", ID("order"))
		r := f.Start()
		r.Waits("w", "paid", key)
		events := []rendezvous.Event{f.PutNew("paid", key), f.PutNew("paid", key)}
		Race(t, func() { f.offerQuietly(events[0]) }, func() { f.offerQuietly(events[1]) })
		h.Advance(time.Second)
		swept := f.Sweep(0)
		eq(t, "retired", len(swept.Retired), 1)
		answered := events[0]
		if swept.Retired[0].EventID == events[0].EventID {
			answered = events[1]
		}
		r.WantAnswered("w", answered)
		f.WantDead(swept.Retired[0].EventID, rendezvous.DeadUnclaimed)
	}
}

// offerQuietly offers an event and leaves it to the case to find out what came of it.
func (f *Fix) offerQuietly(e rendezvous.Event) {
	_, _ = f.H.Store.OfferBatch(ctx, []store.OfferItem{{Tenant: f.Name(), Event: &e.EventID}}, now)
}

func sweepAgainstClaim(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		key := K("order", ID("order"))
		e := f.PutNew("paid", key)
		r := f.Start()
		w := r.Wait("w", "paid", key)
		h.Advance(time.Second)
		cutoff := h.Now(t)
		var swept store.Swept
		var sweepErr, waitErr error
		Race(t,
			func() { swept, sweepErr = f.SweepUnclaimed(ctx, cutoff, now, "", 0) },
			func() { _, waitErr = f.RegisterWait(ctx, store.Registration{Wait: w}, now) },
		)
		done(t, "sweep", sweepErr)
		done(t, "register", waitErr)
		h.Offer(t, swept.Notices)
		dead := slices.Contains(sweptIDs(swept), e.ID)
		stored := f.Stored(e.EventID)
		switch {
		case dead && stored.State == rendezvous.EventDead:
			r.WantOpen("w")
		case !dead && stored.State == rendezvous.EventConsumed:
			r.WantAnswered("w", e)
		default:
			t.Fatalf("the sweep says dead: %v; the event is %s", dead, stored.State)
		}
	}
}

func sweepTwice(t *testing.T, h *Harness) {
	for range max(h.Rounds(t)/10, 2) {
		const n = 100
		tenant := ID("tenant")
		BufferAll(t, h.Store, EventsOf(tenant, 0, n))
		h.Advance(time.Second)
		cutoff := h.Now(t)
		var all [3][]store.RetiredEvent
		var errs [3]error
		work := func(i int) func() {
			return func() {
				for {
					swept, err := h.Store.SweepUnclaimed(ctx, cutoff, now, "", 7)
					all[i] = append(all[i], swept.Retired...)
					if errs[i] = err; err != nil || !swept.More && len(swept.Retired) == 0 {
						return
					}
				}
			}
		}
		Race(t, work(0), work(1), work(2))
		seen := map[string]int{}
		for i := range all {
			done(t, "sweep", errs[i])
			for _, r := range all[i] {
				seen[r.ID]++
			}
		}
		for { // what was locked came again to nobody
			swept := must(h.Store.SweepUnclaimed(ctx, cutoff, now, "", 0))(t, "sweep")
			if len(swept.Retired) == 0 {
				break
			}
			for _, r := range swept.Retired {
				seen[r.ID]++
			}
		}
		eq(t, "retired", len(seen), n)
		for id, times := range seen {
			eq(t, "times "+id+" was retired", times, 1)
		}
	}
}

func sweepOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "sweep_unclaimed", func() (func() error, func(error, bool)) {
		e := f.PutNew("paid", K("order", ID("order")), K("customer", "1"))
		h.Advance(time.Second)
		return func() error { _, err := f.SweepUnclaimed(ctx, h.Now(t), now, "", 0); return err }, func(_ error, committed bool) {
			if committed {
				f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
			} else {
				f.WantLive(e)
			}
			f.Sweep(0)
			f.WantDead(e.EventID, rendezvous.DeadUnclaimed)
			eq(t, "letters of it", len(f.Letters(store.DeadFilter{Key: &e.Keys[0]})), 1)
		}
	})
}

func sweepCorrupt(t *testing.T, h *Harness) {
	f := h.Fix(t)
	bad, good := f.PutNew("paid", K("order", "1")), f.PutNew("paid", K("order", "1"))
	done(t, "damage", h.Damage.Event(f.Name(), bad.EventID))
	h.Advance(time.Second)
	eq(t, "retired", sweptIDs(f.Sweep(0)), []string{bad.ID, good.ID})
	letters := f.Letters(store.DeadFilter{})
	eq(t, "letters", []string{letters[0].ID, letters[1].ID}, []string{good.ID, bad.ID})
	code(t, "the damaged letter", letters[1].Corrupt, rendezvous.CodeCorrupt)
	eq(t, "swept again", f.Sweep(0), store.Swept{})
	out := f.RequeueAll(bad.EventID, good.EventID)
	code(t, "requeue of the damaged letter", out.Items[0].Err, rendezvous.CodeCorrupt)
	eq(t, "requeue of the other", out.Items[1].Outcome, store.RequeueRequeued)
}

func sweepLimits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	long := string(make([]byte, rendezvous.MaxReason)) + "x"
	for name, sweep := range map[string]func(olderThan, at time.Time, reason string, limit int) error{
		"of a tenant": func(olderThan, at time.Time, reason string, limit int) error {
			_, err := f.SweepUnclaimed(ctx, olderThan, at, reason, limit)
			return err
		},
		"of all": func(olderThan, at time.Time, reason string, limit int) error {
			_, err := h.Store.SweepUnclaimed(ctx, olderThan, at, reason, limit)
			return err
		},
	} {
		code(t, name+" with a negative limit", sweep(now, now, "", -1), rendezvous.CodeInvalid, "field", "limit")
		code(t, name+" over the limit", sweep(now, now, "", 5001), rendezvous.CodeTooLarge, "field", "limit", "limit", 5000, "value", 5001)
		err := sweep(now, now, long, 1)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeTooLarge && c != rendezvous.CodeInvalid || detail(err, "field") != "reason" {
			t.Fatalf("%s with a long reason: %v", name, err)
		}
		code(t, name+" with a cutoff behind all time", sweep(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), now, "", 1), rendezvous.CodeInvalid, "field", "older_than")
	}
}

// beside starts a run that waits on the key for another sender: events on it come near, and meet nobody.
func (f *Fix) beside(key rendezvous.Key) {
	r := f.Start()
	w := r.Wait("w", "paid", key)
	w.From = "elsewhere"
	r.Register(w)
}

func sweepFairlyBesideWaits(t *testing.T, h *Harness) {
	busy, other := h.FixOf(t, ID("busy")), h.FixOf(t, ID("other"))
	key := K("order", ID("order"))
	busy.beside(key)
	for range 12 {
		busy.PutNew("paid", key)
	}
	h.Advance(time.Second)
	one := other.PutNew("paid", key)
	h.Advance(time.Hour)
	swept := must(h.Store.SweepUnclaimed(ctx, h.Now(t), now, "", 5))(t, "sweep")
	eq(t, "retired", len(swept.Retired), 5)
	if !slices.Contains(sweptIDs(swept), one.ID) {
		t.Errorf("retired %v without the only event of the other tenant", sweptIDs(swept))
	}
}

func sweepInOrderBesideWaits(t *testing.T, h *Harness) {
	f := h.FixOf(t, ID("acme"))
	near, far := K("order", ID("near")), K("order", ID("far"))
	f.beside(near)
	var want []string
	for _, k := range []rendezvous.Key{far, far, near, near, far} {
		want = append(want, f.PutNew("paid", k).ID)
		h.Advance(time.Second)
	}
	h.Advance(time.Hour)
	eq(t, "retired", sweptIDs(must(f.SweepUnclaimed(ctx, h.Now(t), now, "", 3))(t, "sweep")), want[:3])
}

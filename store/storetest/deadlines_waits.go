package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// deadlinesWaits is timers.md section 5, deadlines of waits: what they are and what beats them. Waits registered past their deadline are in deadlines_polls.go,
// what a driver makes of a deadline is in deadlines_driven.go.
var deadlinesWaits = []Case{
	{Name: "TM-37 a deadline records the time-out and deletes wait, keys and row; a later event stays live", Run: timedOut},
	{Name: "TM-38 waits answered before their deadlines leave no row", Run: answeredInTime},
	{Name: "TM-39 EV-67 the deadline passed, no worker ticked, an event arrives: it is for others", Run: lateEvent},
	{Name: "EV-67 M5 received a microsecond before the deadline is in time, at the deadline it is not", Run: deadlineBoundary},
	{Name: "EV-68 an event buffered in time and offered late is the answer of the firing", Run: firedWithEvent},
	{Name: "EV-68 the last look takes the oldest event, kept ones too, and none that expired", Run: lastLookOldest},
	{Name: "EV-69 a deadline cannot win while the wait holds a claim", Run: deadlineWhileParked},
	{Name: "EV-69 a last look over a leased run claims what came in time", Run: lastLookClaims},
	{Name: "EV-69 erasing the claimed event gives the deadline back its force", Run: deadlineAfterErasure},
	{Name: "EV-70 an offer and a deadline at once: exactly one closing record", Run: offerAndDeadline},
	{Name: "EV-70 registering again, withdrawing and a deadline at once: exactly one closing record", Run: closersAtOnce},
	{Name: "EV-83 an overdue wait keeps its place for what came in time, and only for that", Run: overdueKeepsPlace},
	{Name: "TM-67 a contested deadline is decided by the older pairs", Run: contestedDeadline},
	{Name: "TM-67 contested deadlines of one page and of a chain of waits all end", Run: contestedChain},
	{Name: "EV-71 withdrawing a wait takes its deadline away", Run: withdrawnDeadline},
	{Name: "EV-19 a deadline is part of what a wait is; a duration is resolved once", Run: deadlineDiffers},
	{Name: "TM-14 a wait's deadline is an instant or a duration within bounds", Run: deadlineBounds},
	{Name: "TM-45 after a restart a timed-out wait is timed out, whatever comes", Run: timedOutReopened, Durable: true},
	{Name: "timers.md 5: a lost row of a wait with a deadline comes back with it", Run: lostWaitDeadline},
}

func timedOut(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Drive().Suspend()
		key := K("order", r.ID)
		deadline := h.In(t, time.Minute)
		w := r.WaitsUntil(deadline, "w", "paid", key)
		id := rendezvous.WaitTimerID(r.ID, "w")
		row := r.WantArmed(id, store.Arming{FireAt: deadline, ArmedSeq: 2})
		eq(t, "class and effect", fmt.Sprint(row.Class, row.Effect), "waitw")
		eq(t, "deadline listed", r.WantOpen("w").Deadline, deadline)
		r.WantTimers(id)
		eq(t, "data", string(r.History()[1].Data), string(rendezvous.EncodeData(rendezvous.WaitRegisteredData{
			Type: "paid", Keys: []rendezvous.Key{key}, Deadline: rendezvous.FormatInstant(deadline),
		})))
		h.Advance(time.Minute)
		page := p.Page(t, 0)
		x := one(t, "page", page.Fires, store.FireFired)
		rec := r.WantTimedOut("w", deadline)
		eq(t, "seq", x.Seq, rec.Seq)
		r.wantNotice(page.Notices.Resume, rendezvous.CauseTimedOut, rec.Seq)
		row2 := r.Describe()
		eq(t, "counts", fmt.Sprint(row2.OpenWaits, row2.LiveTimers), "0 0")
		e := EventOf("paid", key)
		eq(t, "offers made", len(f.Send(e).Made(store.OfferNoWaiter)), 1)
		f.WantLive(e)
		eq(t, "registering again", fmt.Sprint(r.Register(w).Outcome, r.Register(w).Seq), fmt.Sprint(store.RegisterTimedOut, rec.Seq))
		eq(t, "claiming", r.Claim("w"), store.Claim{Closed: rendezvous.ClosedTimedOut, Seq: rec.Seq})
		got := must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now))(t, "withdraw")
		eq(t, "withdrawing", fmt.Sprint(got.Outcome, got.Seq), fmt.Sprint(store.WithdrawTimedOut, rec.Seq))
		o := f.OfferWait(r.WaitID("w"))
		eq(t, "offering the wait", fmt.Sprint(o.Outcome, o.Closed), fmt.Sprint(store.OfferClosed, rendezvous.ClosedTimedOut))
		f.WantLive(e)
		eq(t, "another wait on the key", r.Register(r.Wait("v", "paid", key)).Outcome, store.RegisterAnswered)
	}
}

func answeredInTime(t *testing.T, h *Harness) {
	f := h.Fix(t)
	total := min(50*h.Rounds(t), 10_000)
	for n := 0; n < total; n += 500 {
		r := f.Start()
		var items []store.RegisterItem
		var events []store.BufferItem
		for i := range 500 {
			w := r.Until(h.In(t, time.Hour), fmt.Sprint("w", i), "paid", K("order", fmt.Sprint(r.ID, "/", i)))
			items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w}})
			events = append(events, store.BufferItem{Tenant: f.Name(), Event: EventOf("paid", w.Keys...)})
		}
		for _, got := range must(h.Store.RegisterBatch(ctx, items, now))(t, "register") {
			done(t, "register one", got.Err)
		}
		eq(t, "timers armed", r.Describe().LiveTimers, 500)
		var offers []store.OfferItem
		for _, e := range events {
			offers = append(offers, store.OfferItem{Tenant: f.Name(), Event: &e.Event.EventID})
		}
		must(h.Store.BufferBatch(ctx, events, now))(t, "buffer")
		out := must(h.Store.OfferBatch(ctx, offers, now))(t, "offer")
		for _, o := range out.Items {
			eq(t, "offer", o.Outcome, store.OfferDelivered)
		}
		eq(t, "timers left", r.Describe().LiveTimers, 0)
	}
	h.noRows(t)
	p := h.TimerPod(t)
	h.Advance(24 * time.Hour)
	p.Own(t)
	h.Counting.Reset()
	eq(t, "fires a day later", len(must(p.FireDueTimers(ctx, p.Owned, 0))(t, "fire").Fires), 0)
	eq(t, "histories read", h.Counting.Counts().Histories, int64(0))
}

func lateEvent(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, other := f.Start(), f.Start()
	key := K("order", "1")
	w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	h.Advance(time.Minute) // and nobody ticks
	e := EventOf("paid", key)
	eq(t, "offers made", len(f.Send(e).Made(store.OfferNoWaiter)), 1)
	eq(t, "matching", f.Match(e.EventID).Outcome, store.MatchNoWaiter)
	r.WantNothing("w")
	o := f.OfferWait(r.WaitID("w"))
	eq(t, "offering the wait", o.Outcome, store.OfferNoEvent)
	d := must(f.DeliverTo(ctx, r.ID, EventOf("paid", key), false, now))(t, "deliver")
	eq(t, "delivering to its run", d.Outcome, store.DeliveryNotWaiting)
	eq(t, "registering again", r.Register(w).Outcome, store.RegisterWaiting)
	f.WantLive(e)
	r.WantOpen("w")
	one(t, "page", p.Page(t, 0).Fires, store.FireFired)
	r.WantTimedOut("w", w.Deadline)
	f.WantLive(e)
	eq(t, "the next waiter", other.Register(other.Wait("w", "paid", key)).Outcome, store.RegisterAnswered)
	other.WantAnswered("w", e)
}

func deadlineBoundary(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for _, c := range []struct {
		before time.Duration
		in     bool
	}{{time.Microsecond, true}, {0, false}, {-time.Microsecond, false}} {
		r, key := f.Start(), K("order", ID("key"))
		w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
		h.Advance(time.Minute - c.before)
		e := f.PutNew("paid", key)
		h.Advance(c.before + time.Second)
		x := p.Fire(t)
		if c.in {
			one(t, "in time", x, store.FireAnswered)
			r.WantAnswered("w", e)
		} else {
			one(t, "late", x, store.FireFired)
			r.WantTimedOut("w", w.Deadline)
			f.WantLive(e)
		}
		r.WantTimers()
	}
	// What counts is when the event was received, by the instant its caller gave.
	r, key := f.Start(), K("order", ID("key"))
	w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	h.Advance(time.Hour)
	e := EventOf("paid", key)
	must(f.Buffer(ctx, e, w.Deadline.Add(-time.Microsecond)))(t, "import an event")
	one(t, "received in time by its import", p.Fire(t), store.FireAnswered)
	r.WantAnswered("w", e)
}

func firedWithEvent(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		p := h.TimerPod(t)
		r := f.Start()
		r.Drive().Suspend()
		key := K("order", "1")
		w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
		e := f.PutNew("paid", key) // its notice is lost
		h.Advance(time.Hour)
		late := f.PutNew("paid", key)
		page := p.Page(t, 0)
		x := one(t, "page", page.Fires, store.FireAnswered)
		rec := r.WantAnswered("w", e)
		eq(t, "seq", x.Seq, rec.Seq)
		r.wantNotice(page.Notices.Resume, rendezvous.CauseAnswered, rec.Seq)
		f.WantLive(late)
		r.WantTimers()
		o := f.OfferEvent(e.EventID)
		eq(t, "offering it at last", fmt.Sprint(o.Outcome, o.Seq), fmt.Sprint(store.OfferAlreadyDelivered, rec.Seq))
		eq(t, "registering again", r.Register(w).Outcome, store.RegisterAnswered)
		done(t, "give the shards back", p.ReleaseOwnedShards(ctx, p.Owned))
	}
}

func lastLookOldest(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	a, b := K("order", "a"), K("order", "b")
	r.WaitsUntil(h.In(t, time.Minute), "w", "paid", a, b)
	expired := EventOf("paid", a)
	expired.ExpiresAt = h.In(t, time.Minute)
	f.Put(expired)
	wrong, stranger := f.PutNew("refunded", a), f.PutNew("paid", K("order", "c"))
	first := f.PutNew("paid", b)
	second := f.PutNew("paid", a)
	h.Advance(time.Minute)
	one(t, "page", p.Fire(t), store.FireAnswered)
	r.WantAnswered("w", first)
	f.WantLive(expired, wrong, stranger, second)

	kept := f.Start()
	e := EventOf("paid", K("order", "other"))
	kept.Kept(e) // of no wait's keys yet
	w := kept.Until(h.In(t, time.Minute), "w", "paid")
	eq(t, "a wait without keys takes it at once", kept.Register(w).Outcome, store.RegisterAnswered)
	kept.WaitsUntil(h.In(t, time.Minute), "v", "shipped", K("order", "k"))
	late := EventOf("shipped", K("order", "k"))
	must(f.Buffer(ctx, late, now))(t, "buffer")
	from := kept.Until(h.In(t, time.Minute), "u", "shipped", K("order", "k"))
	from.From = "elsewhere"
	eq(t, "a wait for another source", kept.Register(from).Outcome, store.RegisterWaiting)
	h.Advance(time.Minute)
	eq(t, "outcomes", outcomes(p.Fire(t)), map[string]store.FireOutcome{
		rendezvous.WaitTimerID(kept.ID, "v"): store.FireAnswered, rendezvous.WaitTimerID(kept.ID, "u"): store.FireFired,
	})
	kept.WantAnswered("v", late)
	kept.WantTimedOut("u", from.Deadline)
}

func deadlineWhileParked(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for what, end := range map[string]func(d *Driver){
		"suspended": func(d *Driver) { eq(t, "suspend", len(d.Suspend().Records), 1) },
		"collected": func(d *Driver) { eq(t, "collect", len(d.Collect().Records), 1) },
		"expired, and swept": func(*Driver) {
			h.Advance(2 * time.Hour)
			h.SweepLeases(t)
		},
		"expired, and fired": func(d *Driver) {
			h.Advance(2 * time.Hour)
			x := one(t, "page", p.Fire(t), store.FireAnswered)
			eq(t, "its run", x.RunID, d.ID)
		},
	} {
		r, key := f.Start(), K("order", ID("key"))
		d := r.DriveFor(time.Hour)
		w := r.Until(h.In(t, time.Minute), "w", "paid", key)
		d.Register(w)
		e := EventOf("paid", key)
		eq(t, "offers parked", len(f.Send(e).Made(store.OfferParked)), 1)
		for range 5 {
			h.Advance(time.Minute)
			one(t, "page over a parked wait", p.Page(t, 0).Fires, store.FireParked)
			r.WantParked("w", e)
		}
		end(d)
		r.WantAnswered("w", e)
		eq(t, "closing records of one that was "+what, len(r.closings("w")), 1)
		r.WantTimers()
		h.noRows(t)
		if r.Describe().LeaseOwner != "" {
			d.Release()
		}
	}
	// Claimed by its own call on a free run: the answer is the event as well.
	r, key := f.Start(), K("order", ID("key"))
	r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	e := f.PutNew("paid", key)
	r.WantClaim("w", e, false)
	h.Advance(time.Hour)
	one(t, "page over a claim", p.Page(t, 0).Fires, store.FireAnswered)
	r.WantAnswered("w", e)
}

func lastLookClaims(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, key := f.Start(), K("order", "1")
	d := r.DriveFor(time.Hour)
	d.Register(r.Until(h.In(t, time.Minute), "w", "paid", key))
	e := f.PutNew("paid", key)
	h.Advance(time.Hour / 2)
	late := f.PutNew("paid", key)
	one(t, "page over a leased run", p.Page(t, 0).Fires, store.FireParked)
	row := r.WantParked("w", e)
	eq(t, "parked at", row.ParkedAt, h.Now(t))
	f.WantLive(late)
	got := d.Suspend()
	eq(t, "suspend", fmt.Sprint(got.Outcome, len(got.Records)), fmt.Sprint(store.SuspendContinue, 1))
	WantAnswerOf(t, got.Records[0], e)
	r.WantTimers()
	eq(t, "mail of the next call", must(f.Tenant.Append(ctx, d.Batch(), now))(t, "append nothing").Mail.Mail, 0)
}

func deadlineAfterErasure(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, key := f.Start(), K("order", "1")
	d := r.DriveFor(time.Hour)
	w := r.Until(h.In(t, time.Minute), "w", "paid", key)
	d.Register(w)
	e := EventOf("paid", key)
	f.Send(e)
	r.WantParked("w", e)
	h.Advance(2 * time.Minute)
	f.Erase(e.EventID)
	eq(t, "deadline of the open wait", r.WantOpen("w").Deadline, w.Deadline)
	d.Suspend()
	r.WantTimedOut("w", w.Deadline)
	_ = p
}

func offerAndDeadline(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	seen := map[store.FireOutcome]int{}
	for i := range h.Rounds(t) {
		r, key := f.Start(), K("order", ID("key"))
		w := r.WaitsUntil(h.In(t, time.Second), "w", "paid", key)
		inTime := i%2 == 0
		var e rendezvous.Event
		if inTime {
			e = f.PutNew("paid", key)
			h.Advance(time.Second)
		} else {
			h.Advance(time.Second)
			e = f.PutNew("paid", key)
		}
		p.Own(t)
		var errs [2]error
		var page store.FiredPage
		Race(t,
			func() { _, errs[0] = h.Store.OfferBatch(ctx, f.Items(e), now) },
			func() { page, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "offer", errs[0])
		done(t, "fire", errs[1])
		for _, x := range append(page.Fires, p.Fire(t)...) {
			seen[x.Outcome]++
		}
		eq(t, "closing records", len(r.closings("w")), 1)
		if inTime {
			r.WantAnswered("w", e)
		} else {
			r.WantTimedOut("w", w.Deadline)
			f.WantLive(e)
		}
		r.WantTimers()
	}
	if seen[store.FireFailed]+seen[store.FireDropped] > 0 {
		t.Errorf("outcomes: %v", seen)
	}
}

func closersAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for range h.Rounds(t) {
		r, key := f.Start(), K("order", ID("key"))
		w := r.WaitsUntil(h.In(t, time.Second), "w", "paid", key)
		h.Advance(time.Second - time.Microsecond)
		e := f.PutNew("paid", key)
		h.Advance(time.Second)
		p.Own(t)
		var errs [4]error
		Race(t,
			func() { _, errs[0] = f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now) },
			func() { _, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
			func() { _, errs[2] = f.RegisterWait(ctx, store.Registration{Wait: w}, now) },
			func() { _, errs[3] = f.ClaimFor(ctx, r.WaitID("w"), now) },
		)
		for i, err := range errs {
			done(t, fmt.Sprint("call ", i), err)
		}
		h.Advance(time.Second)
		p.Fire(t)
		closings := r.closings("w")
		eq(t, "closing records", len(closings), 1)
		switch closings[0].Kind {
		case rendezvous.WaitAnswered:
			r.WantAnswered("w", e)
		case rendezvous.WaitWithdrawn:
			f.WantLive(e)
		default:
			t.Fatalf("closed by %s, although an event came in time", closings[0].Kind)
		}
		r.WantTimers()
		eq(t, "row", r.Row("w"), nil)
	}
}

func overdueKeepsPlace(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	key := K("order", "1")
	old, young := f.Start(), f.Start()
	old.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	young.Waits("w", "paid", key)
	e := f.PutNew("paid", key)
	h.Advance(time.Hour)
	late := f.PutNew("paid", key)
	o := f.OfferEvent(e.EventID)
	eq(t, "offer of the one in time", fmt.Sprint(o.Outcome, o.Wait.RunID), fmt.Sprint(store.OfferDelivered, old.ID))
	old.WantAnswered("w", e)
	o = f.OfferEvent(late.EventID)
	eq(t, "offer of the late one", fmt.Sprint(o.Outcome, o.Wait.RunID), fmt.Sprint(store.OfferDelivered, young.ID))
	young.WantAnswered("w", late)
	eq(t, "left for a page", len(p.Fire(t)), 0)

	// The late one offered first goes to the younger wait at once: it meets no overdue one.
	old, young = f.Start(), f.Start()
	w := old.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	young.Waits("w", "paid", key)
	h.Advance(time.Hour)
	late = f.PutNew("paid", key)
	o = f.OfferEvent(late.EventID)
	eq(t, "offer of the late one", fmt.Sprint(o.Outcome, o.Wait.RunID), fmt.Sprint(store.OfferDelivered, young.ID))
	old.WantOpen("w")
	p.Fire(t)
	old.WantTimedOut("w", w.Deadline)
}

func contestedDeadline(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		p := h.TimerPod(t)
		for _, n := range []int{2, 1} {
			key := K("order", ID("key"))
			older, r := f.Start(), f.Start()
			older.Waits("w", "paid", key)
			w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
			var events []rendezvous.Event
			for range n {
				events = append(events, f.PutNew("paid", key)) // never offered
			}
			h.Advance(time.Hour)
			x := one(t, "page", p.Page(t, 0).Fires, store.FireContested)
			eq(t, "its wait", fmt.Sprint(x.RunID, x.Effect), fmt.Sprint(r.ID, "w"))
			row := r.Timer(rendezvous.WaitTimerID(r.ID, "w"))
			eq(t, "due again", fmt.Sprint(row.DueAt, row.Attempts, row.Parks), fmt.Sprint(h.In(t, 25*time.Millisecond), 0, 0))
			r.WantOpen("w")
			older.WantOpen("w")
			f.WantLive(events...)
			// What its worker does then.
			out := must(h.Store.OfferBatch(ctx, []store.OfferItem{{Tenant: f.Name(), Wait: &w.WaitID}}, now))(t, "offer the wait")
			older.WantAnswered("w", events[0])
			if n == 2 {
				eq(t, "offer of the wait", out.Items[0].Outcome, store.OfferDelivered)
				r.WantAnswered("w", events[1])
				eq(t, "left for a page", len(p.Fire(t)), 0)
			} else {
				eq(t, "offer of the wait", out.Items[0].Outcome, store.OfferNoEvent)
				eq(t, "at once again", len(p.Page(t, 0).Fires), 0)
				h.Advance(25 * time.Millisecond)
				one(t, "when it is due again", p.Page(t, 0).Fires, store.FireFired)
				r.WantTimedOut("w", w.Deadline)
			}
			r.WantTimers()
		}
		done(t, "give the shards back", p.ReleaseOwnedShards(ctx, p.Owned))
	}
}

func contestedChain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	key := K("order", "1")
	var flows []*Flow
	for range 5 { // all due in one page, each contesting the next
		r := f.Start()
		r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
		flows = append(flows, r)
	}
	events := []rendezvous.Event{f.PutNew("paid", key), f.PutNew("paid", key)}
	h.Advance(time.Hour)
	for rounds := 0; len(h.allTimers(t)) > 0; rounds++ {
		if rounds > 10 {
			t.Fatal("contested deadlines never end")
		}
		for _, x := range p.Page(t, 0).Fires {
			if x.Outcome == store.FireContested {
				f.OfferWait(rendezvous.WaitID{RunID: x.RunID, Effect: x.Effect})
			}
		}
		h.Advance(25 * time.Millisecond)
	}
	flows[0].WantAnswered("w", events[0])
	flows[1].WantAnswered("w", events[1])
	for _, r := range flows[2:] {
		eq(t, "closing of a younger one", r.closings("w")[0].Kind, rendezvous.WaitTimedOut)
	}
}

package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// eventsAttempts are the cases of deliveries that could not finish (EV-61..EV-65, EV-86).
var eventsAttempts = []Case{
	{Name: "EV-60 takes that are given back count nothing, and are due again", Run: takesGivenBack},
	{Name: "EV-61 erased before it was parked: nothing held, the wait is open", Run: erasedBeforeParking},
	{Name: "EV-61 a parking finds how its wait stands", Run: parkingFinds},
	{Name: "EV-62 16 failed attempts quarantine, until an operator retries", Run: quarantined},
	{Name: "EV-62 a pair that cannot be recorded backs off and is quarantined", Run: brokenPairBacksOff},
	{Name: "EV-62 a quarantined wait's event is released like any other", Run: quarantinedLetsGo},
	{Name: "EV-63 a lease is nobody's fault", Run: leasedRetries},
	{Name: "EV-64 only parked waits are listed as parked", Run: onlyParkedListed},
	{Name: "EV-88 waits through a filter that matches little: pages are short, and a walk meets each once", Run: shortPagesOfWaits},
	{Name: "EV-88 parked waits likewise", Run: shortPagesOfParked},
	{Name: "EV-65 seven tries on a lease leave it to the sweeper", Run: sevenTries},
	{Name: "EV-86 a take that ran out is fenced", Run: lostTakeFenced},
}

// Take takes due parked waits for 30 s.
func (h *Harness) Take(t testing.TB) []store.TakenWait {
	t.Helper()
	return must(h.Store.TakeParked(ctx, 0, 0))(t, "take parked waits").Rows
}

// TakeOne takes the one parked wait that is due and fails the test unless it is that.
func (r *Flow) TakeOne(effect string) store.TakenWait {
	r.F.T.Helper()
	rows := r.F.H.Take(r.F.T)
	eq(r.F.T, "waits taken", len(rows), 1)
	eq(r.F.T, "tenant of the wait taken", rows[0].Tenant, r.F.Name())
	eq(r.F.T, "wait taken", rows[0].WaitID, r.WaitID(effect))
	return rows[0]
}

// Untaken fails the test if a parked wait is due.
func (h *Harness) Untaken(t testing.TB) {
	t.Helper()
	if rows := h.Take(t); len(rows) > 0 {
		t.Fatalf("%d waits were taken, the first is %s of %s", len(rows), rows[0].Effect, rows[0].RunID)
	}
}

// parkedBy is a free run whose wait "w" holds an event that nobody journaled.
func parkedBy(t testing.TB, f *Fix) (*Flow, rendezvous.Event) {
	t.Helper()
	r := f.Start()
	r.Waits("w", "paid", K("order", r.ID))
	e := f.PutNew("paid", K("order", r.ID))
	f.Matched(e, r, "w")
	return r, e
}

func failed(r *Flow, take int64, in time.Duration) store.ParkItem {
	return store.ParkItem{WaitID: r.WaitID("w"), Cause: store.ParkFailed, RetryIn: in, Error: "the record was refused", Take: take}
}

func leased(r *Flow, in time.Duration) store.ParkItem {
	return store.ParkItem{WaitID: r.WaitID("w"), Cause: store.ParkLeased, RetryIn: in}
}

func erasedBeforeParking(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, item := range []func(*Flow) store.ParkItem{
			func(r *Flow) store.ParkItem { return leased(r, time.Second) }, func(r *Flow) store.ParkItem { return failed(r, 0, time.Second) },
		} {
			r, e := parkedBy(t, f)
			must(f.ErasePayload(ctx, e.EventID, nil, now))(t, "erase")
			eq(t, "parking the wait", r.Park(item(r)), store.ParkResult{Outcome: store.ParkedNothingHeld})
			row := r.WantOpen("w")
			eq(t, "attempts", row.Attempts, 0)
			eq(t, "next attempt", row.NextAttemptAt, time.Time{})
			h.Advance(time.Minute)
			h.Untaken(t)
			next := EventOf("paid", K("order", r.ID))
			f.Send(next)
			r.WantAnswered("w", next)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		}
	}
}

func parkingFinds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	open := f.Start()
	open.Waits("w", "paid", K("order", open.ID))
	answered, e := parkedBy(t, f)
	answered.Redelivered("w")
	ended, _ := parkedBy(t, f)
	ended.Conclude(rendezvous.StatusCompleted)
	withdrawn, _ := parkedBy(t, f)
	must(f.Unsubscribe(ctx, withdrawn.WaitID("w"), 0, "", now))(t, "withdraw")
	lost, held := parkedBy(t, f)
	done(t, "damage", h.Damage.LoseWait(f.Name(), lost.WaitID("w")))
	good, kept := parkedBy(t, f)
	unknown := &Flow{F: f, ID: ID("run")}

	var items []store.ParkItem
	for _, r := range []*Flow{open, answered, ended, withdrawn, lost, good, unknown} {
		item := leased(r, time.Minute)
		item.Tenant = f.Name()
		items = append(items, item)
	}
	out := must(h.Store.ParkWait(ctx, items, now))(t, "park a batch")
	var got []store.ParkOutcome
	for i, o := range out {
		done(t, fmt.Sprint("item ", i), o.Err)
		got = append(got, o.Outcome)
	}
	eq(t, "outcomes", got, []store.ParkOutcome{
		store.ParkedNothingHeld, store.ParkedClosed, store.ParkedClosed, store.ParkedClosed, store.ParkedParked,
		store.ParkedParked, store.ParkedClosed,
	})
	open.WantOpen("w")
	answered.WantAnswered("w", e)
	lost.WantParked("w", held) // a row that is missing is restored from the history
	eq(t, "keys of the restored row", lost.Row("w").Keys, []rendezvous.Key{K("order", lost.ID)})
	good.WantParked("w", kept)
	h.Advance(30 * time.Second)
	h.Untaken(t)
	lost.Redelivered("w")
	lost.WantAnswered("w", held)
	lost.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
}

func quarantined(t *testing.T, h *Harness) {
	f := h.Fix(t)
	other := h.FixOf(t, "globex")
	r, e := parkedBy(t, f)
	delay := time.Second
	for n := 1; n <= rendezvous.QuarantineAfter; n++ {
		h.Advance(delay + 2*time.Second)
		took := r.TakeOne("w")
		eq(t, "attempts as handed out", took.Attempts, n-1)
		h.Untaken(t) // its take runs
		delay = min(2*delay, 5*time.Minute)
		before := h.Now(t)
		got := r.Park(failed(r, took.Take, delay))
		eq(t, "attempts", got.Attempts, n)
		eq(t, "quarantined", got.Quarantined, n == rendezvous.QuarantineAfter)
		if after := h.Now(t); got.NextAttemptAt.Before(before.Add(delay)) || got.NextAttemptAt.After(after.Add(delay)) {
			t.Fatalf("next attempt at %s, want %s after %s", got.NextAttemptAt, delay, before)
		}
		row := r.Row("w")
		eq(t, "attempts of the row", row.Attempts, n)
		eq(t, "last error", row.LastError, "the record was refused")
		f.WantState(e.EventID, rendezvous.EventClaimed)
	}
	row := *r.Row("w")
	eq(t, "state", row.State, rendezvous.WaitQuarantined)
	h.Advance(time.Hour)
	h.Untaken(t)
	second, _ := parkedBy(t, f) // parked ones come before quarantined ones
	eq(t, "parked waits", f.Parkeds(), []store.WaitRow{*second.Row("w"), row})
	page := must(f.QuarantinedWaits(ctx, 0, ""))(t, "list quarantined waits")
	eq(t, "quarantined waits", page, store.WaitPage{Waits: []store.WaitRow{row}})
	eq(t, "quarantined waits of another tenant", len(must(other.QuarantinedWaits(ctx, 0, ""))(t, "list").Waits), 0)
	eq(t, "waits listed as quarantined", f.Listed(store.WaitFilter{State: rendezvous.WaitQuarantined}), []store.WaitRow{row})
	eq(t, "outcome of delivering it", r.Redeliver("w").Outcome, store.OfferQuarantined)
	o := f.OfferEvent(e.EventID)
	eq(t, "outcome of offering it", o.Outcome, store.OfferParked)
	eq(t, "offer says quarantined", o.Quarantined, true)
	d := r.Drive()
	eq(t, "records collected", len(d.Collect().Records), 0)
	eq(t, "outcome of suspending", d.Suspend().Outcome, store.SuspendSuspended)
	r.WantKinds(rendezvous.WaitRegistered)

	ops := &rendezvous.Operator{Actor: "ada", Basis: rendezvous.BasisAsserted}
	eq(t, "retrying in another tenant", must(other.RetryWait(ctx, r.WaitID("w"), ops))(t, "retry"), false)
	eq(t, "retrying one that is not quarantined", must(f.RetryWait(ctx, second.WaitID("w"), ops))(t, "retry"), false)
	eq(t, "retrying", must(f.RetryWait(ctx, r.WaitID("w"), ops))(t, "retry"), true)
	eq(t, "retrying again", must(f.RetryWait(ctx, r.WaitID("w"), ops))(t, "retry"), false)
	eq(t, "attempts after the retry", r.WantParked("w", e).Attempts, 0)
	eq(t, "quarantined waits after the retry", len(must(f.QuarantinedWaits(ctx, 0, ""))(t, "list").Waits), 0)
	r.TakeOne("w")
	r.Redelivered("w")
	r.WantAnswered("w", e)
}

func brokenPairBacksOff(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, e := parkedBy(t, f)
	good, _ := parkedBy(t, f)
	done(t, "damage", h.Damage.Event(f.Name(), e.EventID))
	var delays []time.Duration
	for n := 1; n <= rendezvous.QuarantineAfter; n++ {
		row := r.Row("w")
		if wait := row.NextAttemptAt.Sub(h.Now(t)); wait > 0 {
			h.Advance(wait)
		}
		swept := h.SweepParked(t)
		eq(t, "failed deliveries", len(swept.Made(store.OfferFailed)), 1)
		code(t, "the failed delivery", swept.Made(store.OfferFailed)[0].Err, rendezvous.CodeCorrupt)
		row = r.Row("w")
		eq(t, "attempts", row.Attempts, n)
		eq(t, "has an error", row.LastError != "", true)
		delays = append(delays, row.NextAttemptAt.Sub(h.Now(t)))
	}
	var early, late time.Duration
	for i := range 5 {
		early, late = early+delays[i], late+delays[len(delays)-1-i]
	}
	if late < 4*early || delays[0] > 5*time.Second {
		t.Fatalf("the delays do not grow: %v", delays)
	}
	eq(t, "state", r.Row("w").State, rendezvous.WaitQuarantined)
	h.Advance(time.Hour)
	h.Untaken(t)
	eq(t, "quarantined waits", len(must(f.QuarantinedWaits(ctx, 0, ""))(t, "list").Waits), 1)
	if good.Answer("w") == nil {
		t.Fatal("the good pair beside the broken one was not delivered")
	}
	r.WantKinds(rendezvous.WaitRegistered)
}

func quarantinedLetsGo(t *testing.T, h *Harness) {
	f := h.Fix(t)
	ends := []func(r *Flow){
		func(r *Flow) { r.Conclude(rendezvous.StatusCompleted) },
		func(r *Flow) { must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now))(t, "withdraw") },
	}
	for _, end := range ends {
		r, e := parkedBy(t, f)
		for range rendezvous.QuarantineAfter {
			r.Park(failed(r, 0, 0))
		}
		eq(t, "state", r.Row("w").State, rendezvous.WaitQuarantined)
		end(r)
		eq(t, "rows", r.Rows(), nil)
		f.WantLive(e)
		eq(t, "quarantined waits", len(must(f.QuarantinedWaits(ctx, 0, ""))(t, "list").Waits), 0)
		next := f.Start()
		next.Register(next.Wait("w", "paid", e.Keys...))
		next.WantAnswered("w", e)
	}
}

func leasedRetries(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("w", "paid", K("order", r.ID))
	e := EventOf("paid", K("order", r.ID))
	f.Send(e)
	number, parkedAt := r.Row("w").Number, r.Row("w").ParkedAt
	for n := range 3 * rendezvous.QuarantineAfter {
		o := r.Redeliver("w")
		eq(t, "outcome on a leased run", o.Outcome, store.OfferParked)
		got := r.Park(leased(r, time.Duration(n)*time.Millisecond))
		eq(t, "attempts", got.Attempts, 0)
		eq(t, "quarantined", got.Quarantined, false)
	}
	row := r.WantParked("w", e)
	eq(t, "number", row.Number, number)
	eq(t, "parked_at", row.ParkedAt, parkedAt)
	eq(t, "last error", row.LastError, "")
	for _, in := range []time.Duration{-time.Second, 11 * time.Minute} {
		code(t, fmt.Sprint("parking for ", in), r.parkErr(leased(r, in)), rendezvous.CodeInvalid)
	}
	eq(t, "row", r.WantParked("w", e), row)
	d.Suspend()
	r.WantAnswered("w", e)
}

func onlyParkedListed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		var idle []*Flow
		for range 4 {
			r := f.Start()
			r.Waits("w", "paid", K("order", r.ID))
			idle = append(idle, r)
		}
		parked, e := parkedBy(t, f)
		row := parked.WantParked("w", e)
		for _, limit := range []int{0, 1} {
			page := must(f.ParkedWaits(ctx, store.WaitFilter{}, limit, ""))(t, "list parked waits")
			eq(t, "parked waits", page.WaitPage, store.WaitPage{Waits: []store.WaitRow{row}})
			eq(t, "released", page.Released, nil)
		}
		must(f.Unsubscribe(ctx, parked.WaitID("w"), 0, "", now))(t, "withdraw")
		eq(t, "parked waits after the withdrawal", f.Parkeds(), nil)
		f.WantLive(e)
		for _, r := range idle {
			r.WantOpen("w")
		}
		second, _ := parkedBy(t, f) // by (next_attempt_at, number), and a page goes on where the last ended
		h.Advance(time.Second)
		third, _ := parkedBy(t, f)
		second.Park(leased(second, time.Minute))
		first := must(f.ParkedWaits(ctx, store.WaitFilter{}, 1, ""))(t, "list parked waits")
		eq(t, "first page", first.Waits, []store.WaitRow{*third.Row("w")})
		rest := must(f.ParkedWaits(ctx, store.WaitFilter{}, 1, first.NextCursor))(t, "list parked waits")
		eq(t, "second page", rest.Waits, []store.WaitRow{*second.Row("w")})
		eq(t, "end of the list", rest.NextCursor, "")
	}

	f := h.FixOf(t, "restored") // a parked wait of a sealed run, as a backup brings it back, is released first
	r, e := parkedBy(t, f)
	restore := must(h.Damage.Keep(f.Name(), r.WaitID("w")))(t, "keep the wait's row")
	r.Conclude(rendezvous.StatusCompleted)
	done(t, "restore the wait's row", restore())
	page := must(f.ParkedWaits(ctx, store.WaitFilter{}, 0, ""))(t, "list parked waits")
	eq(t, "parked waits", page.Waits, nil)
	eq(t, "events released", page.Released, []rendezvous.EventID{e.EventID})
	eq(t, "events to offer", len(page.Notices.Events), 1)
	f.WantLive(e)
	next := f.Start()
	next.Register(next.Wait("w", "paid", e.Keys...))
	next.WantAnswered("w", e)
	r.WantKinds(rendezvous.WaitRegistered, rendezvous.RunCompleted)
}

func sevenTries(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		d := r.DriveFor(10 * time.Second)
		d.Waits("w", "paid", K("order", r.ID))
		e := EventOf("paid", K("order", r.ID))
		eq(t, "offers parked", len(f.Send(e).Made(store.OfferParked)), 1)
		for try := range 6 { // 25 ms doubling to 800 ms, after the first
			h.Advance(25 * time.Millisecond << try)
			eq(t, fmt.Sprintf("outcome of try %d", try+2), r.Redeliver("w").Outcome, store.OfferParked)
		}
		row := r.WantParked("w", e)
		eq(t, "attempts", row.Attempts, 0)
		h.Advance(2 * time.Second)
		h.Untaken(t) // its run is leased
		h.Advance(10 * time.Second)
		took := r.TakeOne("w")
		eq(t, "attempts as handed out", took.Attempts, 0)
		r.Redelivered("w")
		r.WantAnswered("w", e)
	}
}

func lostTakeFenced(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r, e := parkedBy(t, f)
		beside, _ := parkedBy(t, f)
		beside.Redelivered("w")
		h.Advance(3 * time.Second)
		first := r.TakeOne("w")
		h.Advance(29 * time.Second)
		h.Untaken(t)
		h.Advance(2 * time.Second)
		second := r.TakeOne("w")
		if second.Take == first.Take {
			t.Fatal("two takes have one token")
		}
		eq(t, "attempts after a take that ran out", second.Attempts, 1)
		row := r.WantParked("w", e)
		for _, item := range []store.ParkItem{failed(r, first.Take, time.Hour/10), failed(r, second.Take+1000, time.Second)} {
			code(t, "park with another's take", r.parkErr(item), rendezvous.CodeFenced)
			eq(t, "row", r.WantParked("w", e), row)
		}
		got := r.Park(failed(r, second.Take, 5*time.Second))
		eq(t, "attempts", got.Attempts, 2)
		h.Advance(time.Second)
		eq(t, "the same take again", r.Park(failed(r, second.Take, time.Minute)), got) // counted once
		eq(t, "attempts of the row", r.WantParked("w", e).Attempts, 2)
		h.Untaken(t)
		h.Advance(5 * time.Second)
		third := r.TakeOne("w")
		eq(t, "attempts as handed out", third.Attempts, 2) // the settled take was no lost worker
		code(t, "the second take after the third", r.parkErr(failed(r, second.Take, time.Second)), rendezvous.CodeFenced)
		r.Redelivered("w")
		r.WantAnswered("w", e)
	}
	f := h.Fix(t)
	r, _ := parkedBy(t, f) // workers that are lost, again and again
	h.Advance(3 * time.Second)
	for n := range rendezvous.QuarantineAfter {
		eq(t, "attempts as handed out", r.TakeOne("w").Attempts, n)
		h.Advance(31 * time.Second)
	}
	h.Untaken(t)
	eq(t, "state", r.Row("w").State, rendezvous.WaitQuarantined)
	for _, hold := range []time.Duration{-time.Second, 301 * time.Second, time.Millisecond} {
		_, err := h.Store.TakeParked(ctx, 1, hold)
		code(t, fmt.Sprint("take for ", hold), err, rendezvous.CodeInvalid, "field", "hold", "limit", "5m0s", "value", hold.String())
		_, _, err = h.Store.TakeUnmet(ctx, 0, 1, hold, "")
		code(t, fmt.Sprint("take of unmet events for ", hold), err, rendezvous.CodeInvalid, "field", "hold", "limit", "5m0s", "value", hold.String())
	}
	if _, _, err := h.Store.TakeUnmet(ctx, 0, 1, 0, "no cursor"); err == nil || !strings.Contains(err.Error(), "none to start") {
		t.Fatalf("a malformed cursor: %v, want it refused with advice", err)
	}
}

func (r *Flow) parkErr(item store.ParkItem) error {
	r.F.T.Helper()
	item.Tenant = r.F.Name()
	return must(r.F.H.Store.ParkWait(ctx, []store.ParkItem{item}, now))(r.F.T, "park")[0].Err
}

func takesGivenBack(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "1"))
	h.Advance(grace + time.Second)
	take := func() []store.UnmetPair {
		page, _, err := h.Store.TakeUnmet(ctx, grace, 0, 0, "")
		done(t, "take unmet", err)
		return page.Rows
	}
	for range rendezvous.UndeliverableFrom + 1 {
		rows := take()
		eq(t, "taken", len(rows), 1)
		for range 2 { // again: nothing more
			done(t, "give back", h.Store.GiveBackUnmet(ctx, rows, time.Second))
		}
		eq(t, "taken before it is due", take(), nil)
		h.Advance(time.Second + time.Microsecond)
	}
	eq(t, "failures", f.Stored(e.EventID).OfferFailures, 0)
	lost := take()
	h.Advance(31 * time.Second)
	rows := take()
	done(t, "give back what ran out", h.Store.GiveBackUnmet(ctx, lost, 0))
	eq(t, "taken while another has it", take(), nil)
	eq(t, "failures of the lost one", f.Stored(e.EventID).OfferFailures, 1)
	h.Offer(t, store.Notices{Events: []store.EventRef{rows[0].Event}})
	done(t, "give back what is answered", h.Store.GiveBackUnmet(ctx, rows, 0))
	r.WantAnswered("w", e)
	for retry, want := range map[time.Duration]string{-time.Second: "-1s", 11 * time.Minute: "11m0s"} {
		code(t, "give back for "+want, h.Store.GiveBackUnmet(ctx, rows, retry), rendezvous.CodeInvalid, "field", "retry_in", "limit", "10m0s", "value", want)
	}
	code(t, "give nothing back", h.Store.GiveBackUnmet(ctx, nil, 0), rendezvous.CodeInvalid, "field", "items")
}

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// runsSuspending is runs.md section 8, "Driving": what a suspend, a collect and a release give when there is much, and when they fail.
var runsSuspending = []Case{
	{Name: "RN-34 parked answers are recorded oldest claim first", Run: oldestClaimFirst},
	{Name: "RN-34 the order of claims is a sequence's, not a clock's and not that of the waits", Run: claimsInSequence},
	{Name: "RN-34 a pair that cannot be recorded fails alone, and a quarantined wait is left out", Run: brokenPairs},
	{Name: "RN-34 over a hundred parked answers the next call takes the rest", Run: overHundredParked},
	{Name: "RN-34 over 16 MiB of parked answers the next call takes the rest", Run: overBytesParked},
	{Name: "RN-34 an append hands out 16 MiB of answers and parks the rest for the next collect", Run: largeAnswersInAppend},
	{Name: "RN-36 a release that fails at any step is done whole or not at all", Run: brokenRelease},
	{Name: "RN-58 the reply of a suspend lost: the same answer, as long as nobody took the run", Run: suspendAgain},
	{Name: "RN-58 a suspend sent first after the lease was reclaimed is fenced", Run: suspendAfterReclaim},
	{Name: "RN-58 a suspend that fails at any step is done whole or not at all", Run: brokenSuspend},
}

func oldestClaimFirst(t *testing.T, h *Harness) {
	for name, record := range map[string]func(d *Driver) []rendezvous.Record{
		"collect": func(d *Driver) []rendezvous.Record { return d.Collect().Records },
		"suspend": func(d *Driver) []rendezvous.Record { return d.Suspend().Records },
		"release": func(d *Driver) []rendezvous.Record { return d.Release().Records },
		"reclaim": func(d *Driver) []rendezvous.Record {
			h.Advance(leaseEnd)
			eq(t, "records of the reclaim", h.SweepLeases(t)[0].Records, 5)
			return d.History()[d.Seen:]
		},
	} {
		f := h.Fix(t)
		r := f.Start()
		d := r.Drive()
		for i := range 5 {
			d.Waits(fmt.Sprint("w", i), "paid", K(name, fmt.Sprint(i)))
		}
		order := []int{3, 0, 4, 1, 2} // of the claims; the events themselves come in another
		events := make([]rendezvous.Event, 5)
		for i := range events {
			events[i] = f.PutNew("paid", K(name, fmt.Sprint(i)))
		}
		for _, i := range order {
			eq(t, "offer", f.OfferEvent(events[i].EventID).Outcome, store.OfferParked)
			h.Advance(time.Millisecond)
		}
		got := record(d)
		eq(t, "records of "+name, len(got), 5)
		for n, i := range order {
			eq(t, fmt.Sprintf("effect %d recorded by %s", n, name), got[n].Effect, fmt.Sprint("w", i))
			WantAnswerOf(t, got[n], events[i])
		}
		r.Revoke()
	}
}

// parks registers n waits of the driver at once and sends an event for each, size bytes whole, which the lease parks.
func (d *Driver) parks(n, size int) map[string]rendezvous.Event {
	d.F.T.Helper()
	var items []store.RegisterItem
	for i := range n {
		effect := fmt.Sprint("w", i)
		w := d.Wait(effect, "paid", K("order", d.ID+effect))
		items = append(items, store.RegisterItem{Tenant: d.F.Name(), Registration: store.Registration{Wait: w, Epoch: d.Epoch}})
	}
	for _, r := range must(d.F.H.Store.RegisterBatch(ctx, items, now))(d.F.T, "register") {
		done(d.F.T, "register", r.Err)
	}
	d.Seen = d.Head()
	events := map[string]rendezvous.Event{}
	var all []rendezvous.Event
	for _, item := range items {
		e := EventOf("paid", item.Keys...)
		if size > 0 {
			e.Payload = slices.Repeat([]byte{byte(len(all))}, size)
		}
		eq(d.F.T, "buffer", d.F.Put(e).Outcome, store.BufferNew)
		events[item.Effect], all = e, append(all, e)
	}
	for _, o := range d.F.OfferAll(all...).Items {
		eq(d.F.T, "offer", o.Outcome, store.OfferParked)
	}
	return events
}

func brokenPairs(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for name, record := range map[string]func(d *Driver) int{
		"collect": func(d *Driver) int { return len(d.Collect().Records) },
		"suspend": func(d *Driver) int {
			got := d.Suspend()
			eq(t, "outcome", got.Outcome, store.SuspendContinue)
			eq(t, "outcome with nothing but what cannot be recorded", d.Suspend().Outcome, store.SuspendSuspended)
			return len(got.Records)
		},
		"release": func(d *Driver) int { return len(d.Release().Records) },
		"reclaim": func(*Driver) int {
			h.Advance(leaseEnd)
			records := 0
			for _, got := range h.SweepLeases(t) { // those of the drivers before, too
				records += got.Records
			}
			return records
		},
	} {
		r := f.Start()
		d := r.Drive()
		good, bad, quarantined := d.Parked("good"), d.Parked("bad"), d.Parked("quarantined")
		for range rendezvous.QuarantineAfter {
			item := store.ParkItem{Tenant: f.Name(), WaitID: r.WaitID("quarantined"), Cause: store.ParkFailed, Error: "refused"}
			must(h.Store.ParkWait(ctx, []store.ParkItem{item}, now))(t, "park a failure")
		}
		done(t, "damage an event", h.Damage.Event(f.Name(), bad.EventID))
		eq(t, "mail, without the quarantined", d.Append(r.Noted("n")).Mail.Mail, 2)
		eq(t, "records of "+name, record(d), 1)
		r.WantAnswered("good", good)
		row := r.Row("bad")
		if row == nil || row.State != rendezvous.WaitParked || row.Attempts < 1 || row.LastError == "" {
			t.Fatalf("after a %s the pair that cannot be recorded is %+v, want it parked with a failed attempt", name, row)
		}
		eq(t, "the quarantined wait after a "+name, r.Row("quarantined").State, rendezvous.WaitQuarantined)
		f.WantState(quarantined.EventID, rendezvous.EventClaimed)
	}
}

func overHundredParked(t *testing.T, h *Harness) {
	const n = rendezvous.MaxCollect + 3
	f := h.Fix(t)
	for name, record := range map[string]func(d *Driver) []rendezvous.Record{
		"collect": func(d *Driver) []rendezvous.Record {
			eq(t, "mail", must(f.RenewLease(ctx, d.ID, d.Owner, d.Epoch, lease))(t, "renew").Mail.Mail, n)
			first, second := d.Collect(), d.Collect()
			eq(t, "records and more of the first page", fmt.Sprint(len(first.Records), first.More), fmt.Sprint(rendezvous.MaxCollect, true))
			eq(t, "records and more of the second", fmt.Sprint(len(second.Records), second.More), fmt.Sprint(3, false))
			eq(t, "records of the third", d.Collect().Records, nil)
			return append(first.Records, second.Records...)
		},
		"suspend": func(d *Driver) []rendezvous.Record { return d.suspendAll(3) },
		"release": func(d *Driver) []rendezvous.Record {
			got := d.Release()
			eq(t, "outcome, records and more", fmt.Sprint(got.Outcome, len(got.Records), got.More), fmt.Sprint(store.SuspendReleased, rendezvous.MaxCollect, true))
			return append(got.Records, d.Drive().Collect().Records...)
		},
		"reclaim": func(d *Driver) []rendezvous.Record {
			seen := d.Seen
			h.Advance(leaseEnd)
			eq(t, "records of the reclaim", h.SweepLeases(t)[0].Records, rendezvous.MaxCollect)
			eq(t, "records of the next driver", len(d.Drive().Collect().Records), 3)
			return d.History()[seen:]
		},
	} {
		d := f.Start().Drive()
		events := d.parks(n, 0)
		d.wantAnswers(name, record(d), events)
		d.Revoke()
	}
}

// suspendAll suspends until the lease is given up, at most so often, and answers what was shown meanwhile.
func (d *Driver) suspendAll(most int) []rendezvous.Record {
	d.F.T.Helper()
	var all []rendezvous.Record
	for range most {
		got := must(d.F.Tenant.Suspend(ctx, d.ID, d.Epoch, d.Seen, false))(d.F.T, "suspend")
		if got.Outcome == store.SuspendSuspended {
			return all
		}
		eq(d.F.T, "outcome", got.Outcome, store.SuspendContinue)
		if len(got.Records) == 0 {
			d.F.T.Fatal("continue without anything new")
		}
		all = append(all, got.Records...)
		d.Seen = got.Records[len(got.Records)-1].Seq
		eq(d.F.T, "more", got.More, d.Seen < got.Head || len(d.Rows()) > 0)
	}
	d.F.T.Fatalf("not suspended in %d calls", most)
	return nil
}

// wantAnswers fails the test unless the records are the answers of exactly those waits by exactly those events, each once, and no wait is left.
func (d *Driver) wantAnswers(by string, records []rendezvous.Record, events map[string]rendezvous.Event) {
	d.F.T.Helper()
	seen := map[string]bool{}
	for _, rec := range records {
		e, ok := events[rec.Effect]
		if !ok || seen[rec.Effect] {
			d.F.T.Fatalf("%s: %s is answered twice, or was never asked for", by, rec.Effect)
		}
		seen[rec.Effect] = true
		WantAnswerOf(d.F.T, rec, e)
	}
	eq(d.F.T, "answers by "+by, len(seen), len(events))
	eq(d.F.T, "rows of waits left", len(d.Rows()), 0)
}

func overBytesParked(t *testing.T, h *Harness) {
	const n = rendezvous.MaxCollectBytes/rendezvous.MaxPayload + 2
	f := h.Fix(t)
	d := f.Start().Drive()
	events := d.parks(n, rendezvous.MaxPayload)
	first := d.Collect()
	eq(t, "records and more of the first page", fmt.Sprint(len(first.Records), first.More), fmt.Sprint(n-2, true))
	second := d.Collect()
	eq(t, "records and more of the second", fmt.Sprint(len(second.Records), second.More), fmt.Sprint(2, false))
	d.wantAnswers("collect", append(first.Records, second.Records...), events)
	d.Conclude(rendezvous.StatusCompleted)

	d = f.Start().Drive()
	events = d.parks(n, rendezvous.MaxPayload)
	d.wantAnswers("suspend", d.suspendAll(n+1), events)
}

func suspendAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("w", "paid", K("order", "1"))
	h.Faults.Arm(fault.Failure{Verb: "suspend", Point: fault.AfterCommit})
	_, err := f.Suspend(ctx, r.ID, d.Epoch, d.Seen, false)
	code(t, "a suspend whose answer was lost", err, rendezvous.CodeCommitUnknown)
	again := func(what string, want store.Suspended) {
		t.Helper()
		before, marks := r.outlook(), h.marks(f)
		eq(t, "the same again "+what, must(f.Suspend(ctx, r.ID, d.Epoch, d.Seen, false))(t, "suspend again"), want)
		eq(t, "the workflow "+what, r.outlook(), before)
		eq(t, "woken runs "+what, h.marks(f), marks)
	}
	again("at once", store.Suspended{Outcome: store.SuspendSuspended, Head: 2})
	e := EventOf("paid", K("order", "1"))
	f.Send(e)
	r.WantAnswered("w", e)
	again("after an answer came", store.Suspended{Outcome: store.SuspendSuspended, Head: 3})
	h.Advance(time.Hour)
	again("after the lease would have run out", store.Suspended{Outcome: store.SuspendSuspended, Head: 3})
	r.Drive().Release()
	r.unmoved("after another drove the run", rendezvous.CodeFenced, func() error { _, err := f.Suspend(ctx, r.ID, d.Epoch, d.Seen, false); return err })

	d = r.Drive()
	r.Pause()
	h.Faults.Arm(fault.Failure{Verb: "suspend", Point: fault.AfterCommit})
	_, err = f.Suspend(ctx, r.ID, d.Epoch, d.Seen, false)
	code(t, "a suspend that paused, whose answer was lost", err, rendezvous.CodeCommitUnknown)
	again("while paused", store.Suspended{Outcome: store.SuspendPaused, Seq: d.Seen + 1, Head: d.Seen + 1})
	r.Resume()
	again("after the resume", store.Suspended{Outcome: store.SuspendPaused, Seq: d.Seen + 1, Head: d.Seen + 2})
	r.Conclude(rendezvous.StatusCompleted)
	r.unmoved("after the end", rendezvous.CodeSealed, func() error { _, err := f.Suspend(ctx, r.ID, d.Epoch, d.Seen, false); return err })
}

func suspendAfterReclaim(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for what, end := range map[string]func(r *Flow, d *Driver){
		"reclaimed":            func(*Flow, *Driver) { eq(t, "reclaimed", len(h.SweepLeases(t)), 1) },
		"reclaimed to a pause": func(r *Flow, _ *Driver) { eq(t, "paused", h.SweepLeases(t)[0].Paused, true) },
		"released":             func(_ *Flow, d *Driver) { d.Release() },
		"released to a pause":  func(_ *Flow, d *Driver) { d.Release() },
		"taken over":           func(r *Flow, _ *Driver) { r.Drive().Suspend() },
	} {
		r := f.Start()
		d := r.Drive()
		if what == "reclaimed to a pause" || what == "released to a pause" {
			r.Pause()
		}
		h.Advance(leaseEnd)
		end(r, d)
		r.unmoved("a suspend after the lease was "+what, rendezvous.CodeFenced, func() error { _, err := f.Suspend(ctx, r.ID, d.Epoch, r.Head(), false); return err },
			"epoch", r.Describe().LeaseEpoch)
	}
}

func brokenSuspend(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, parked := range []bool{false, true} {
		h.Break(t, "suspend", func() (func() error, func(error, bool)) {
			r := f.Start()
			d := r.Drive()
			var e rendezvous.Event
			if parked {
				e = d.Parked("parked")
			}
			before := r.outlook()
			attempt := func() error { _, err := f.Suspend(ctx, r.ID, d.Epoch, d.Seen, false); return err }
			return attempt, func(err error, committed bool) {
				if !committed {
					eq(t, "the workflow after a suspend that failed", r.outlook(), before)
				} else {
					code(t, "a suspend whose answer was lost", err, rendezvous.CodeCommitUnknown)
				}
				if parked {
					got := d.Suspend()
					eq(t, "outcome and records", fmt.Sprint(got.Outcome, len(got.Records)), fmt.Sprint(store.SuspendContinue, 1))
					WantAnswerOf(t, got.Records[0], e)
				}
				eq(t, "suspended at last", d.Suspend().Outcome, store.SuspendSuspended)
				r.WantFree()
			}
		})
	}
}

func brokenRelease(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "release_lease", func() (func() error, func(error, bool)) {
		r := f.Start()
		d := r.Drive()
		e := d.Parked("parked")
		before, woken := r.outlook(), h.marks(f)
		attempt := func() error { _, err := f.ReleaseLease(ctx, r.ID, d.Epoch); return err }
		return attempt, func(err error, committed bool) {
			if !committed {
				eq(t, "the workflow after a release that failed", r.outlook(), before)
				eq(t, "woken runs", h.marks(f), woken)
				eq(t, "released at last", d.Release().Outcome, store.SuspendReleased)
			} else {
				code(t, "a release whose answer was lost", err, rendezvous.CodeCommitUnknown)
				eq(t, "released again", d.Release().Outcome, store.SuspendNotHeld)
			}
			r.WantFree()
			r.WantAnswered("parked", e)
			eq(t, "woken runs", h.marks(f), woken+1)
		}
	})
}

// claimsInSequence: claims are made in another order than their waits were, at one instant and with the clock going back between them (I9).
func claimsInSequence(t *testing.T, h *Harness) {
	f := h.Fix(t)
	claims := map[string]func(r *Flow, e rendezvous.Event, effect string){
		"OfferBatch":  func(r *Flow, e rendezvous.Event, _ string) { r.F.Send(e) },
		"MatchWaiter": func(r *Flow, e rendezvous.Event, effect string) { r.F.Put(e); r.F.Matched(e, r, effect) },
		"DeliverTo":   func(r *Flow, e rendezvous.Event, effect string) { r.Targeted(effect, e) },
		"ClaimFor":    func(r *Flow, e rendezvous.Event, effect string) { r.F.Put(e); r.WantClaim(effect, e, false) },
	}
	for _, back := range []time.Duration{0, -time.Minute} {
		for by, claim := range claims {
			r := f.Start()
			d := r.DriveFor(time.Hour)
			for _, effect := range []string{"a", "b", "c", "d"} {
				d.Waits(effect, "paid", K(r.ID, effect))
			}
			order := []string{"c", "b", "d", "a"}
			for _, effect := range order {
				claim(r, EventOf("paid", K(r.ID, effect)), effect)
				h.Advance(back)
			}
			var got []string
			for _, rec := range must(f.Collect(ctx, r.ID, d.Epoch))(t, "collect").Records {
				got = append(got, rec.Effect)
			}
			eq(t, fmt.Sprintf("claims of %s collected, the clock moving by %s", by, back), got, order)
			h.Advance(-4 * back)
		}
	}
}

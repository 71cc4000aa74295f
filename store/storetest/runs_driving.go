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

// runsDriving is runs.md section 8, "Driving". Timers are not built. What happens when a driver dies is in runs_reclaiming.go.
var runsDriving = []Case{
	{Name: "RN-31 with nothing new the lease is given up, and the run goes on running", Run: nothingNew},
	{Name: "RN-32 with a parked answer the driver continues and keeps its lease", Run: parkedAnswer},
	{Name: "RN-32 what the driver has not seen, it is shown first", Run: unseenRecords},
	{Name: "RN-32 a cancel the driver does not know of, it is shown first", Run: unknownCancel},
	{Name: "RN-33 an event offered and a suspend at once: one of answer and wake-up, never neither", Run: offerAndSuspend},
	{Name: "RN-33 many events offered while their driver suspends and collects: none is left behind", Run: offersAndDriver},
	{Name: "RN-34 parked answers are recorded oldest claim first", Run: oldestClaimFirst},
	{Name: "RN-34 over a hundred parked answers the next call takes the rest", Run: overHundredParked},
	{Name: "RN-34 over 16 MiB of parked answers the next call takes the rest", Run: overBytesParked},
	{Name: "RN-35 mail is collected under the driver's lease, once", Run: collectedOnce},
	{Name: "RN-36 a lease released in mid-work leaves a woken run that another completes", Run: releasedInMidWork},
	{Name: "RN-36 a release that fails at any step is done whole or not at all", Run: brokenRelease},
	{Name: "RN-58 the reply of a suspend lost: the same answer, as long as nobody took the run", Run: suspendAgain},
	{Name: "RN-58 a suspend sent first after the lease was reclaimed is fenced", Run: suspendAfterReclaim},
	{Name: "RN-58 a suspend that fails at any step is done whole or not at all", Run: brokenSuspend},
}

func nothingNew(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		r := f.Start()
		d := r.Drive()
		d.Waits("w", "paid", K("order", "1"))
		d.Append(r.Begun("a"))
		history := r.History()
		got := d.Suspend()
		eq(t, "suspend", got, store.Suspended{Outcome: store.SuspendSuspended, Head: 3})
		r.WantFree()
		eq(t, "history", r.History(), history)
		chain := must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")
		eq(t, "status of the run", chain[0].Status, rendezvous.StatusRunning)
		eq(t, "closed_at and outcome", fmt.Sprint(chain[0].ClosedAt.IsZero(), chain[0].Outcome), fmt.Sprint(true, ""))
		eq(t, "woken runs", h.marks(f), 0)
		h.Advance(time.Hour)
		h.wantNoNotice(f, "of a run that waits")
		eq(t, "reclaimed", h.SweepLeases(t), nil)
		e := EventOf("paid", K("order", "1"))
		sent := f.Send(e)
		r.wantNotice(sent.Resume, rendezvous.CauseAnswered, 4)
		r.WantAnswered("w", e)
		r.Finish()
	}
}

func parkedAnswer(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	e := d.Parked("parked")
	h.Advance(10 * time.Second)
	seen := d.Seen
	got := d.Suspend()
	eq(t, "outcome", got.Outcome, store.SuspendContinue)
	eq(t, "records, head and more", fmt.Sprint(len(got.Records), got.Head, got.More), fmt.Sprint(1, seen+1, false))
	WantAnswerOf(t, got.Records[0], e)
	eq(t, "the record", got.Records[0], *r.WantAnswered("parked", e))
	row := r.Describe()
	eq(t, "owner, epoch and time left", fmt.Sprint(row.LeaseOwner, row.LeaseEpoch, row.LeaseRemaining), fmt.Sprint(d.Owner, d.Epoch, lease-10*time.Second))
	eq(t, "notices", got.Notices, store.Notices{})
	eq(t, "woken runs", h.marks(f), 0)
	eq(t, "suspend again", d.Suspend().Outcome, store.SuspendSuspended)
	r.WantFree()
}

func unseenRecords(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	head := d.Append(r.Noted("a"), r.Noted("b"), r.Noted("c")).Head
	full := r.History()
	for seen := range head {
		got := must(f.Suspend(ctx, r.ID, d.Epoch, seen, false))(t, "suspend")
		eq(t, fmt.Sprintf("outcome with %d seen", seen), got.Outcome, store.SuspendContinue)
		eq(t, fmt.Sprintf("records after %d", seen), got.Records, full[seen:])
		eq(t, "head", got.Head, head)
		eq(t, "owner", r.Describe().LeaseOwner, d.Owner)
	}
	r.unmoved("having seen more than there is", rendezvous.CodeConflict, func() error { _, err := f.Suspend(ctx, r.ID, d.Epoch, head+1, false); return err }, "head", head)
	r.unmoved("having seen a negative seq", rendezvous.CodeInvalid, func() error { _, err := f.Suspend(ctx, r.ID, d.Epoch, -1, false); return err })
	e := d.Parked("parked")
	got := must(f.Suspend(ctx, r.ID, d.Epoch, 2, false))(t, "suspend with records unseen and one parked")
	eq(t, "records after 2", got.Records, r.History()[2:])
	WantAnswerOf(t, got.Records[len(got.Records)-1], e)
	again := must(f.Suspend(ctx, r.ID, d.Epoch, 2, false))(t, "the same again after a lost reply")
	eq(t, "records after 2, again", again.Records, got.Records)
	eq(t, "outcome with all seen", must(f.Suspend(ctx, r.ID, d.Epoch, r.Head(), false))(t, "suspend").Outcome, store.SuspendSuspended)
}

func unknownCancel(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	asking := r.AskCancel()
	got := d.Suspend()
	eq(t, "outcome", got.Outcome, store.SuspendContinue)
	eq(t, "records", got.Records, nil)
	eq(t, "requests", got.Requests, []rendezvous.Request{*asking.Request})
	eq(t, "owner", r.Describe().LeaseOwner, d.Owner)
	eq(t, "outcome once it is known", must(f.Suspend(ctx, r.ID, d.Epoch, d.Seen, true))(t, "suspend").Outcome, store.SuspendSuspended)
	eq(t, "requests kept", asked(r.Describe().Requests), []rendezvous.RequestKind{rendezvous.RequestCancel})
}

func offerAndSuspend(t *testing.T, h *Harness) {
	counts := map[store.SuspendOutcome]int{}
	for round := range Rounds(t) {
		f := h.FixOf(t, [...]string{"acme", "globex"}[round%2])
		r := f.Start()
		d := r.Drive()
		d.Waits("w", "paid", K("order", r.ID))
		e := EventOf("paid", K("order", r.ID))
		if round%3 > 0 {
			f.Put(e)
		}
		var offered store.Offered
		var got store.Suspended
		var errs [3]error
		Race(t, func() {
			if round%3 == 0 {
				_, errs[0] = f.Buffer(ctx, e, now)
			}
			if errs[0] == nil {
				offered, errs[1] = h.Store.OfferBatch(ctx, f.Items(e), now)
			}
		}, func() { got, errs[2] = f.Suspend(ctx, r.ID, d.Epoch, d.Seen, false) })
		for _, err := range errs {
			done(t, "buffer, offer and suspend at once", err)
		}
		counts[got.Outcome]++
		switch got.Outcome {
		case store.SuspendContinue: // its driver has the answer, and nobody else is called
			eq(t, "records", len(got.Records), 1)
			WantAnswerOf(t, got.Records[0], e)
			eq(t, "notices", len(got.Notices.Resume)+len(offered.Notices.Resume), 0)
			eq(t, "owner", r.Describe().LeaseOwner, d.Owner)
			d.Seen = got.Head
			eq(t, "suspend again", d.Suspend().Outcome, store.SuspendSuspended)
			eq(t, "woken runs", h.marks(f), 0)
		case store.SuspendSuspended: // its answer is in the history, and the run is woken
			eq(t, "offer to a run that was given up", offered.Items[0].Outcome, store.OfferDelivered)
			r.wantNotice(offered.Notices.Resume, rendezvous.CauseAnswered, d.Seen+1)
			eq(t, "woken runs", h.marks(f), 1)
			r.Drive().Release()
			r.Drive()
		default:
			t.Fatalf("suspend answered %s", got.Outcome)
		}
		r.WantAnswered("w", e)
	}
	t.Logf("came to %v", counts)
}

func offersAndDriver(t *testing.T, h *Harness) {
	const events = 6
	for range Rounds(t) {
		f := h.Fix(t)
		r := f.Start()
		d := r.Drive()
		sent := make([]rendezvous.Event, events)
		for i := range sent {
			key := K("order", fmt.Sprint(r.ID, "/", i))
			d.Waits(fmt.Sprint("w", i), "paid", key)
			sent[i] = f.PutNew("paid", key)
		}
		errs := make([]error, events+1)
		fns := []func(){func() {
			for seen := d.Seen; ; {
				got, err := f.Suspend(ctx, r.ID, d.Epoch, seen, false)
				if errs[events] = err; err != nil || got.Outcome == store.SuspendSuspended {
					return
				}
				for i, rec := range got.Records {
					if rec.Seq != seen+int64(i)+1 {
						errs[events] = fmt.Errorf("record %d shown behind %d", rec.Seq, seen)
						return
					}
				}
				seen = got.Head
			}
		}}
		for i, e := range sent {
			fns = append(fns, func() { _, errs[i] = h.Store.OfferBatch(ctx, f.Items(e), now) })
		}
		Race(t, fns...)
		for _, err := range errs {
			done(t, "offers and a driver at once", err)
		}
		for i, e := range sent {
			r.WantAnswered(fmt.Sprint("w", i), e)
		}
		r.WantFree()
		r.Drive().Release() // and the mark that its release leaves, if any, goes with the run
		r.Conclude(rendezvous.StatusCompleted)
	}
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

func collectedOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("open", "paid", K("order", "1"))
	a, b := d.Parked("a"), d.Parked("b")
	eq(t, "mail", d.Append(r.Noted("n")).Mail.Mail, 2)
	before := r.Describe()
	got := d.Collect()
	eq(t, "records", len(got.Records), 2)
	eq(t, "records as they stand in the history", got.Records, r.History()[got.Head-2:])
	eq(t, "head and more", fmt.Sprint(got.Head, got.More), fmt.Sprint(before.Head+2, false))
	r.WantAnswered("a", a)
	r.WantAnswered("b", b)
	eq(t, "time left of the lease", r.Describe().LeaseRemaining, before.LeaseRemaining)
	eq(t, "woken runs", h.marks(f), 0)
	history := r.History()
	eq(t, "collected again", d.Collect(), store.Collected{Head: got.Head})
	eq(t, "history", r.History(), history)
	eq(t, "mail", d.Append().Mail.Mail, 0)
	r.unmoved("collecting without an epoch", rendezvous.CodeInvalid, func() error { _, err := f.Collect(ctx, r.ID, 0); return err })
}

func releasedInMidWork(t *testing.T, h *Harness) {
	for _, parked := range []int{0, 2} {
		f := h.FixOf(t, fmt.Sprint("tenant", parked))
		r := f.Start()
		d := r.Drive()
		d.Append(r.Begun("a"))
		var events []rendezvous.Event
		for i := range parked {
			events = append(events, d.Parked(fmt.Sprint("w", i)))
		}
		seen := d.Seen
		got := d.Release()
		eq(t, "outcome, head and more", fmt.Sprint(got.Outcome, got.Head, got.More), fmt.Sprint(store.SuspendReleased, seen+int64(parked), false))
		eq(t, "records", len(got.Records), parked)
		for i, e := range events {
			WantAnswerOf(t, got.Records[i], e)
			r.WantAnswered(fmt.Sprint("w", i), e)
		}
		r.WantFree()
		r.wantNotice(got.Notices.Resume, rendezvous.CauseReleased, got.Head)
		eq(t, "woken runs", h.marks(f), 1)
		h.Advance(10 * time.Second) // the notice was lost
		r.wantNotice(h.SweepWoken(t), rendezvous.CauseReleased, got.Head)
		other := r.Drive()
		eq(t, "head of another driver", other.Seen, got.Head)
		other.Append(r.Done("a"), r.Completed())
		eq(t, "status", r.Describe().Status, rendezvous.StatusCompleted)
		eq(t, "woken runs", h.marks(f), 0)
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

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsDriving is runs.md section 8, "Driving". Timers are in timers_leased.go. What happens when a driver dies is in runs_reclaiming.go.
var runsDriving = []Case{
	{Name: "RN-31 with nothing new the lease is given up, and the run goes on running", Run: nothingNew},
	{Name: "RN-32 with a parked answer the driver continues and keeps its lease", Run: parkedAnswer},
	{Name: "RN-32 what the driver has not seen, it is shown first", Run: unseenRecords},
	{Name: "RN-32 a cancel the driver does not know of, it is shown first", Run: unknownCancel},
	{Name: "RN-33 an event offered and a suspend at once: one of answer and wake-up, never neither", Run: offerAndSuspend},
	{Name: "RN-33 many events offered while their driver suspends and collects: none is left behind", Run: offersAndDriver},
	{Name: "RN-35 mail is collected under the driver's lease, once", Run: collectedOnce},
	{Name: "RN-36 a lease released in mid-work leaves a woken run that another completes", Run: releasedInMidWork},
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
	for round := range h.Rounds(t) {
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
	for range h.Rounds(t) {
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

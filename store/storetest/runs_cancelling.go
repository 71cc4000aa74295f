package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsCancelling is runs.md section 8, "Pausing, cancelling": cancelling.
var runsCancelling = []Case{
	{Name: "RN-54 a cancel request reads back word for word, and the first asker stands", Run: cancelAsked},
	{Name: "RN-55 a cancel request wakes a waiting run, whose driver concludes it", Run: cancelWakes},
	{Name: "RN-56 a leased run cancelled now is sealed at once, and its driver leaves nothing behind", Run: cancelNow},
	{Name: "RN-56 a cancel now and the driver's work at once: nothing behind the end", Run: cancelAndDriver},
}

func cancelAsked(t *testing.T, h *Harness) {
	for _, leased := range []bool{false, true} {
		f := h.FixOf(t, fmt.Sprint("tenant-", leased))
		r, other := f.Start(), f.Start()
		var d *Driver
		if leased {
			d = r.Drive()
		}
		at := h.Now(t).Add(-time.Hour)
		words := "not wanted:\n\t\"nobody's\" fault, 100 % — fini"
		asking := must(f.CancelRun(ctx, r.ID, kim, words, false, at))(t, "ask for a cancel")
		want := rendezvous.Request{Kind: rendezvous.RequestCancel, Operator: kim, Reason: words, At: at}
		eq(t, "the answer", fmt.Sprint(asking.Outcome), fmt.Sprint(store.CancelRequested))
		eq(t, "the request", asking.Request, &want)
		h.Advance(time.Second)
		second := must(f.CancelRun(ctx, r.ID, lee, "me too", false, now))(t, "ask again")
		eq(t, "the second asker is told", second, store.Cancelled{Outcome: store.CancelRequested, Request: &want})
		row := r.Describe()
		eq(t, "requests of the row", row.Requests, []rendezvous.Request{want})
		eq(t, "status", row.Status, rendezvous.StatusRunning)
		eq(t, "requests of a run never asked", other.Describe().Requests, nil)
		r.WantKinds()
		if d == nil {
			d = r.Drive()
		}
		eq(t, "requests told to the driver", d.Append(r.Noted("n")).Requests, []rendezvous.Request{want})
		d.Append(r.Begun("cleaning up"), r.Done("cleaning up")) // it is no pause
		eq(t, "requests told to the driver of another", other.Drive().Append().Requests, nil)
		anonymous := must(f.CancelRun(ctx, other.ID, nil, "", false, now))(t, "ask without a name")
		eq(t, "a request without a name", anonymous.Request, &rendezvous.Request{Kind: rendezvous.RequestCancel, At: h.Now(t)})
	}
}

func cancelWakes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, paused := range []bool{false, true} {
		r := f.Start()
		r.Waits("w", "paid", K("order", r.ID))
		r.Drive().Suspend()
		if paused {
			r.Pause()
		}
		eq(t, "woken runs", h.marks(f), 0)
		asking := r.AskCancel()
		eq(t, "woken runs", h.marks(f), 1)
		if paused { // it acts on it once resumed
			eq(t, "notices", asking.Notices, store.Notices{})
			h.Advance(time.Hour)
			h.wantNoNotice(f, "of a paused run asked to cancel")
			r.wantNotice(r.Resume().Notices.Resume, rendezvous.CauseResumed, r.Head())
		} else {
			r.wantNotice(asking.Notices.Resume, rendezvous.CauseCancelled, r.Head())
			eq(t, "notices of a second asker", r.AskCancel().Notices, store.Notices{})
			h.Advance(10 * time.Second)
			r.wantNotice(h.SweepWoken(t), rendezvous.CauseCancelled, r.Head())
		}
		d := r.Drive()
		eq(t, "suspend of a driver that does not know", d.Suspend().Outcome, store.SuspendContinue)
		d.Conclude(rendezvous.StatusCancelled)
		before := r.outlook()
		for _, atOnce := range []bool{false, true} {
			again := must(f.CancelRun(ctx, r.ID, lee, "", atOnce, now))(t, "ask again")
			eq(t, "asking again", again, store.Cancelled{Outcome: store.CancelClosed, Status: rendezvous.StatusCancelled})
		}
		eq(t, "the workflow", r.outlook(), before)
		eq(t, "woken runs", h.marks(f), 0)
	}
	for _, status := range []rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusFailed} {
		r := f.Start()
		r.AskCancel()
		r.Drive().Conclude(status) // whatever it was asked
		eq(t, "asking after another end", r.AskCancel(), store.Cancelled{Outcome: store.CancelClosed, Status: status})
	}
}

func cancelNow(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		s := f.estate()
		fresh := f.PutNew("paid", K("fresh", s.ID))
		pending := s.Batch(s.Noted("n"), s.Waited(s.Wait("fresh", "paid", K("fresh", s.ID))))
		got := s.Revoke()
		eq(t, "outcome and seq", fmt.Sprint(got.Outcome, got.Seq), fmt.Sprint(store.CancelCancelled, s.Seen+1))
		eq(t, "retired", got.Retired, s.retired())
		s.wantEnded(rendezvous.StatusCancelled)
		rec := s.History()[s.Seen]
		eq(t, "the record", fmt.Sprint(rec.Kind, *rec.Operator, string(rec.Data)), fmt.Sprint(rendezvous.RunCancelled, *kim, `{"reason":"not wanted"}`))
		eq(t, "epoch", s.Describe().LeaseEpoch, s.Epoch+1)
		s.unmoved("the driver's renewal", rendezvous.CodeFenced, func() error { _, err := f.RenewLease(ctx, s.ID, s.Owner, s.Epoch, lease); return err }, "epoch", s.Epoch+1)
		s.unmoved("the driver's append", rendezvous.CodeSealed, func() error { _, err := f.Append(ctx, pending, now); return err }, "outcome", string(rendezvous.StatusCancelled))
		for _, v := range append(s.writes(s.Epoch), s.writes(s.Epoch+1)...) {
			s.unmoved("the driver's "+v.name, rendezvous.CodeSealed, v.call, "outcome", string(rendezvous.StatusCancelled))
		}
		f.WantLive(fresh)
		for what, prepare := range map[string]func(r *Flow){
			"free": func(*Flow) {}, "paused": func(r *Flow) { r.Pause() }, "asked to cancel": func(r *Flow) { r.AskCancel() },
			"asked to pause": func(r *Flow) { r.Drive(); r.Pause() }, "with an open effect": func(r *Flow) { r.AppendFree(r.Begun("a")) },
		} {
			r := f.Start()
			prepare(r)
			eq(t, "cancel now of a run "+what, r.Revoke().Outcome, store.CancelCancelled)
			row := r.Describe()
			eq(t, "status of a run "+what, row.Status, rendezvous.StatusCancelled)
			eq(t, "requests of a run "+what, row.Requests, nil)
		}
		eq(t, "woken runs", h.marks(f), 0)
	}
}

func cancelAndDriver(t *testing.T, h *Harness) {
	counts := map[string]int{}
	for range h.Rounds(t) {
		f := h.Fix(t)
		r := f.Start()
		d := r.Drive()
		e, held := f.PutNew("paid", K("order", r.ID)), d.Parked("held")
		batch := d.Batch(r.Noted("n"), r.Waited(r.Wait("open", "paid", K("open", r.ID))))
		var errs [5]error
		Race(t,
			func() { _, errs[0] = f.CancelRun(ctx, r.ID, kim, "", true, now) },
			func() { _, errs[1] = f.Append(ctx, batch, now) },
			func() {
				_, errs[2] = f.RegisterWait(ctx, store.Registration{Wait: r.Wait("met", "paid", K("order", r.ID)), Epoch: d.Epoch}, now)
			},
			func() { _, errs[3] = f.RenewLease(ctx, r.ID, d.Owner, d.Epoch, lease) },
			func() { _, errs[4] = f.Collect(ctx, r.ID, d.Epoch) },
		)
		done(t, "cancel now", errs[0])
		for i, err := range errs[1:] {
			switch rendezvous.CodeOf(err) {
			case "": // it came before
			case rendezvous.CodeSealed, rendezvous.CodeFenced:
				counts[fmt.Sprint("refused ", i)]++
			case rendezvous.CodeConflict:
				eq(t, "a conflict, of an append alone", i, 0)
				code(t, "the append", err, rendezvous.CodeConflict, "expected", batch.ExpectedSeq)
			default:
				t.Fatalf("a driver's verb: %v", err)
			}
		}
		history := r.History()
		for i, rec := range history {
			eq(t, "terminal at the end, and only there", rec.Kind.Terminal(), i == len(history)-1)
		}
		eq(t, "rows of waits", len(r.Rows()), 0)
		row := r.Describe()
		eq(t, "epoch and owner", fmt.Sprint(row.LeaseEpoch, row.LeaseOwner), fmt.Sprint(d.Epoch+1, ""))
		eq(t, "open effects and waits", []int{row.OpenEffects, row.OpenWaits}, []int{0, 0})
		for effect, e := range map[string]rendezvous.Event{"met": e, "held": held} {
			if r.Answer(effect) != nil {
				r.WantAnswered(effect, e)
			} else {
				f.WantLive(e)
			}
		}
		_, err := f.RenewLease(ctx, r.ID, d.Owner, d.Epoch, lease)
		code(t, "the renewal behind", err, rendezvous.CodeFenced)
	}
	t.Logf("%v", counts)
}

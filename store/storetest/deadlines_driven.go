package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// deadlinesDriven is what a driver appends about deadlines (runs.md section 2, timers.md section 2).
var deadlinesDriven = []Case{
	{Name: "TM-18 a time-out in an append is its driver's, from the deadline on", Run: timedOutByDriver},
	{Name: "RN-10 a time-out appended though an event came in time is a conflict, and the event is collected", Run: timedOutThoughHeld},
	{Name: "RN-10 nothing of the batch is written besides the claims of its last look", Run: refusedBatch},
	{Name: "RN-10 a contested time-out leaves all as it is until the wait is offered", Run: timedOutContested},
	{Name: "RN-10 a time-out appended, an offer and a page at once: one closing record", Run: timeOutsAtOnce},
	{Name: "RN-8 a time-out in an append and its rows go together or not at all", Run: timeOutBroken},
}

// try is an append at the head the driver has seen, as a call.
func (d *Driver) try(records ...rendezvous.Record) func() error {
	return func() error { _, err := d.F.Append(ctx, d.Batch(records...), now); return err }
}

// WaitsUntil registers a wait with a deadline under the driver's epoch that nothing answers yet.
func (d *Driver) WaitsUntil(at time.Time, effect, kind string, keys ...rendezvous.Key) rendezvous.Wait {
	d.F.T.Helper()
	w := d.Until(at, effect, kind, keys...)
	eq(d.F.T, "outcome of registering "+effect, d.Register(w).Outcome, store.RegisterWaiting)
	return w
}

func timedOutByDriver(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, key := f.Start(), K("order", "1")
	d := r.DriveFor(time.Hour)
	w := d.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	d.Waits("none", "paid", K("order", "2"))
	r.refuses("a minute early", rendezvous.CodeInvalid, d.try(r.Noted("n"), r.TimedOut("w")), "remaining_ms", int64(60_000))
	h.Advance(time.Minute - time.Microsecond)
	r.refuses("a microsecond early", rendezvous.CodeInvalid, d.try(r.TimedOut("w")), "remaining_ms", int64(1))
	h.Advance(time.Microsecond)
	r.refuses("of a wait without a deadline", rendezvous.CodeConflict, d.try(r.TimedOut("none")))
	r.refuses("of a wait that never was", rendezvous.CodeConflict, d.try(r.TimedOut("never")))
	if err := r.tryFree(r.TimedOut("w")); rendezvous.CodeOf(err) != rendezvous.CodeLeaseHeld {
		t.Fatalf("without the epoch: %v", err)
	}
	lie := r.record(rendezvous.WaitTimedOut, "w", rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(w.Deadline.Add(-time.Second))})
	d.Append(r.Noted("n"), lie, r.Noted("m")) // the store says what was due
	rec := r.WantTimedOut("w", w.Deadline)
	eq(t, "batch of the record", rec.Batch != "", true)
	r.WantTimers()
	eq(t, "open waits", r.Describe().OpenWaits, 1)
	r.refuses("twice", rendezvous.CodeConflict, d.try(r.TimedOut("w")), "seq", rec.Seq)
	eq(t, "left for a page", len(p.Fire(t)), 0)
	eq(t, "woken", h.marks(f), 0)
	d.WaitsUntil(h.In(t, time.Second), "x", "paid", key)
	h.Advance(time.Second)
	r.refuses("twice in a batch", rendezvous.CodeConflict, d.try(r.TimedOut("x"), r.TimedOut("x")), "effect", "x")
	free := f.Start()
	free.WaitsUntil(h.In(t, time.Second), "w", "paid", key)
	h.Advance(time.Second)
	free.refuses("by nobody's driver", rendezvous.CodeInvalid, func() error { return free.tryFree(free.TimedOut("w")) }, "field", "epoch")
}

func timedOutThoughHeld(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for what, meet := range map[string]func(e rendezvous.Event){
			"offered": func(e rendezvous.Event) { f.OfferEvent(e.EventID) }, "never offered": func(rendezvous.Event) {},
		} {
			r, key := f.Start(), K("order", ID("key"))
			d := r.DriveFor(time.Hour)
			d.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
			e := f.PutNew("paid", key)
			meet(e)
			h.Advance(time.Minute)
			batch := d.Batch(r.TimedOut("w"))
			for range 2 { // again, too
				_, err := f.Append(ctx, batch, now)
				code(t, "a time-out of a wait whose event was "+what, err, rendezvous.CodeConflict, "effect", "w", "current", "held", "record", 0)
				r.WantParked("w", e)
				r.WantKinds(rendezvous.WaitRegistered)
			}
			got := d.Collect()
			eq(t, "collected", len(got.Records), 1)
			WantAnswerOf(t, got.Records[0], e)
			r.WantAnswered("w", e)
			r.WantTimers()
			eq(t, "closing records", len(r.closings("w")), 1)
			_, err := f.Append(ctx, batch, now)
			code(t, "the batch once more", err, rendezvous.CodeConflict, "what", "head")
			d.Append(r.Noted("and on"))
			d.Release()
		}
	}
}

func refusedBatch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, a, b, c := f.Start(), K("order", "a"), K("order", "b"), K("order", "c")
	d := r.DriveFor(time.Hour)
	deadline := h.In(t, time.Minute)
	d.WaitsUntil(deadline, "free", "paid", c)
	d.WaitsUntil(deadline, "w", "paid", a)
	d.WaitsUntil(deadline, "v", "paid", b)
	first, second := f.PutNew("paid", a), f.PutNew("paid", b)
	h.Advance(time.Minute)
	r.AppendUnder(d, r.TimedIn("t", time.Hour))
	before := r.Describe()
	batch := []rendezvous.Record{
		r.Noted("n"), r.TimedOut("free"), r.TimedOut("w"), r.TimedOut("v"), r.Begun("e"), r.TimedIn("u", time.Hour), r.CancelledAs("t", d.Seen),
		r.Waited(r.Wait("new", "paid", K("order", "d"))),
	}
	_, err := f.Append(ctx, d.Batch(batch...), now)
	code(t, "a batch with two held ones", err, rendezvous.CodeConflict, "effect", "w", "current", "held", "record", 2)
	r.WantParked("w", first)
	r.WantParked("v", second)
	r.WantOpen("free")
	after := r.Describe()
	eq(t, "the row", fmt.Sprint(after.Head, after.OpenWaits, after.OpenEffects, after.LiveTimers), fmt.Sprint(before.Head, 3, 0, 4))
	eq(t, "timers", r.Timer("t") != nil && r.Timer("u") == nil, true)
	eq(t, "mail", must(f.Append(ctx, d.Batch(), now))(t, "append nothing").Mail.Mail, 2)
	// A batch that ends the run is refused like any other.
	_, err = f.Append(ctx, d.Batch(r.TimedOut("w"), r.Completed()), now)
	code(t, "a terminal behind a held one", err, rendezvous.CodeConflict, "effect", "w")
	eq(t, "status", r.Describe().Status, rendezvous.StatusRunning)
	got := d.Suspend()
	eq(t, "records of a suspension", len(got.Records), 3+0)
	r.WantAnswered("w", first)
	r.WantAnswered("v", second)
	r.WantTimedOut("free", deadline)
}

// AppendUnder writes records under a driver's epoch at the present head.
func (r *Flow) AppendUnder(d *Driver, records ...rendezvous.Record) {
	r.F.T.Helper()
	d.Seen = r.Head()
	d.Append(records...)
}

func timedOutContested(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, n := range []int{1, 2} {
		older, key, events := f.contest(n)
		r := f.Start()
		d := r.DriveFor(time.Hour)
		w := r.Until(h.In(t, time.Minute), "w", "paid", key)
		must(f.Subscribe(ctx, store.Registration{Wait: w, Epoch: d.Epoch}, now))(t, "subscribe")
		d.Seen = d.Head()
		h.Advance(time.Minute)
		r.refuses("a contested time-out", rendezvous.CodeConflict, d.try(r.TimedOut("w"), r.Noted("n")), "effect", "w", "current", "contested", "record", 0)
		r.WantOpen("w")
		older.WantOpen("w")
		f.WantLive(events...)
		before := r.Timer(rendezvous.WaitTimerID(r.ID, "w"))
		got := must(f.Tenant.Suspend(ctx, r.ID, d.Epoch, d.Seen, false))(t, "suspend over a contested deadline")
		if got.Outcome != store.SuspendSuspended {
			t.Fatalf("suspend over a contested deadline: %s", got.Outcome)
		}
		after := r.Timer(rendezvous.WaitTimerID(r.ID, "w"))
		eq(t, "it is left due", fmt.Sprint(after.DueAt.After(h.Now(t)), after.Parks, after.Attempts), fmt.Sprint(false, before.Parks, 0))
		d = r.DriveFor(time.Hour)
		f.OfferWait(w.WaitID)
		older.WantAnswered("w", events[0])
		if n == 2 {
			r.WantParked("w", events[1])
			r.refuses("a time-out of one that holds an event now", rendezvous.CodeConflict, d.try(r.TimedOut("w")), "current", "held")
			d.Collect()
			r.WantAnswered("w", events[1])
		} else {
			d.Append(r.TimedOut("w"))
			r.WantTimedOut("w", w.Deadline)
		}
		r.WantTimers()
	}
}

func timeOutsAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for i := range h.Rounds(t) {
		r, key := f.Start(), K("order", ID("key"))
		d := r.DriveFor(time.Hour)
		w := d.WaitsUntil(h.In(t, time.Second), "w", "paid", key)
		var e rendezvous.Event
		if i%2 == 0 {
			e = f.PutNew("paid", key)
		}
		h.Advance(time.Second)
		if i%2 == 1 {
			e = f.PutNew("paid", key)
		}
		p.Own(t)
		batch := d.Batch(r.TimedOut("w"))
		var errs [3]error
		Race(t,
			func() { _, errs[0] = f.Append(ctx, batch, now) },
			func() { _, errs[1] = h.Store.OfferBatch(ctx, f.Items(e), now) },
			func() { _, errs[2] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "offer", errs[1])
		done(t, "fire", errs[2])
		if i%2 == 0 {
			code(t, "the append", errs[0], rendezvous.CodeConflict, "current", "held")
			r.WantParked("w", e)
			d.Collect()
			r.WantAnswered("w", e)
		} else {
			done(t, "the append", errs[0])
			r.WantTimedOut("w", w.Deadline)
			f.WantLive(e)
		}
		r.WantTimers()
	}
}

func timeOutBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "append", func() (func() error, func(error, bool)) {
		r, key := f.Start(), K("order", ID("key"))
		d := r.DriveFor(time.Hour)
		w := d.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
		a := d.ArmIn("t", time.Minute)
		h.Advance(time.Minute)
		batch := d.Batch(r.TimedOut("w"), r.FiredAs("t", a.ArmedSeq))
		return func() error { _, err := f.Append(ctx, batch, now); return err }, func(_ error, committed bool) {
			if !committed {
				r.WantKinds(rendezvous.WaitRegistered, rendezvous.TimerStarted)
				eq(t, "rows", fmt.Sprint(len(r.Timers()), len(r.Rows())), "2 1")
			}
			must(f.Append(ctx, batch, now))(t, "the same again")
			r.WantTimedOut("w", w.Deadline)
			r.WantFired("t", a)
			r.WantTimers()
		}
	})
	h.Break(t, "append", func() (func() error, func(error, bool)) { // and the claim of a last look
		r, key := f.Start(), K("order", ID("key"))
		d := r.DriveFor(time.Hour)
		d.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
		e := f.PutNew("paid", key)
		h.Advance(time.Minute)
		batch := d.Batch(r.TimedOut("w"))
		attempt := func() error {
			_, err := f.Append(ctx, batch, now)
			if rendezvous.CodeOf(err) == rendezvous.CodeConflict {
				return nil
			}
			return err
		}
		return attempt, func(error, bool) {
			_, err := f.Append(ctx, batch, now)
			code(t, "the same again", err, rendezvous.CodeConflict, "current", "held")
			d.Collect()
			r.WantAnswered("w", e)
		}
	})
}

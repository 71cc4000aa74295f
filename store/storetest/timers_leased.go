package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersLeased is what a lease does to due timers, and what its end does (timers.md section 4, runs.md section 3).
var timersLeased = []Case{
	{Name: "TM-29 a leased run's due timer is parked, later and later, and never a failure", Run: parkedPauses},
	{Name: "TM-29 parked timers hide no other row", Run: parkedHidesNothing},
	{Name: "TM-29 suspending records what is due in its own transaction and answers continue", Run: suspendedWithDue},
	{Name: "TM-29 releasing and reclaiming record what is due, too", Run: releasedWithDue},
	{Name: "TM-29 an expired lease that nobody took counts as free", Run: expiredCountsAsFree},
	{Name: "TM-29 a lease whose end failed recorded nothing of what was due", Run: suspendBroken},
	{Name: "RN-34 answers come first, oldest claim first, then due timers; over the bounds the next call takes the rest", Run: newsInOrder},
	{Name: "RN-34 the bounds hold for reclaiming, and what is left is due now", Run: reclaimedInBounds},
	{Name: "RN-51 timers of a paused run are recorded, and one notice comes when it is resumed", Run: pausedTimers},
	{Name: "RN-51 a requested pause is applied behind what was due", Run: pausedBehindDue},
	{Name: "RN-33 a page and a suspension at once record a due timer once, and its driver or a notice tells", Run: suspendedAtOnce},
}

func parkedPauses(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	d := r.DriveFor(time.Hour)
	a := d.ArmIn("t", 0)
	due := a.FireAt
	for i, pause := range []time.Duration{25, 50, 100, 200, 400, 800, 5000, 5000, 5000} {
		p.Own(t)
		x := one(t, "page", p.FireOnly(t, r), store.FireParked)
		eq(t, "remaining of the lease", x.Remaining, time.Hour-h.Now(t).Sub(a.FireAt))
		due = h.In(t, pause*time.Millisecond)
		row := r.Timer("t")
		eq(t, "row", fmt.Sprint(row.DueAt, row.Parks, row.Attempts, row.LastError, row.Arming), fmt.Sprint(due, i+1, 0, "", a))
		h.Advance(pause*time.Millisecond - time.Microsecond)
		eq(t, "early", len(p.FireOnly(t, r)), 0)
		h.Advance(time.Microsecond)
	}
	eq(t, "failing", must(f.CountTimers(ctx))(t, "count")[rendezvous.TimerAuthor], store.TimerCounts{Due: 1, Parked: 1, OldestDue: due})
	r.WantKinds(rendezvous.TimerStarted)
	b := d.ArmIn("t", 0) // an arming of its own: it has met no lease yet
	eq(t, "parks of a re-arming", r.WantArmed("t", b).Parks, 0)
	got := d.Suspend()
	eq(t, "suspend", got.Outcome, store.SuspendContinue)
	r.WantFired("t", b)
}

func parkedHidesNothing(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	start := h.Now(t)
	shard := -1
	var leased []*Driver
	for range 10 {
		d := f.startBeside(&shard).DriveFor(time.Hour)
		for range 3 {
			d.ArmIn(ID("parked"), 0)
		}
		leased = append(leased, d)
	}
	free := f.startBeside(&shard)
	a := free.Arm("free", start.Add(time.Millisecond))
	h.Advance(2 * time.Millisecond)
	for pages := 0; len(free.fired("free")) == 0; pages++ {
		if len(must(p.FireDueTimers(ctx, p.epochs(free), 5))(t, "fire").Fires) > 5 || pages > 6 {
			t.Fatal("30 parked timers in front hide the free one for more than 7 pages of 5")
		}
	}
	free.WantFired("free", a)
	for _, d := range leased {
		eq(t, "parked", len(d.Timers()), 3)
	}
}

func suspendedWithDue(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	d := r.DriveFor(time.Hour)
	a := d.ArmIn("a", time.Minute)
	b := d.ArmIn("b", 2*time.Minute)
	far := d.ArmIn("far", time.Hour)
	w := r.Until(h.In(t, time.Minute), "w", "paid", K("order", "1"))
	eq(t, "register", d.Register(w).Outcome, store.RegisterWaiting)
	h.Advance(time.Minute)
	eq(t, "a page parks", len(p.Fire(t)), 2)
	h.Advance(time.Minute)
	seen := d.Seen
	got := d.Suspend()
	eq(t, "outcome", got.Outcome, store.SuspendContinue)
	var kinds []rendezvous.Kind
	for _, rec := range got.Records {
		kinds = append(kinds, rec.Kind)
	}
	eq(t, "records answered", kinds, []rendezvous.Kind{rendezvous.TimerFired, rendezvous.WaitTimedOut, rendezvous.TimerFired})
	eq(t, "head", got.Head, seen+3)
	eq(t, "more", got.More, false)
	eq(t, "notices", got.Notices.Resume, nil)
	r.WantFired("a", a)
	r.WantFired("b", b)
	r.WantTimedOut("w", w.Deadline)
	r.WantArmed("far", far)
	r.WantTimers("far")
	eq(t, "owner", r.Describe().LeaseOwner, d.Owner)
	eq(t, "woken", h.marks(f), 0)
	eq(t, "left for a page", len(p.Fire(t)), 0)
	eq(t, "again, having seen all", d.Suspend().Outcome, store.SuspendSuspended)
	again := must(f.Tenant.Suspend(ctx, r.ID, d.Epoch, seen, false))(t, "suspend after a lost reply")
	eq(t, "after a lost reply", again.Outcome, store.SuspendSuspended)
}

func releasedWithDue(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for what, end := range map[string]func(d *Driver){
		"released":  func(d *Driver) { h.Advance(time.Minute); eq(t, "records", len(d.Release().Records), 2) },
		"reclaimed": func(*Driver) { h.Advance(2 * time.Hour); eq(t, "records", h.SweepLeases(t)[0].Records, 2) },
	} {
		r := f.Start()
		d := r.DriveFor(time.Hour)
		a := d.ArmIn("a", time.Minute)
		w := r.Until(h.In(t, time.Minute), "w", "paid", K("order", r.ID))
		d.Register(w)
		end(d)
		r.WantFired("a", a)
		r.WantTimedOut("w", w.Deadline)
		r.WantTimers()
		r.WantFree()
		eq(t, "left for a page when it was "+what, len(p.Fire(t)), 0)
		next := r.Drive()
		eq(t, "head of the next driver", next.Seen, r.Head())
		next.Conclude(rendezvous.StatusCompleted)
	}
}

func expiredCountsAsFree(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	d := r.Drive()
	a := d.ArmIn("t", time.Second)
	h.Advance(lease - time.Microsecond)
	one(t, "in its last microsecond", p.Page(t, 0).Fires, store.FireParked)
	h.Advance(time.Second)
	page := p.Page(t, 0)
	x := one(t, "when it is over", page.Fires, store.FireFired)
	r.wantNotice(page.Notices.Resume, rendezvous.CauseTimer, x.Seq)
	r.WantFired("t", a)
	_, err := f.Append(ctx, d.Batch(r.Noted("n")), now)
	code(t, "its late owner is shown the fire by the head", err, rendezvous.CodeConflict, "what", "head", "head", x.Seq)
}

func suspendBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "suspend", func() (func() error, func(error, bool)) {
		r := f.Start()
		d := r.DriveFor(time.Hour)
		a := d.ArmIn("t", time.Second)
		w := r.Until(h.In(t, time.Second), "w", "paid", K("order", r.ID))
		d.Register(w)
		h.Advance(time.Second)
		seen := d.Seen
		return func() error { _, err := f.Tenant.Suspend(ctx, r.ID, d.Epoch, seen, false); return err }, func(_ error, committed bool) {
			if !committed {
				r.WantKinds(rendezvous.TimerStarted, rendezvous.WaitRegistered)
				eq(t, "timers", len(r.Timers()), 2)
			}
			got := must(f.Tenant.Suspend(ctx, r.ID, d.Epoch, seen, false))(t, "suspend again")
			eq(t, "again", fmt.Sprint(got.Outcome, len(got.Records)), fmt.Sprint(store.SuspendContinue, 2))
			r.WantFired("t", a)
			r.WantTimedOut("w", w.Deadline)
		}
	})
}

func newsInOrder(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.DriveFor(time.Hour)
	first, second := d.Parked("y"), d.Parked("x")
	start := h.Now(t)
	var batch []rendezvous.Record
	for i := range 130 {
		batch = append(batch, r.TimedAt(fmt.Sprintf("t%03d", i), start.Add(time.Duration(129-i)*time.Microsecond)))
	}
	d.Append(batch...)
	h.Advance(time.Second)
	seen := d.Seen
	got := must(f.Tenant.Suspend(ctx, r.ID, d.Epoch, seen, false))(t, "suspend")
	eq(t, "outcome", got.Outcome, store.SuspendContinue)
	eq(t, "records", len(got.Records), rendezvous.MaxCollect)
	eq(t, "more", got.More, true)
	WantAnswerOf(t, got.Records[0], first)
	WantAnswerOf(t, got.Records[1], second)
	ids := func(records []rendezvous.Record) (ids []string) {
		for _, rec := range records {
			var x rendezvous.TimerFiredData
			done(t, "decode", rendezvous.DecodeData(rec, &x))
			ids = append(ids, x.TimerID)
		}
		return ids
	}
	var want []string
	for i := range 130 {
		want = append(want, fmt.Sprintf("t%03d", 129-i))
	}
	eq(t, "timers in the order of their instants", ids(got.Records[2:]), want[:98])
	for _, x := range r.Timers() {
		if x.DueAt.After(h.Now(t)) {
			t.Fatalf("timer %s that was left over is due at %s, want now or before %s", x.TimerID, x.DueAt, h.Now(t))
		}
	}
	eq(t, "left over", r.Describe().LiveTimers, 32)
	rest := must(f.Tenant.Suspend(ctx, r.ID, d.Epoch, got.Head, false))(t, "suspend again")
	eq(t, "the rest", ids(rest.Records), want[98:])
	eq(t, "more", rest.More, false)
	eq(t, "a third", must(f.Tenant.Suspend(ctx, r.ID, d.Epoch, rest.Head, false))(t, "suspend").Outcome, store.SuspendSuspended)
	r.WantTimers()
	eq(t, "fires", countKind(r, rendezvous.TimerFired), 130)
}

func reclaimedInBounds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	d := r.Drive()
	answer := d.Parked("w")
	d.Append(r.arms("t", 150, h.Now(t))...)
	h.Advance(leaseEnd)
	got := h.SweepLeases(t)
	eq(t, "reclaimed", fmt.Sprint(len(got), got[0].Outcome, got[0].Records), fmt.Sprint(1, store.ReclaimReclaimed, rendezvous.MaxCollect))
	r.WantAnswered("w", answer)
	eq(t, "fires", countKind(r, rendezvous.TimerFired), 99)
	eq(t, "the next page", len(p.Fire(t)), 51)
	r.WantTimers()
	// Several runs in one call: each has its own bounds.
	var many []*Flow
	for range 8 {
		r := f.Start()
		d := r.Drive()
		d.Append(r.arms("t", 120, h.Now(t))...)
		many = append(many, r)
	}
	h.Advance(leaseEnd)
	records := 0
	for _, x := range h.SweepLeases(t) {
		records += x.Records
	}
	eq(t, "records", records, 8*rendezvous.MaxCollect)
	eq(t, "the next page", len(p.Fire(t)), 8*20)
	for _, r := range many {
		eq(t, "fires", countKind(r, rendezvous.TimerFired), 120)
	}
}

func pausedTimers(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	r.Drive().Suspend()
	a, b := r.ArmIn("a", time.Second), r.ArmIn("b", 2*time.Second)
	w := r.WaitsUntil(h.In(t, time.Second), "w", "paid", K("order", "1"))
	r.Pause()
	for range 2 {
		h.Advance(time.Second)
		page := p.Page(t, 0)
		eq(t, "notices", page.Notices.Resume, nil)
		for _, x := range page.Fires {
			eq(t, "outcome", x.Outcome, store.FireFired)
		}
	}
	r.WantFired("a", a)
	r.WantFired("b", b)
	r.WantTimedOut("w", w.Deadline)
	h.Advance(time.Hour)
	h.wantNoNotice(f, "while paused")
	eq(t, "notices of the resume", len(r.Resume().Notices.Resume), 1)
}

func pausedBehindDue(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.DriveFor(time.Hour)
	d.ArmIn("t", time.Second)
	r.Pause()
	h.Advance(time.Second)
	got := d.Suspend()
	eq(t, "suspend", got.Outcome, store.SuspendContinue)
	eq(t, "records", len(got.Records), 1)
	got = d.Suspend()
	eq(t, "suspend again", got.Outcome, store.SuspendPaused)
	r.WantKinds(rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.RunPaused)
	s := f.Start()
	e := s.Drive()
	e.ArmIn("t", time.Second)
	s.Pause()
	h.Advance(time.Second)
	e.Release()
	s.WantKinds(rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.RunPaused)
}

func suspendedAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for range h.Rounds(t) {
		r := f.Start()
		d := r.DriveFor(time.Hour)
		a := d.ArmIn("t", time.Millisecond)
		h.Advance(time.Millisecond)
		p.Own(t)
		var got store.Suspended
		var page store.FiredPage
		var errs [2]error
		seen := d.Seen
		Race(t,
			func() { got, errs[0] = f.Tenant.Suspend(ctx, r.ID, d.Epoch, seen, false) },
			func() { page, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "suspend", errs[0])
		done(t, "fire", errs[1])
		told := got.Outcome == store.SuspendContinue
		if !told {
			t.Fatalf("suspend with a due timer: %s", got.Outcome) // a page parks it, or finds it gone
		}
		for _, x := range page.Fires {
			if x.Outcome != store.FireParked {
				t.Fatalf("a page over a leased run: %s", x.Outcome)
			}
		}
		r.WantFired("t", a)
		r.WantTimers()
		seen = got.Head
		eq(t, "suspend again", must(f.Tenant.Suspend(ctx, r.ID, d.Epoch, seen, false))(t, "suspend").Outcome, store.SuspendSuspended)
		r.Conclude(rendezvous.StatusCompleted)
	}
}

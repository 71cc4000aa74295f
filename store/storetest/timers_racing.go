package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersRacing is what two callers do to one timer at once. Pages against each other are in timers_holding.go, deadlines in deadlines_waits.go.
var timersRacing = []Case{
	{Name: "TM-32 cancel and fire at once: exactly one is recorded, and both callers learn which", Run: cancelAndFire},
	{Name: "TM-32 cancel and the fire of a held timer at once", Run: cancelAndFireHeld},
	{Name: "TM-32 an appended cancel and a page at once", Run: appendedCancelAndFire},
	{Name: "TM-17 re-arming and fire at once: the old arming fires or is over, the new one stands", Run: rearmAndFire},
	{Name: "TM-7 retire and re-arming at once: the new arming stands", Run: retireAndRearm},
	{Name: "TM-12 armings at once never pass the limit", Run: armsAtOnce},
	{Name: "TM-31 claims, pages and releases at once fire each timer once", Run: holdsAtOnce},
}

func cancelAndFire(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	won := map[store.CancelTimerOutcome]int{}
	for range h.Rounds(t) {
		a := r.ArmIn("t", 0)
		h.Advance(time.Microsecond)
		p.Own(t)
		var cancel store.CancelledTimer
		var page store.FiredPage
		var errs [2]error
		Race(t,
			func() { cancel, errs[0] = f.CancelTimer(ctx, r.ID, 0, "t", ID("batch"), "", now) },
			func() { page, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "cancel", errs[0])
		done(t, "fire", errs[1])
		if cancel.Outcome == store.TimerNotArmed {
			t.Fatal("a cancel of an armed timer found none")
		}
		won[cancel.Outcome]++
		rec := r.History()[a.ArmedSeq:]
		if len(rec) != 1 || rec[0].Seq != cancel.Seq {
			t.Fatalf("behind the arming at %d: %v; the cancel says %s at %d", a.ArmedSeq, rec, cancel.Outcome, cancel.Seq)
		}
		switch rec[0].Kind {
		case rendezvous.TimerFired:
			eq(t, "the cancel", cancel.Outcome, store.TimerFired)
			eq(t, "seq the page tells", one(t, "the page", page.Fires, store.FireFired).Seq, cancel.Seq)
		case rendezvous.TimerCancelled:
			eq(t, "the cancel", cancel.Outcome, store.TimerCancelled)
			eq(t, "the page", len(page.Fires), 0)
		default:
			t.Fatalf("recorded %s", rec[0].Kind)
		}
		r.WantTimers()
	}
	t.Logf("%v", won)
}

func cancelAndFireHeld(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	for range h.Rounds(t) {
		a := r.ArmIn("t", 0)
		p.Own(t)
		held := must(p.ClaimDueTimers(ctx, p.epochs(r), time.Minute, 0))(t, "claim")
		eq(t, "claimed", len(held), 1)
		var cancel store.CancelledTimer
		var fire store.Fire
		var errs [2]error
		Race(t,
			func() { cancel, errs[0] = f.CancelTimer(ctx, r.ID, 0, "t", ID("batch"), "", now) },
			func() { fire, _, errs[1] = p.FireTimer(ctx, held[0]) },
		)
		done(t, "cancel", errs[0])
		done(t, "fire", errs[1])
		eq(t, "records", r.Head(), a.ArmedSeq+1)
		if fire.Outcome == store.FireFired {
			eq(t, "the cancel", cancel, store.CancelledTimer{Outcome: store.TimerFired, Seq: fire.Seq})
		} else {
			eq(t, "the fire", fire.Outcome, store.FireSuperseded)
			eq(t, "the cancel", cancel, store.CancelledTimer{Outcome: store.TimerCancelled, Seq: a.ArmedSeq + 1})
		}
	}
	h.noRows(t)
}

func appendedCancelAndFire(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	for range h.Rounds(t) {
		a := r.ArmIn("t", 0)
		h.Advance(time.Microsecond)
		p.Own(t)
		batch := store.Append{RunID: r.ID, ExpectedSeq: a.ArmedSeq, BatchID: ID("batch"), Records: recs(r.CancelledAs("t", a.ArmedSeq))}
		var page store.FiredPage
		var errs [2]error
		Race(t,
			func() { _, errs[0] = f.Append(ctx, batch, now) },
			func() { page, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "fire", errs[1])
		eq(t, "records", r.Head(), a.ArmedSeq+1)
		if errs[0] == nil {
			eq(t, "the page", len(page.Fires), 0)
		} else {
			code(t, "the append", errs[0], rendezvous.CodeConflict, "what", "head")
			one(t, "the page", page.Fires, store.FireFired)
			batch.ExpectedSeq, batch.BatchID = r.Head(), ID("batch")
			_, err := f.Append(ctx, batch, now)
			code(t, "the append at the new head", err, rendezvous.CodeConflict, "current", "fired", "seq", r.Head())
		}
		r.WantTimers()
	}
}

func rearmAndFire(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	hour := time.Hour
	for range h.Rounds(t) {
		a := r.ArmIn("t", 0)
		before := len(r.fired("t"))
		h.Advance(time.Microsecond)
		p.Own(t)
		var armed store.Armed
		var errs [2]error
		Race(t,
			func() {
				armed, errs[0] = f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", After: &hour, BatchID: ID("batch")}, now)
			},
			func() { _, errs[1] = p.FireDueTimers(ctx, p.Owned, 0) },
		)
		done(t, "re-arm", errs[0])
		done(t, "fire", errs[1])
		fired := r.fired("t")[before:]
		switch len(fired) {
		case 0:
			eq(t, "armed right behind", armed.ArmedSeq, a.ArmedSeq+1)
		case 1:
			eq(t, "the old arming fired", fired[0].ArmedSeq, a.ArmedSeq)
		default:
			t.Fatalf("fired %d times", len(fired))
		}
		r.WantArmed("t", armed.Arming)
		r.WantTimers("t")
		eq(t, "left for a page", len(p.Fire(t)), 0)
	}
}

func retireAndRearm(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for range h.Rounds(t) {
		a := r.Arm("t", endOfTime)
		var armed store.Armed
		var retired store.ScheduleOutcome
		var errs [2]error
		Race(t,
			func() {
				armed, errs[0] = f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: endOfTime, BatchID: ID("batch")}, now)
			},
			func() { retired, errs[1] = f.RetireTimer(ctx, r.WorkflowID, "t", a) },
		)
		done(t, "re-arm", errs[0])
		done(t, "retire", errs[1])
		if retired != store.ScheduleRetired && retired != store.ScheduleSuperseded {
			t.Fatalf("retired: %s", retired)
		}
		r.WantArmed("t", armed.Arming)
	}
}

func armsAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.arms("a", 500, endOfTime)...)
	r.AppendFree(r.arms("b", 497, endOfTime)...)
	var errs [8]error
	var arms []func()
	for i := range errs {
		arms = append(arms, func() {
			_, errs[i] = f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: ID("timer"), FireAt: endOfTime, BatchID: ID("batch")}, now)
		})
	}
	Race(t, arms...)
	went := 0
	for _, err := range errs {
		if err == nil {
			went++
		} else {
			code(t, "one too many", err, rendezvous.CodeTooLarge)
		}
	}
	eq(t, "armed", went, 3)
	eq(t, "live timers", r.Describe().LiveTimers, 1000)
	eq(t, "rows", len(r.Timers()), 1000)
}

func holdsAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for range max(h.Rounds(t)/4, 2) {
		var flows []*Flow
		for range 6 {
			r := f.Start()
			r.AppendFree(r.TimedIn("a", 0), r.TimedIn("b", 0))
			r.WaitsUntil(h.In(t, time.Microsecond), "w", "paid", K("order", r.ID))
			flows = append(flows, r)
		}
		h.Advance(time.Millisecond)
		p.Own(t)
		var errs [4]error
		worker := func(i int) func() {
			return func() {
				held, err := p.ClaimDueTimers(ctx, p.Owned, time.Minute, 5)
				for n, x := range held {
					if err != nil {
						break
					}
					if n%2 == 0 {
						_, _, err = p.FireTimer(ctx, x)
					} else {
						err = p.ReleaseTimers(ctx, []int64{x.Token})
					}
				}
				errs[i] = err
			}
		}
		Race(t, worker(0), worker(1),
			func() { _, errs[2] = p.FireDueTimers(ctx, p.Owned, 7) },
			func() { _, errs[3] = p.FireDueTimers(ctx, p.Owned, 7) },
		)
		for _, err := range errs {
			done(t, "a worker", err)
		}
		for pages := 0; len(h.allTimers(t)) > 0; pages++ {
			p.Fire(t)
			if pages > 10 {
				t.Fatalf("left for ever: %+v", h.allTimers(t))
			}
		}
		for _, r := range flows {
			eq(t, "firings", len(r.fired("a"))+len(r.fired("b"))+len(r.closings("w")), 3)
			r.WantTimers()
		}
	}
}

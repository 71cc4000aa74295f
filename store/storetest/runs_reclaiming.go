package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsReclaiming is runs.md section 8, "Driving": what happens to a run whose driver died.
var runsReclaiming = []Case{
	{Name: "RN-37 a killed driver's mail is recorded, its run woken, and another completes it", Run: killedWithMail},
	{Name: "RN-37 only a lease exactly as it was seen is reclaimed", Run: reclaimAsSeen},
	{Name: "RN-37 a reclaim and its driver at once: one of them", Run: reclaimAndDriver},
	{Name: "RN-37 a reclaim that fails at any step is done whole or not at all", Run: brokenReclaim},
	{Name: "RN-38 a run that kills its drivers is noticed later and later, and is reported as stuck", Run: killsItsDrivers},
	{Name: "RN-38 whatever a driver moves the head by ends its count of reclaims", Run: headMoves},
	{Name: "RN-39 an unreadable lease is corrupt for its run alone, and the page goes on", Run: unreadableLease},
	{Name: "RN-60 the first reclaim is noticed without a delay, the second in a row after 2 s", Run: firstReclaims},
}

func killedWithMail(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		r := f.Start()
		d := r.Drive()
		e := d.Parked("parked")
		h.Advance(lease - time.Microsecond)
		eq(t, "reclaimed while it lives", h.SweepLeases(t), nil)
		h.Advance(time.Microsecond)
		got := h.SweepLeases(t)
		eq(t, "reclaimed", len(got), 1)
		eq(t, "outcome, records, resume and count", fmt.Sprint(got[0].Outcome, got[0].Records, got[0].Resume, got[0].Reclaims),
			fmt.Sprint(store.ReclaimReclaimed, 1, true, 1))
		r.WantAnswered("parked", e)
		r.WantFree()
		r.wantNotice(got[0].Notices.Resume, rendezvous.CauseLeaseExpired, r.Head())
		eq(t, "woken runs", h.marks(f), 1)
		other := r.Finish()
		eq(t, "what the other driver has read", other.Seen, int64(3))
		eq(t, "woken runs", h.marks(f), 0)
	}
}

func reclaimAsSeen(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	r := f.Start()
	d := r.Drive()
	item := func(f *Fix, workflow string, epoch int64, left time.Duration) store.ReclaimItem {
		return store.ReclaimItem{Tenant: f.Name(), WorkflowID: workflow, Epoch: epoch, ExpiresAt: h.Now(t).Add(left)}
	}
	unmoved := func(what string, want store.ReclaimOutcome, i store.ReclaimItem) {
		t.Helper()
		before := r.outlook()
		got := must(h.Store.ReclaimRun(ctx, []store.ReclaimItem{i}))(t, "reclaim")
		eq(t, what, got, []store.Reclaimed{{Outcome: want}})
		eq(t, "the workflow after "+what, r.outlook(), before)
	}
	live := item(f, r.WorkflowID, d.Epoch, lease)
	unmoved("a live lease", store.ReclaimChanged, live)
	h.Advance(lease)
	unmoved("another epoch", store.ReclaimChanged, item(f, r.WorkflowID, d.Epoch+1, 0))
	unmoved("another expiry", store.ReclaimChanged, item(f, r.WorkflowID, d.Epoch, -time.Microsecond))
	unmoved("another tenant's workflow", store.ReclaimChanged, item(g, r.WorkflowID, d.Epoch, 0))
	unmoved("nobody's workflow", store.ReclaimChanged, item(f, ID("workflow"), d.Epoch, 0))
	got := must(h.Store.ReclaimRun(ctx, []store.ReclaimItem{live, live}))(t, "reclaim twice in a batch")
	eq(t, "twice in a batch", []store.ReclaimOutcome{got[0].Outcome, got[1].Outcome}, []store.ReclaimOutcome{store.ReclaimReclaimed, store.ReclaimChanged})
	unmoved("a reclaimed lease", store.ReclaimChanged, live)

	d = r.Drive()
	d.Release()
	unmoved("a released lease", store.ReclaimChanged, item(f, r.WorkflowID, d.Epoch, lease))
	d = r.Drive()
	d.Conclude(rendezvous.StatusCompleted)
	unmoved("an ended run", store.ReclaimClosed, item(f, r.WorkflowID, d.Epoch, lease))
	got = must(h.Store.ReclaimRun(ctx, []store.ReclaimItem{{Tenant: "no tenant", WorkflowID: "w", Epoch: 1}, {Tenant: "acme", WorkflowID: "w"}, live}))(t, "reclaim")
	code(t, "an item of no tenant", got[0].Err, rendezvous.CodeInvalid)
	code(t, "an item without an epoch", got[1].Err, rendezvous.CodeInvalid)
	eq(t, "the item behind them", got[2].Outcome, store.ReclaimClosed)
	_, err := h.Store.ReclaimRun(ctx, make([]store.ReclaimItem, rendezvous.MaxBatchItems+1))
	code(t, "a batch over the limit", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxBatchItems)
}

func reclaimAndDriver(t *testing.T, h *Harness) {
	counts := map[store.ReclaimOutcome]int{}
	for range h.Rounds(t) {
		f := h.Fix(t)
		r := f.Start()
		late := r.Drive()
		e := late.Parked("parked")
		h.Advance(lease)
		item := store.ReclaimItem{Tenant: f.Name(), WorkflowID: r.WorkflowID, Epoch: late.Epoch, ExpiresAt: h.Now(t)}
		var reclaimed []store.Reclaimed
		var taken store.Lease
		var suspended store.Suspended
		var errs [3]error
		Race(t,
			func() { reclaimed, errs[0] = h.Store.ReclaimRun(ctx, []store.ReclaimItem{item}) },
			func() { taken, errs[1] = r.Acquire(ID("pod"), ID("acquire")) },
			func() { suspended, errs[2] = f.Suspend(ctx, r.ID, late.Epoch, late.Seen, false) },
		)
		done(t, "reclaim", errs[0])
		done(t, "acquire", errs[1])
		eq(t, "epoch of the next driver", taken.Epoch, late.Epoch+1)
		counts[reclaimed[0].Outcome]++
		shown := 0 // to the late driver, when it came before both
		if errs[2] != nil {
			code(t, "the late driver", errs[2], rendezvous.CodeFenced)
		} else {
			eq(t, "what the late driver is told", suspended.Outcome, store.SuspendContinue)
			shown = len(suspended.Records)
		}
		eq(t, "reclaims", r.Describe().Reclaims, 1) // by whichever of the two
		collected := must(f.Collect(ctx, r.ID, taken.Epoch))(t, "collect")
		if shown > 1 || reclaimed[0].Records > 1 || shown+reclaimed[0].Records+len(collected.Records) != 1 {
			t.Fatalf("the answer was recorded %d times: shown %d, reclaimed %d, collected %d", shown+reclaimed[0].Records+len(collected.Records), shown,
				reclaimed[0].Records, len(collected.Records))
		}
		r.WantAnswered("parked", e)
		must(f.ReleaseLease(ctx, r.ID, taken.Epoch))(t, "release")
		r.Conclude(rendezvous.StatusCompleted)
	}
	t.Logf("came to %v", counts)
}

func brokenReclaim(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "reclaim_run", func() (func() error, func(error, bool)) {
		r, asked := f.Start(), f.Start()
		d, p := r.Drive(), asked.Drive()
		e := d.Parked("parked")
		asked.Pause()
		h.Advance(lease)
		items := []store.ReclaimItem{
			{Tenant: f.Name(), WorkflowID: r.WorkflowID, Epoch: d.Epoch, ExpiresAt: h.Now(t)},
			{Tenant: f.Name(), WorkflowID: asked.WorkflowID, Epoch: p.Epoch, ExpiresAt: h.Now(t)},
		}
		before, beside, woken := r.outlook(), asked.outlook(), h.marks(f)
		attempt := func() error { _, err := h.Store.ReclaimRun(ctx, items); return err }
		return attempt, func(err error, committed bool) {
			want := store.ReclaimChanged
			if !committed {
				eq(t, "the workflow after a reclaim that failed", r.outlook(), before)
				eq(t, "the other after a reclaim that failed", asked.outlook(), beside)
				eq(t, "woken runs", h.marks(f), woken)
				want = store.ReclaimReclaimed
			} else {
				code(t, "a reclaim whose answer was lost", err, rendezvous.CodeCommitUnknown)
			}
			for _, got := range must(h.Store.ReclaimRun(ctx, items))(t, "reclaim again") {
				eq(t, "reclaimed again", got.Outcome, want)
			}
			r.WantFree()
			r.WantAnswered("parked", e)
			eq(t, "status of the other", asked.Describe().Status, rendezvous.StatusPaused)
			r.Revoke()
			asked.Revoke()
		}
	})
}

// die lets a driver take the run and die of it, and answers the reclaim that follows.
func (r *Flow) die() store.Reclaimed {
	r.F.T.Helper()
	r.DriveFor(rendezvous.MinLease)
	r.F.H.Advance(rendezvous.MinLease)
	got := r.F.H.SweepLeases(r.F.T)
	eq(r.F.T, "reclaimed", len(got), 1)
	eq(r.F.T, "outcome", got[0].Outcome, store.ReclaimReclaimed)
	return got[0]
}

func killsItsDrivers(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for n := 1; n <= rendezvous.StuckReclaims+2; n++ {
		got := r.die()
		eq(t, "reclaims in a row", got.Reclaims, n)
		eq(t, "reclaims in the row", r.Describe().Reclaims, n)
		eq(t, "noticed at once", got.Resume, n == 1)
		eq(t, "notices", len(got.Notices.Resume) == 1, n == 1)
		pause := 10 * time.Second // of the repetition
		if n > 1 {
			pause = min(10*time.Minute, time.Second<<(n-1))
		}
		h.Advance(pause - time.Microsecond)
		h.wantNoNotice(f, fmt.Sprintf("before %s are over after reclaim %d", pause, n))
		h.Advance(time.Microsecond)
		r.wantNotice(h.SweepWoken(t), rendezvous.CauseLeaseExpired, 1)
	}
	// Taking over an abandoned lease is a reclaim, too.
	r.DriveFor(rendezvous.MinLease)
	h.Advance(rendezvous.MinLease)
	d := r.Drive()
	eq(t, "reclaims after a takeover", r.Describe().Reclaims, rendezvous.StuckReclaims+3)
	d.Append()
	eq(t, "reclaims after an append of nothing", r.Describe().Reclaims, rendezvous.StuckReclaims+3)
	d.Append(r.Noted("moves"))
	eq(t, "reclaims after an append", r.Describe().Reclaims, 0)
	d.Release()
	got := r.die()
	eq(t, "reclaims and notice of the next in a row", fmt.Sprint(got.Reclaims, got.Resume), fmt.Sprint(1, true))
	r.AppendFree(r.Noted("a bystander's"))
	eq(t, "reclaims after an append without a lease", r.Describe().Reclaims, 1)
}

func headMoves(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for what, move := range map[string]func(d *Driver){
		"an append":               func(d *Driver) { d.Append(d.Noted("n")) },
		"a registration":          func(d *Driver) { d.Waits("w", "paid", K("order", d.ID)) },
		"a batch of them":         func(d *Driver) { d.parks(1, 0) },
		"a registration answered": func(d *Driver) { f.PutNew("paid", K("early", d.ID)); d.Register(d.Wait("w", "paid", K("early", d.ID))) },
		"a withdrawal": func(d *Driver) {
			must(f.Unsubscribe(ctx, d.WaitID("before"), d.Epoch, "", now))(t, "withdraw")
		},
		"the withdrawal of all": func(d *Driver) {
			_, _, err := f.UnsubscribeRun(ctx, d.ID, d.Epoch, nil, now)
			done(t, "withdraw all", err)
		},
		"a collected answer": func(d *Driver) {
			f.Send(EventOf("paid", K("before", d.ID)))
			eq(t, "collected", len(d.Collect().Records), 1)
		},
		"an answer shown by a suspend": func(d *Driver) {
			f.Send(EventOf("paid", K("before", d.ID)))
			eq(t, "suspend", d.Suspend().Outcome, store.SuspendContinue)
		},
		"a continuation": func(d *Driver) {
			c := store.Continuation{RunID: d.ID, Epoch: d.Epoch, ExpectedSeq: d.Head(), BatchID: ID("batch")}
			must(f.ContinueAsNew(ctx, c, now))(t, "continue")
		},
	} {
		r := f.Start()
		r.Waits("before", "paid", K("before", r.ID))
		r.die()
		r.die()
		d := r.Drive()
		eq(t, "reclaims before "+what, r.Describe().Reclaims, 2)
		move(d)
		eq(t, "reclaims after "+what, r.Describe().Reclaims, 0)
		must(f.CancelRun(ctx, r.Describe().RunID, kim, "", true, now))(t, "cancel")
	}
}

func unreadableLease(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	runs := []*Flow{f.Start(), f.Start(), g.Start(), f.Start()}
	for _, r := range runs {
		r.Waits("w", "paid", K("order", r.ID))
		r.DriveFor(rendezvous.MinLease)
		h.Advance(time.Millisecond)
	}
	bad := runs[1]
	verbs := append(append(bad.runVerbs(), bad.withdrawals(0, "w")...),
		named{"DescribeWorkflow", func() error { _, err := f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: bad.ID}); return err }},
		named{"ReleaseLease", func() error { _, err := f.ReleaseLease(ctx, bad.ID, 1); return err }},
		named{"CancelRun", func() error { _, err := f.CancelRun(ctx, bad.ID, kim, "", true, now); return err }},
	)
	h.Advance(rendezvous.MinLease)
	done(t, "damage a lease", h.Damage.Lease(f.Name(), bad.WorkflowID))
	for _, limit := range []int{0, 1} {
		var all []store.AbandonedRun
		for cursor := ""; ; {
			rows, next, err := h.Store.AbandonedRuns(ctx, limit, cursor)
			done(t, "list abandoned runs", err)
			all = append(all, rows...)
			if cursor = next; cursor == "" {
				break
			}
		}
		eq(t, "abandoned runs", len(all), 4)
		for i, a := range all {
			eq(t, "place in the list", fmt.Sprint(a.Tenant, a.WorkflowID), fmt.Sprint(runs[i].F.Name(), runs[i].WorkflowID))
			if runs[i] == bad {
				code(t, "the damaged one", a.Corrupt, rendezvous.CodeCorrupt)
			} else {
				done(t, "another", a.Corrupt)
			}
		}
	}
	var items []store.ReclaimItem
	for _, r := range runs {
		row := store.ReclaimItem{Tenant: r.F.Name(), WorkflowID: r.WorkflowID, Epoch: 1}
		rows, _, err := h.Store.AbandonedRuns(ctx, 0, "")
		done(t, "list abandoned runs", err)
		i := slices.IndexFunc(rows, func(a store.AbandonedRun) bool { return a.WorkflowID == r.WorkflowID })
		row.ExpiresAt = rows[i].ExpiresAt
		items = append(items, row)
	}
	got := must(h.Store.ReclaimRun(ctx, items))(t, "reclaim all of them")
	for i, r := range runs {
		if r == bad {
			code(t, "reclaiming the damaged one", got[i].Err, rendezvous.CodeCorrupt)
			continue
		}
		eq(t, "reclaiming another", got[i].Outcome, store.ReclaimReclaimed)
		e := EventOf("paid", K("order", r.ID))
		r.F.Send(e)
		r.WantAnswered("w", e)
		r.Finish()
	}
	for _, v := range verbs {
		if v.name != "DeliverTo" { // an event that finds no wait of the run needs no lease
			code(t, v.name+" for the damaged one", v.call(), rendezvous.CodeCorrupt)
		}
	}
	page := must(f.QueryWorkflows(ctx, store.WorkflowFilter{}, 0, ""))(t, "list workflows")
	eq(t, "workflows listed", len(page.Workflows), 3)
	for _, w := range page.Workflows {
		eq(t, "marked as corrupt", w.Corrupt != nil, w.WorkflowID == bad.WorkflowID)
	}
	h.Advance(time.Hour)
	eq(t, "notices due, with a damaged run among the woken", h.SweepWoken(t), nil)
}

func firstReclaims(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	first := r.die()
	eq(t, "resume", first.Resume, true)
	r.wantNotice(first.Notices.Resume, rendezvous.CauseLeaseExpired, 1)
	second := r.die()
	eq(t, "resume", second.Resume, false)
	eq(t, "notices", second.Notices, store.Notices{})
	h.wantNoNotice(f, "right behind the second reclaim")
	h.Advance(2*time.Second - time.Microsecond)
	h.wantNoNotice(f, "before 2 s are over")
	h.Advance(time.Microsecond)
	r.wantNotice(h.SweepWoken(t), rendezvous.CauseLeaseExpired, 1)
	r.Finish()
}

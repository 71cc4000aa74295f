package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsPausing is runs.md section 8, "Pausing, cancelling". Push is not built, timers are in timers_leased.go. RN-58 and RN-60 are in runs_driving.go and runs_reclaiming.go.
var runsPausing = []Case{
	{Name: "RN-51 a paused run is not driven, its events are answered, and it is noticed once resumed", Run: pausedRun},
	{Name: "RN-51 pausing again says who paused, resuming again that nothing is paused", Run: pauseAgain},
	{Name: "RN-52 the pause of a leased run refuses new work at once and is written when the lease goes", Run: pauseOfLeased},
	{Name: "RN-52 a requested pause is applied however the lease goes, or taken back", Run: pauseApplied},
	{Name: "RN-52 a pause and its driver's work at once: no new work behind the request", Run: pauseAndDriver},
	{Name: "RN-53 paused, killed, restarted: still paused; then it completes", Run: pausedOverRestart, Durable: true},
	{Name: "RN-57 a pause by the driver, or over a lease that ran out, ends the epoch in its transaction", Run: pauseEndsEpoch},
	{Name: "RN-59 a wait registered without a lease wakes nobody; its answer does", Run: registrationWakesNobody},
}

func pausedRun(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"))
		r.Drive().Suspend()
		before := r.Head()
		got := r.Pause()
		eq(t, "pause", got, store.Paused{Outcome: store.PausePaused, Seq: before + 1})
		rec := r.History()[before]
		eq(t, "the record", fmt.Sprint(rec.Kind, *rec.Operator, string(rec.Data)),
			fmt.Sprint(rendezvous.RunPaused, *kim, string(rendezvous.EncodeData(rendezvous.ReasonData{Reason: "lunch"}))))
		r.unmoved("driving a paused run", rendezvous.CodeConflict, func() error { _, err := r.Acquire("pod", ID("acquire")); return err }, "what", "paused")
		e := EventOf("paid", K("order", "1"))
		sent := f.Send(e)
		eq(t, "delivered to a paused run", len(sent.Made(store.OfferDelivered)), 1)
		eq(t, "resume due", sent.Made(store.OfferDelivered)[0].Resume, false)
		eq(t, "notices", sent.Resume, nil)
		r.WantAnswered("w", e)
		repeat := f.OfferEvent(e.EventID) // a lost notice is repeated
		eq(t, "the offer again", repeat.Outcome, store.OfferAlreadyDelivered)
		h.Advance(time.Hour)
		h.wantNoNotice(f, "of a paused run")
		eq(t, "status", r.Describe().Status, rendezvous.StatusPaused)

		resumed := r.Resume()
		eq(t, "resume", fmt.Sprint(resumed.Outcome, resumed.Seq), fmt.Sprint(store.PauseResumed, r.Head()))
		r.wantNotice(resumed.Notices.Resume, rendezvous.CauseResumed, r.Head())
		h.wantNoNotice(f, "right behind the resume")
		h.Advance(10*time.Second - time.Microsecond)
		h.wantNoNotice(f, "before 10 s are over")
		h.Advance(time.Microsecond)
		r.wantNotice(h.SweepWoken(t), rendezvous.CauseResumed, r.Head())
		h.wantNoNotice(f, "right behind one")
		r.Finish()
	}
}

func pauseAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	_, err := f.PauseRun(ctx, "", nil, "", now)
	code(t, "a pause of no run", err, rendezvous.CodeInvalid, "field", "run_id")
	r := f.Start()
	r.Pause()
	since := h.Now(t)
	h.Advance(time.Minute)
	before := r.outlook()
	again := must(f.PauseRun(ctx, r.ID, lee, "tea", now))(t, "pause again")
	eq(t, "pause again", again, store.Paused{Outcome: store.PauseAlreadyPaused, Operator: kim, Since: since})
	eq(t, "the workflow", r.outlook(), before)
	r.Resume()
	before = r.outlook()
	eq(t, "resume again", r.Resume(), store.Paused{Outcome: store.PauseNotPaused})
	eq(t, "the workflow", r.outlook(), before)
	eq(t, "paused by another now", must(f.PauseRun(ctx, r.ID, nil, "", now))(t, "pause").Outcome, store.PausePaused)
	eq(t, "who paused", must(f.PauseRun(ctx, r.ID, kim, "", now))(t, "pause again").Operator, nil)
}

func pauseOfLeased(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Append(r.Begun("a"), r.Begun("b"))
	d.Waits("known", "paid", K("order", "1"))
	d.Waits("given up", "paid", K("order", "2"))
	before := r.History()
	eq(t, "pause", r.Pause(), store.Paused{Outcome: store.PauseRequested, Operator: kim})
	eq(t, "pause again by another", must(f.PauseRun(ctx, r.ID, lee, "tea", now))(t, "pause"), store.Paused{Outcome: store.PauseRequested, Operator: kim})
	eq(t, "history", r.History(), before)
	row := r.Describe()
	want := []rendezvous.Request{{Kind: rendezvous.RequestPause, Operator: kim, Reason: "lunch", At: h.Now(t)}}
	eq(t, "status and owner", fmt.Sprint(row.Status, row.LeaseOwner), fmt.Sprint(rendezvous.StatusRunning, d.Owner))
	eq(t, "requests of the row", row.Requests, want)
	eq(t, "requests told at a renewal", must(f.RenewLease(ctx, r.ID, d.Owner, d.Epoch, lease))(t, "renew").Requests, want)
	next := ID("run")
	append1 := func(records ...rendezvous.Record) func() error {
		return func() error { _, err := f.Append(ctx, d.Batch(records...), now); return err }
	}
	for _, v := range []named{
		{"effect.started", append1(r.Begun("c"))},
		{"effect.started behind a closing", append1(r.Done("a"), r.Begun("c"))},
		{"wait.registered", append1(r.Waited(r.Wait("w", "paid")))},
		{"run.continued", append1(r.Done("a"), r.Done("b"), r.ContinuedTo(next), r.StartedAfter(next))},
		{"RegisterWait", func() error {
			_, err := f.RegisterWait(ctx, store.Registration{Wait: r.Wait("w", "paid"), Epoch: d.Epoch}, now)
			return err
		}},
		{"Subscribe", func() error {
			_, err := f.Subscribe(ctx, store.Registration{Wait: r.Wait("w", "paid"), Epoch: d.Epoch}, now)
			return err
		}},
		{"ContinueAsNew", func() error {
			_, err := f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, Epoch: d.Epoch, ExpectedSeq: d.Seen, BatchID: ID("batch")}, now)
			return err
		}},
	} {
		r.unmoved(v.name+" while a pause is requested", rendezvous.CodeConflict, v.call, "what", "pausing")
	}
	eq(t, "requests told at an append", d.Append(r.Done("a"), r.Failed("b", true), r.Noted("n"), r.Withdrawn("given up")).Requests, want)
	eq(t, "a wait that is known", d.Register(r.Wait("known", "paid", K("order", "1"))).Outcome, store.RegisterWaiting)
	e := EventOf("paid", K("order", "1"))
	f.Send(e)
	shown := d.Suspend()
	eq(t, "suspend with an answer", fmt.Sprint(shown.Outcome, len(shown.Records)), fmt.Sprint(store.SuspendContinue, 1))
	eq(t, "requests told at a suspend", shown.Requests, want)
	head := d.Seen
	got := d.Suspend()
	eq(t, "suspend with nothing new", got, store.Suspended{Outcome: store.SuspendPaused, Seq: head + 1, Head: head + 1})
	rec := r.History()[head]
	eq(t, "the record, in its asker's name", fmt.Sprint(rec.Kind, *rec.Operator, string(rec.Data)), fmt.Sprint(rendezvous.RunPaused, *kim, `{"reason":"lunch"}`))
	row = r.Describe()
	eq(t, "status and owner", fmt.Sprint(row.Status, row.LeaseOwner), fmt.Sprint(rendezvous.StatusPaused, ""))
	eq(t, "requests", row.Requests, nil)
	eq(t, "woken runs", h.marks(f), 0)
}

func pauseApplied(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for what, end := range map[string]func(d *Driver){
		"released": func(d *Driver) {
			got := d.Release()
			eq(t, "records of the release", len(got.Records), 1)
			eq(t, "the record of the release", got.Records[0].Kind, rendezvous.RunPaused)
			eq(t, "notices of the release", got.Notices, store.Notices{})
		},
		"reclaimed": func(*Driver) {
			h.Advance(leaseEnd)
			got := h.SweepLeases(t)
			eq(t, "paused, resume", fmt.Sprint(got[0].Paused, got[0].Resume), fmt.Sprint(true, false))
			eq(t, "notices of the reclaim", got[0].Notices, store.Notices{})
		},
		"paused by its driver": func(d *Driver) { d.Append(d.Noted("n"), d.Paused()) },
		"run out, and paused by another": func(d *Driver) {
			h.Advance(leaseEnd)
			got := must(f.PauseRun(ctx, d.ID, lee, "tea", now))(t, "pause")
			eq(t, "pause over a lease that ran out", got.Outcome, store.PausePaused)
		},
	} {
		r := f.Start()
		d := r.Drive()
		r.Pause()
		end(d)
		row := r.Describe()
		eq(t, "status and owner of a run "+what, fmt.Sprint(row.Status, row.LeaseOwner), fmt.Sprint(rendezvous.StatusPaused, ""))
		eq(t, "requests of a run "+what, row.Requests, nil)
		eq(t, "who paused a run "+what, must(f.PauseRun(ctx, r.ID, lee, "", now))(t, "pause again").Operator, kim) // the first asker
		h.Advance(time.Hour)
		h.wantNoNotice(f, "of a run "+what)
		r.wantNotice(r.Resume().Notices.Resume, rendezvous.CauseResumed, r.Head())
		r.Finish()
	}
	r := f.Start()
	d := r.Drive()
	r.Pause()
	eq(t, "taken back", r.Resume(), store.Paused{Outcome: store.PauseTakenBack})
	d.Append(r.Begun("a"))
	eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended)
	eq(t, "taken back again", r.Resume(), store.Paused{Outcome: store.PauseNotPaused})

	r.Drive() // a takeover is told of a request that was never applied
	r.Pause()
	h.Advance(leaseEnd)
	next := must(r.Acquire("pod", ID("acquire")))(t, "acquire")
	eq(t, "requests told to the next driver", asked(next.Requests), []rendezvous.RequestKind{rendezvous.RequestPause})
}

func pauseAndDriver(t *testing.T, h *Harness) {
	counts := map[bool]int{}
	for range h.Rounds(t) {
		f := h.Fix(t)
		r := f.Start()
		d := r.Drive()
		batch := d.Batch(r.Begun("a"))
		w := store.Registration{Wait: r.Wait("w", "paid", K("order", r.ID)), Epoch: d.Epoch}
		var paused store.Paused
		var errs [3]error
		Race(t,
			func() { paused, errs[0] = f.PauseRun(ctx, r.ID, kim, "", now) },
			func() {
				if _, errs[1] = f.Append(ctx, batch, now); errs[1] == nil {
					_, errs[2] = f.RegisterWait(ctx, w, now)
				}
			},
		)
		done(t, "pause", errs[0])
		eq(t, "pause", paused.Outcome, store.PauseRequested)
		counts[errs[1] == nil]++
		for _, err := range errs[1:] {
			if err != nil {
				code(t, "work behind the request", err, rendezvous.CodeConflict, "what", "pausing")
			}
		}
		_, err := f.RegisterWait(ctx, store.Registration{Wait: r.Wait("later", "paid"), Epoch: d.Epoch}, now)
		code(t, "work behind the request's answer", err, rendezvous.CodeConflict, "what", "pausing")
		d.Seen = r.Head()
		eq(t, "suspend", d.Suspend().Outcome, store.SuspendPaused)
	}
	t.Logf("the append landed: %v", counts)
}

func pausedOverRestart(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, requested := f.Start(), f.Start()
	r.Waits("w", "paid", K("order", "1"))
	r.Pause()
	d := requested.Drive()
	requested.Pause()
	before, asking := r.outlook(), requested.Describe().Requests
	h.Reopen(t)
	f = h.Fix(t)
	r.F, requested.F, d.F = f, f, f
	eq(t, "the workflow", r.outlook(), before)
	eq(t, "requests", requested.Describe().Requests, asking)
	_, err := r.Acquire("pod", ID("acquire"))
	code(t, "drive a paused run", err, rendezvous.CodeConflict, "what", "paused")
	h.Advance(time.Hour)
	eq(t, "paused by the reclaim", h.SweepLeases(t)[0].Paused, true)
	h.wantNoNotice(f, "of paused runs")
	e := EventOf("paid", K("order", "1"))
	f.Send(e)
	r.WantAnswered("w", e)
	for _, r := range []*Flow{r, requested} {
		eq(t, "who paused", must(f.PauseRun(ctx, r.ID, lee, "", now))(t, "pause again").Operator, kim)
		r.wantNotice(r.Resume().Notices.Resume, rendezvous.CauseResumed, r.Head())
		r.Finish()
		eq(t, "status", r.Describe().Status, rendezvous.StatusCompleted)
	}
}

func pauseEndsEpoch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	d := r.Drive()
	for _, batch := range [][]rendezvous.Record{
		recs(r.Paused(), r.Noted("n")), recs(r.Paused(), r.Resumed()), recs(r.Noted("n"), r.Paused(), r.Completed()), recs(r.Paused(), r.Paused()),
	} {
		r.unmoved("records behind the pause", rendezvous.CodeInvalid, func() error { _, err := f.Append(ctx, d.Batch(batch...), now); return err })
	}
	paused := d.Append(r.Noted("n"), r.Paused())
	eq(t, "head", paused.Head, int64(4))
	ended := func(what string, d *Driver) {
		t.Helper()
		row := r.Describe()
		eq(t, "status, owner and epoch after "+what, fmt.Sprint(row.Status, row.LeaseOwner, row.LeaseEpoch), fmt.Sprint(rendezvous.StatusPaused, "", d.Epoch))
		for _, v := range append(r.writes(d.Epoch), r.withdrawals(d.Epoch, "w")...) {
			r.unmoved(v.name+" after "+what, rendezvous.CodeFenced, v.call, "epoch", d.Epoch)
		}
		renew := r.holderOnly(d.Owner, d.Epoch)[0]
		r.unmoved(renew.name+" after "+what, rendezvous.CodeFenced, renew.call, "epoch", d.Epoch)
		eq(t, "release after "+what, d.Release().Outcome, store.SuspendNotHeld)
		_, err := r.Acquire("pod", ID("acquire"))
		code(t, "acquire after "+what, err, rendezvous.CodeConflict, "what", "paused")
		rows, _, err := h.Store.AbandonedRuns(ctx, 0, "")
		done(t, "list abandoned runs", err)
		eq(t, "abandoned after "+what, rows, nil)
		r.Resume()
	}
	ended("the driver's pause", d)

	d = r.Drive()
	h.Advance(leaseEnd)
	late := d.Batch(r.Noted("late"))
	eq(t, "pause over a lease that ran out", r.Pause().Outcome, store.PausePaused)
	_, err := f.Append(ctx, late, now)
	code(t, "the late owner's append", err, rendezvous.CodeFenced)
	ended("a pause over a lease that ran out", d)

	d = r.Drive()
	h.Advance(leaseEnd)
	r.AppendFree(r.Paused())
	ended("a pause appended over a lease that ran out", d)
	r.Drive().Append(r.Completed())
}

func registrationWakesNobody(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for what, register := range map[string]func(r *Flow, w rendezvous.Wait) store.Notices{
		"RegisterWait": func(r *Flow, w rendezvous.Wait) store.Notices { return r.Register(w).Notices },
		"Subscribe": func(r *Flow, w rendezvous.Wait) store.Notices {
			return must(f.Subscribe(ctx, store.Registration{Wait: w}, now))(t, "subscribe").Notices
		},
		"an append": func(r *Flow, w rendezvous.Wait) store.Notices { return r.AppendFree(r.Waited(w)).Notices },
	} {
		r := f.Start()
		r.Drive().Suspend()
		n := register(r, r.Wait("w", "paid", K("order", r.ID)))
		eq(t, "notices of "+what, n.Resume, nil)
		eq(t, "woken runs after "+what, h.marks(f), 0)
		r.AppendFree(r.Noted("n"))
		eq(t, "woken runs after a note", h.marks(f), 0)
		h.Advance(time.Hour)
		h.wantNoNotice(f, "of a run that registered by "+what)
		e := EventOf("paid", K("order", r.ID))
		sent := f.Send(e)
		r.wantNotice(sent.Resume, rendezvous.CauseAnswered, r.Head())
		eq(t, "woken runs after the answer", h.marks(f), 1)
		h.Advance(10 * time.Second)
		r.wantNotice(h.SweepWoken(t), rendezvous.CauseAnswered, r.Head())
		r.Finish()
		eq(t, "woken runs", h.marks(f), 0)

		early := f.Start() // an answer in the registration itself wakes, too
		early.Drive().Suspend()
		f.PutNew("paid", K("order", early.ID))
		if what != "Subscribe" {
			early.wantNotice(register(early, early.Wait("w", "paid", K("order", early.ID))).Resume, rendezvous.CauseAnswered, 3)
		}
		early.Revoke()
	}
	r := f.Start()
	r.Waits("w", "paid", K("order", r.ID))
	r.Drive().Suspend()
	w := must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now))(t, "withdraw without a lease")
	r.wantNotice(w.Notices.Resume, rendezvous.CauseWithdrawn, w.Seq)
}

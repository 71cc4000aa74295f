package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// eventsParking are the cases of delivering and parking (EV-55..EV-60, EV-66, EV-87). Attempts and takes are in events_attempts.go.
var eventsParking = []Case{
	{Name: "EV-55 record, wait, payload and state change together", Run: deliveredTogether},
	{Name: "EV-55 a delivery that fails at any step leaves all as it was", Run: deliveredOrNot},
	{Name: "EV-56 a leased run's answer is parked, and its suspend returns it", Run: parkedThenSuspended},
	{Name: "EV-57 the owner is killed: the sweep delivers once", Run: ownerKilled},
	{Name: "EV-58 the same batch on two workers answers each event once", Run: sameBatchTwice},
	{Name: "EV-59 a repeated notice wakes the run until somebody drives it", Run: repeatedNoticeWakes},
	{Name: "EV-60 one corrupt event among 500 fails alone", Run: corruptEventAlone},
	{Name: "EV-66 a leased run's wait keeps its place before a free one's", Run: leasedKeepsPlace},
	{Name: "EV-87 a batch of registrations gives what one by one gives", Run: registeredInBatch},
	{Name: "EV-87 a batch of targeted events gives what one by one gives", Run: deliveredInBatch},
	{Name: "EV-87 500 items cost no more statements than 50", Run: batchesCostTheSame},
	{Name: "EV-87 at the limit of a run's waits, one that is answered at once leaves its room to the next", Run: roomAtTheLimit},
	{Name: "EV-87 a batch hands out 16 MiB of answers and parks the rest", Run: largeAnswersInBatch},
	{Name: "EV-87 a second look hands out 16 MiB of answers, the rest when asked again", Run: largeAnswersInLook},
	{Name: "EV-87 a batch has 500 items at most", Run: batchesAreBounded},
}

// onlooker reads one side of a delivery and then the others: once one side shows it, the others must.
type onlooker struct {
	r      *Flow
	e      rendezvous.Event
	effect string
	over   *atomic.Bool
	found  string // what was wrong
}

// watch looks until it has seen the delivery, or until it is over.
func (o *onlooker) watch(sees func() (bool, error)) {
	for o.found == "" {
		over := o.over.Load()
		saw, err := sees()
		switch {
		case err != nil:
			o.found = err.Error()
		case saw:
			o.found = o.others()
			return
		case over:
			o.found = "the delivery is over and cannot be seen"
		}
	}
}

// others are all sides of a delivery that one side has shown.
func (o *onlooker) others() string {
	records, err := o.r.F.ReadHistory(ctx, o.r.WorkflowID)
	if err != nil {
		return err.Error()
	}
	if last := records[len(records)-1]; last.Kind != rendezvous.WaitAnswered || string(last.Payload) != string(o.e.Payload) {
		return fmt.Sprintf("the history ends with %s", last.Kind)
	}
	page, err := o.r.F.Waiting(ctx, store.WaitFilter{RunID: o.r.ID}, 0, "")
	if err != nil || len(page.Waits) != 0 {
		return fmt.Sprintf("the wait is still there (%v)", err)
	}
	e, err := o.r.F.LookupEvent(ctx, o.e.EventID, true)
	if err != nil || e.State != rendezvous.EventConsumed || e.HasPayload || e.Payload != nil || e.Seq != 3 {
		return fmt.Sprintf("the event is %s at %d, with payload: %v (%v)", e.State, e.Seq, e.HasPayload, err)
	}
	w, err := o.r.F.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: o.r.WorkflowID})
	if err != nil || w.Head != 3 || w.OpenWaits != 0 {
		return fmt.Sprintf("the workflow has head %d and %d open waits (%v)", w.Head, w.OpenWaits, err)
	}
	return ""
}

func (o *onlooker) event() (bool, error) {
	e, err := o.r.F.LookupEvent(ctx, o.e.EventID, true)
	whole := e.HasPayload && string(e.Payload) == string(o.e.Payload)
	if err == nil && (e.State == rendezvous.EventLive) != whole || e.State != rendezvous.EventLive && e.State != rendezvous.EventConsumed {
		err = fmt.Errorf("the event of a free run is %s, with payload: %v", e.State, e.HasPayload)
	}
	return e.State == rendezvous.EventConsumed, err
}

func (o *onlooker) history() (bool, error) {
	page, err := o.r.F.ReadHistoryFrom(ctx, o.r.WorkflowID, 3, 10)
	return page.Head == 3 && len(page.Records) == 1, err
}

func (o *onlooker) wait() (bool, error) {
	page, err := o.r.F.Waiting(ctx, store.WaitFilter{RunID: o.r.ID}, 0, "")
	if len(page.Waits) == 1 && page.Waits[0].State != rendezvous.WaitOpen {
		err = fmt.Errorf("the wait of a free run is %s", page.Waits[0].State)
	}
	return len(page.Waits) == 0, err
}

func (o *onlooker) workflow() (bool, error) {
	w, err := o.r.F.DescribeWorkflow(ctx, store.WorkflowRef{RunID: o.r.ID})
	if err == nil && (w.Head == 3) != (w.OpenWaits == 0) {
		err = fmt.Errorf("head %d with %d open waits", w.Head, w.OpenWaits)
	}
	return w.OpenWaits == 0, err
}

func deliveredTogether(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		f := fs[i%2]
		r := f.Start()
		r.Waits("w", "paid", K("order", r.ID))
		e := f.PutNew("paid", K("order", r.ID))
		var over atomic.Bool
		var watchers [4]onlooker
		var err error
		racers := []func(){func() {
			_, err = h.Store.OfferBatch(ctx, f.Items(e), now)
			over.Store(true)
		}}
		for n := range watchers {
			o := &watchers[n]
			*o = onlooker{r: r, e: e, effect: "w", over: &over}
			racers = append(racers, func() { o.watch([]func() (bool, error){o.event, o.history, o.wait, o.workflow}[n]) })
		}
		Race(t, racers...)
		done(t, "offer", err)
		for n, o := range watchers {
			eq(t, fmt.Sprintf("what onlooker %d found", n), o.found, "")
		}
	}
}

func deliveredOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "offer_batch", func() (func() error, func(error, bool)) {
		r := f.Start()
		key := K("order", r.ID)
		r.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		offer := func() error { _, err := h.Store.OfferBatch(ctx, f.Items(e), now); return err }
		return offer, func(_ error, committed bool) {
			if !committed {
				r.WantKinds(rendezvous.WaitRegistered)
				r.WantOpen("w")
				f.WantLive(e)
				eq(t, "open waits", r.Describe().OpenWaits, 1)
				done(t, "offer again", offer())
			}
			r.WantAnswered("w", e)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
			eq(t, "open waits", r.Describe().OpenWaits, 0)
			eq(t, "outcome of another offer", f.OfferEvent(e.EventID).Outcome, store.OfferAlreadyDelivered)
		}
	})
	h.Break(t, "deliver_parked", func() (func() error, func(error, bool)) {
		r := f.Start()
		r.Waits("w", "paid", K("order", r.ID))
		e := f.PutNew("paid", K("order", r.ID))
		f.Matched(e, r, "w")
		row := r.WantParked("w", e)
		deliver := func() error {
			_, err := h.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: f.Name(), WaitID: r.WaitID("w")}}, now)
			return err
		}
		return deliver, func(_ error, committed bool) {
			if !committed {
				eq(t, "row", r.WantParked("w", e), row)
				r.WantKinds(rendezvous.WaitRegistered)
				done(t, "deliver again", deliver())
			}
			r.WantAnswered("w", e)
			eq(t, "outcome of another delivery", r.Redeliver("w").Outcome, store.OfferAlreadyDelivered)
		}
	})
}

func parkedThenSuspended(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, way := range []string{"suspend", "collect", "release"} {
			r := f.Start()
			d := r.Drive()
			d.Waits("w", "paid", K("order", r.ID), K("customer", "1"))
			e := EventOf("paid", K("order", r.ID))
			parked := f.Send(e).Made(store.OfferParked)
			eq(t, "offers parked", len(parked), 1)
			eq(t, "wait that has it", parked[0].Wait, r.WaitID("w"))
			if left := parked[0].Remaining; left <= 0 || left > rendezvous.DefaultLease {
				t.Fatalf("the lease is said to last for another %s", left)
			}
			r.WantParked("w", e)
			r.WantKinds(rendezvous.WaitRegistered)
			again := f.Put(e) // a retry of the event
			eq(t, "outcome of buffering again", again.Outcome, store.BufferDuplicate)
			eq(t, "place told", again.Place, store.Place{State: rendezvous.EventClaimed, RunID: r.ID, Effect: "w"})
			eq(t, "offers of the retry parked", len(h.Offer(t, again.Notices).Made(store.OfferParked)), 1)

			var got []rendezvous.Record
			switch way {
			case "suspend":
				out := d.Suspend()
				eq(t, "outcome", out.Outcome, store.SuspendContinue)
				got = out.Records
				eq(t, "outcome of suspending again", d.Suspend().Outcome, store.SuspendSuspended)
			case "collect":
				got = d.Collect().Records
				eq(t, "collected again", d.Collect().Records, nil)
			default:
				got = d.Release().Records
			}
			eq(t, "records handed out", len(got), 1)
			WantAnswerOf(t, got[0], e)
			eq(t, "record handed out", got[0], *r.WantAnswered("w", e))
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
			h.Advance(5 * time.Second)
			h.SweepParked(t)
			eq(t, "outcome of offering again", f.OfferEvent(e.EventID).Outcome, store.OfferAlreadyDelivered)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		}
	}
}

func ownerKilled(t *testing.T, h *Harness) {
	for i := range h.Rounds(t) {
		fs := h.Two(t)
		var runs []*Flow
		var events []rendezvous.Event
		for _, f := range fs {
			r := f.Start()
			d := r.DriveFor(2 * time.Second)
			d.Waits("w", "paid", K("order", r.ID))
			e := EventOf("paid", K("order", r.ID))
			eq(t, "offers parked", len(f.Send(e).Made(store.OfferParked)), 1)
			runs, events = append(runs, r), append(events, e)
		}
		eq(t, "reclaimed while the lease lives", len(h.SweepLeases(t)), 0)
		eq(t, "delivered while the lease lives", len(h.SweepParked(t).Made(store.OfferDelivered)), 0)
		runs[0].WantParked("w", events[0])
		h.Advance(4 * time.Second)
		switch i % 3 { // whichever pass comes first, and two sweepers at once
		case 0:
			eq(t, "reclaimed", len(h.SweepLeases(t)), 2)
		case 1:
			eq(t, "delivered", len(h.SweepParked(t).Made(store.OfferDelivered)), 2)
			h.SweepLeases(t)
		default:
			rows, _, err := h.Store.AbandonedRuns(ctx, 0, "")
			done(t, "list abandoned runs", err)
			var items []store.ReclaimItem
			for _, r := range rows {
				items = append(items, store.ReclaimItem{Tenant: r.Tenant, WorkflowID: r.WorkflowID, Epoch: r.Epoch, ExpiresAt: r.ExpiresAt})
			}
			eq(t, "abandoned", len(items), 2)
			var errs [3]error
			Race(t, func() { _, errs[0] = h.Store.ReclaimRun(ctx, items) }, func() { _, errs[1] = h.Store.ReclaimRun(ctx, items) },
				func() {
					refs := []store.WaitRef{{Tenant: fs[0].Name(), WaitID: runs[0].WaitID("w")}, {Tenant: fs[1].Name(), WaitID: runs[1].WaitID("w")}}
					_, errs[2] = h.Store.DeliverParked(ctx, refs, now)
				})
			for _, err := range errs {
				done(t, "sweep at once", err)
			}
		}
		for n, r := range runs {
			r.WantAnswered("w", events[n])
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
			d := r.Drive()
			eq(t, "epoch of the next driver", d.Epoch, int64(2))
			d.Conclude(rendezvous.StatusCompleted)
		}
		eq(t, "reclaimed again", len(h.SweepLeases(t)), 0)
		eq(t, "delivered again", len(h.SweepParked(t).Offers), 0)
	}
}

func sameBatchTwice(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for range h.Rounds(t) {
		var items []store.OfferItem
		var runs []*Flow
		var events []rendezvous.Event
		for _, f := range fs {
			for range 3 {
				r := f.Start()
				r.Waits("w", "paid", K("order", r.ID))
				r.Waits("w2", "paid", K("customer", r.ID), K("order", r.ID))
				for range 2 {
					e := f.PutNew("paid", K("order", r.ID))
					items = append(items, f.Items(e)...)
					runs, events = append(runs, r), append(events, e)
				}
			}
		}
		twice := append(items, items[0], items[len(items)-1]) // the same notice twice
		var outs [3]store.Offered
		var errs [3]error
		offer := func(i int, items []store.OfferItem) func() {
			return func() { outs[i], errs[i] = h.Store.OfferBatch(ctx, items, now) }
		}
		Race(t, offer(0, twice), offer(1, twice), offer(2, items[:len(items)/2]))
		delivered := map[rendezvous.EventID]int{}
		for n, err := range errs {
			done(t, "offer at once with others", err)
			eq(t, "pairs pulled in", len(outs[n].Also), 0)
			for i, o := range outs[n].Items {
				switch o.Outcome {
				case store.OfferDelivered:
					delivered[o.Event]++
				case store.OfferAlreadyDelivered:
				default:
					t.Fatalf("item %d of worker %d: %s (%v)", i, n, o.Outcome, o.Err)
				}
				place := fs[0].Stored
				if o.Tenant == fs[1].Name() {
					place = fs[1].Stored
				}
				stored := place(o.Event)
				eq(t, "where worker "+fmt.Sprint(n)+" says it went", store.Place{
					State: rendezvous.EventConsumed, WorkflowID: o.WorkflowID, RunID: o.Wait.RunID,
					Effect: o.Wait.Effect, Seq: o.Seq,
				}, stored.Place)
			}
		}
		for i, e := range events {
			eq(t, "times that "+e.ID+" was delivered", delivered[e.EventID], 1)
			runs[i].WantAnswered([]string{"w", "w2"}[i%2], e)
		}
	}
}

func repeatedNoticeWakes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	crashed := func(verb string, r *Flow, call func() error) { // committed, and the notices are lost with the worker
		t.Helper()
		h.Faults.Arm(fault.Failure{Verb: verb, Point: fault.AfterCommit})
		code(t, verb, call(), rendezvous.CodeCommitUnknown)
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
	}
	for _, paused := range []bool{false, true} {
		r := f.Start()
		r.Drive().Release()
		h.Advance(time.Second)
		r.Drive().Suspend()
		h.Advance(time.Second)
		r.Waits("w", "paid", K("order", r.ID))
		e := f.PutNew("paid", K("order", r.ID))
		crashed("offer_batch", r, func() error { _, err := h.Store.OfferBatch(ctx, f.Items(e), now); return err })
		seq := r.WantAnswered("w", e).Seq
		if paused {
			must(f.PauseRun(ctx, r.ID, nil, "", now))(t, "pause")
		}
		for range 2 {
			h.Advance(time.Second)
			out := must(h.Store.OfferBatch(ctx, f.Items(e), now))(t, "offer again")
			o := out.Items[0]
			eq(t, "outcome", o.Outcome, store.OfferAlreadyDelivered)
			eq(t, "woken", o.Woken, true)
			eq(t, "queue", o.Queue, rendezvous.DefaultQueue)
			eq(t, "run woken", o.Wait.RunID, r.ID)
			eq(t, "resume notices", len(out.Notices.Resume), map[bool]int{false: 1, true: 0}[paused]) // none to a paused run
			if !paused {
				got := out.Notices.Resume[0]
				eq(t, "run of the notice", store.WorkflowRef{WorkflowID: got.WorkflowID, RunID: got.RunID}, store.WorkflowRef{WorkflowID: r.WorkflowID, RunID: r.ID})
				eq(t, "seq of the notice", got.Seq, seq)
				eq(t, "cause of the notice", got.Cause, rendezvous.CauseAnswered)
				eq(t, "queue of the notice", got.Queue, rendezvous.DefaultQueue)
			}
		}
		if paused {
			must(f.ResumeRun(ctx, r.ID, nil, "", now))(t, "resume")
		}
		notWoken := func(what string) {
			t.Helper()
			out := must(h.Store.OfferBatch(ctx, f.Items(e), now))(t, "offer "+what)
			eq(t, "outcome "+what, out.Items[0].Outcome, store.OfferAlreadyDelivered)
			eq(t, "woken "+what, out.Items[0].Woken, false)
			eq(t, "resume notices "+what, len(out.Notices.Resume), 0)
		}
		d := r.Drive()
		notWoken("after an executor took the lease")
		h.Advance(time.Second)
		d.Release() // woken again, for another reason
		notWoken("after the executor gave up")
	}

	r := f.Start()
	r.Drive().Suspend()
	h.Advance(time.Second)
	r.Waits("w", "paid", K("order", r.ID))
	e := f.PutNew("paid", K("order", r.ID))
	f.Matched(e, r, "w")
	refs := []store.WaitRef{{Tenant: f.Name(), WaitID: r.WaitID("w")}}
	crashed("deliver_parked", r, func() error { _, err := h.Store.DeliverParked(ctx, refs, now); return err })
	out := must(h.Store.DeliverParked(ctx, refs, now))(t, "deliver again")
	eq(t, "outcome", out.Items[0].Outcome, store.OfferAlreadyDelivered)
	eq(t, "woken", out.Items[0].Woken, true)
	eq(t, "resume notices", len(out.Notices.Resume), 1)
	r.Drive()
	out = must(h.Store.DeliverParked(ctx, refs, now))(t, "deliver after an executor took the lease")
	eq(t, "woken", out.Items[0].Woken, false)
	eq(t, "resume notices", len(out.Notices.Resume), 0)
}

func corruptEventAlone(t *testing.T, h *Harness) {
	fs := h.Two(t)
	type place struct {
		r      *Flow
		effect string
		e      rendezvous.Event
	}
	var items []store.OfferItem
	var places []place
	var waits []store.RegisterItem
	var events []store.BufferItem
	for n := range rendezvous.MaxBatchItems {
		f := fs[n%2]
		var r *Flow
		if n < 4 {
			r = f.Start()
		} else {
			r = places[n%4].r
		}
		w := r.Wait(fmt.Sprint("w", n), "paid", K("order", fmt.Sprintf("%s-%d", r.ID, n)))
		p := place{r: r, effect: w.Effect, e: EventOf("paid", w.Keys...)}
		waits = append(waits, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w}})
		events = append(events, store.BufferItem{Tenant: f.Name(), Event: p.e})
		places, items = append(places, p), append(items, f.Items(p.e)...)
	}
	for _, o := range must(h.Store.RegisterBatch(ctx, waits, now))(t, "register 500") {
		done(t, "register", o.Err)
	}
	for _, o := range must(h.Store.BufferBatch(ctx, events, now))(t, "buffer 500") {
		done(t, "buffer", o.Err)
	}
	const bad = 250
	broken := places[bad]
	done(t, "damage", h.Damage.Event(broken.r.F.Name(), broken.e.EventID))
	out := must(h.Store.OfferBatch(ctx, items, now))(t, "offer 500")
	for n, o := range out.Items {
		if n == bad {
			eq(t, "outcome of the corrupt event", o.Outcome, store.OfferFailed)
			code(t, "the corrupt event", o.Err, rendezvous.CodeCorrupt)
			continue
		}
		eq(t, fmt.Sprintf("outcome of event %d", n), o.Outcome, store.OfferDelivered)
	}
	for _, n := range []int{0, bad - 1, bad + 1, 499} {
		places[n].r.WantAnswered(places[n].effect, places[n].e)
	}
	broken.r.WantOpen(broken.effect)
	for n := 2; n <= rendezvous.UndeliverableFrom; n++ {
		eq(t, fmt.Sprintf("outcome of offer %d", n), broken.r.F.OfferEvent(broken.e.EventID).Outcome, store.OfferFailed)
	}
	o := broken.r.F.OfferEvent(broken.e.EventID)
	eq(t, "outcome after 16 failures", o.Outcome, store.OfferDead)
	eq(t, "reason of its death", o.Reason, rendezvous.DeadUndeliverable)
	e := EventOf("paid", broken.e.Keys...) // it is in nobody's way
	broken.r.F.Send(e)
	broken.r.WantAnswered(broken.effect, e)
	for _, r := range []*Flow{places[0].r, places[1].r, places[2].r, places[3].r} {
		eq(t, "open waits of a run", r.Describe().OpenWaits, 0)
	}
}

func leasedKeepsPlace(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		f := fs[i%2]
		older, younger := f.Start(), f.Start()
		key := K("order", older.ID)
		older.Waits("w", "paid", key, K("other", key.Value))
		var d *Driver
		if i%2 == 0 {
			d = older.Drive()
		}
		e := f.PutNew("paid", key)
		var errs [3]error
		var lease store.Lease
		Race(t,
			func() { _, errs[0] = h.Store.OfferBatch(ctx, f.Items(e), now) },
			func() { errs[1] = registering(younger, younger.Wait("w", "paid", key), i, 0, 1) },
			func() {
				if d == nil { // a driver comes at that moment
					lease, errs[2] = f.AcquireLease(ctx, older.ID, ID("pod"), rendezvous.DefaultLease, ID("acquire"))
				}
			})
		for _, err := range errs {
			done(t, "race", err)
		}
		younger.WantOpen("w")
		if d == nil {
			d = &Driver{Flow: older, Epoch: lease.Epoch, Seen: lease.Head}
		}
		if older.Answer("w") == nil {
			older.WantParked("w", e)
			eq(t, "outcome of suspending", d.Suspend().Outcome, store.SuspendContinue)
		}
		older.WantAnswered("w", e)
		younger.WantKinds(rendezvous.WaitRegistered)
		next := EventOf("paid", key)
		f.Send(next)
		younger.WantAnswered("w", next)
	}
}

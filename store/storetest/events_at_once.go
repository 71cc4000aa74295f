package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// registering registers a wait in one of the ways a driver or a free run has, told apart by round.
func registering(r *Flow, w rendezvous.Wait, way int, epoch, head int64) error {
	reg := store.Registration{Wait: w, Epoch: epoch}
	switch way % 3 {
	case 0:
		_, err := r.F.RegisterWait(ctx, reg, now)
		return err
	case 1:
		out, err := r.F.H.Store.RegisterBatch(ctx, []store.RegisterItem{{Tenant: r.F.Name(), Registration: reg}}, now)
		if err != nil {
			return err
		}
		return out[0].Err
	}
	_, err := r.F.Append(ctx, store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch"), Records: []rendezvous.Record{r.Waited(w)}}, now)
	return err
}

// sending buffers an event and offers it, and nothing that follows.
func sending(f *Fix, e rendezvous.Event) error {
	if _, err := f.Buffer(ctx, e, now); err != nil {
		return err
	}
	_, err := f.H.Store.OfferBatch(ctx, f.Items(e), now)
	return err
}

func registrationMeetsArrival(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		key := K("order", ID("order"))
		var runs [2]*Flow
		var drivers [2]*Driver
		var events [2]rendezvous.Event
		var errs [4]error
		var racers []func()
		for n, f := range fs { // the same scene in both tenants at once
			runs[n], events[n] = f.Start(), EventOf("paid", K("other", key.Value), key)
			var epoch int64
			if i%2 == 1 {
				drivers[n] = runs[n].Drive()
				epoch = drivers[n].Epoch
			}
			w, head := runs[n].Wait("w", "paid", key, K("more", key.Value)), runs[n].Head()
			racers = append(racers, func() { errs[2*n] = registering(runs[n], w, i, epoch, head) }, func() { errs[2*n+1] = sending(f, events[n]) })
		}
		Race(t, racers...)
		for n, f := range fs {
			done(t, "register", errs[2*n])
			done(t, "send", errs[2*n+1])
			if d := drivers[n]; d != nil { // claimed while the driver was registering: its suspend records it
				if state := f.Stored(events[n].EventID).State; state == rendezvous.EventLive {
					t.Fatalf("round %d: the event is live beside the open wait of %s", i, f.Name())
				}
				d.Suspend()
			}
			runs[n].WantAnswered("w", events[n])
			runs[n].WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		}
	}
}

func manyMeetAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const many = 4
	for i := range h.Rounds(t) {
		a, b := K("order", ID("order")), K("customer", ID("customer"))
		keys := [][]rendezvous.Key{{a}, {a, b}, {b, a}, {a}} // each event meets each wait
		var runs [many]*Flow
		var events [many]rendezvous.Event
		var errs [2 * many]error
		var racers []func()
		for n := range many {
			runs[n], events[n] = f.Start(), EventOf("paid", keys[(n+i)%many]...)
			w := runs[n].Wait("w", "paid", keys[n]...)
			racers = append(racers, func() { errs[2*n] = registering(runs[n], w, i, 0, 1) }, func() { errs[2*n+1] = sending(f, events[n]) })
		}
		Race(t, racers...)
		for n, err := range errs {
			done(t, fmt.Sprintf("round %d, racer %d", i, n), err)
		}
		byWait := map[rendezvous.WaitID]bool{}
		for n, r := range runs {
			if r.Answer("w") == nil {
				t.Fatalf("round %d: the wait of run %d of %d is open, events: %v", i, n, many, statesOf(f, events[:]))
			}
			stored := f.WantState(events[n].EventID, rendezvous.EventConsumed)
			byWait[rendezvous.WaitID{RunID: stored.RunID, Effect: stored.Effect}] = true
			eq(t, "rows of an answered run", r.Rows(), nil)
		}
		eq(t, "waits that an event says it answered", len(byWait), many)
	}
}

func statesOf(f *Fix, events []rendezvous.Event) []rendezvous.EventState {
	var states []rendezvous.EventState
	for _, e := range events {
		states = append(states, f.Stored(e.EventID).State)
	}
	return states
}

func eventBehindStart(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		f := fs[i%2]
		r := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
		e := EventOf("paid", K("order", r.ID))
		started := make(chan struct{})
		var startErr, driveErr, sendErr error
		Race(t,
			func() {
				defer close(started)
				_, startErr = f.StartRun(ctx, store.Start{WorkflowID: r.WorkflowID, RunID: r.ID, Type: "order"}, now)
			},
			func() { sendErr = sending(f, e) },
			func() {
				<-started
				driveErr = driveOnce(r, r.Wait("w", "paid", K("order", r.ID)), i)
			})
		done(t, "start", startErr)
		done(t, "drive", driveErr)
		done(t, "send", sendErr)
		r.WantAnswered("w", e)
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		eq(t, "driver left", r.Describe().LeaseOwner, "")
	}
}

// driveOnce is an executor that drives a run up to its wait and suspends, as soon as it has seen everything.
func driveOnce(r *Flow, w rendezvous.Wait, way int) error {
	lease, err := r.F.AcquireLease(ctx, r.ID, ID("pod"), rendezvous.DefaultLease, ID("acquire"))
	if err != nil {
		return err
	}
	if err := registering(r, w, way, lease.Epoch, lease.Head); err != nil {
		return err
	}
	for seen := lease.Head; ; {
		out, err := r.F.Tenant.Suspend(ctx, r.ID, lease.Epoch, seen, false)
		if err != nil || out.Outcome == store.SuspendSuspended {
			return err
		}
		if out.Outcome != store.SuspendContinue || out.Head <= seen {
			return fmt.Errorf("suspend at %d: %s with head %d", seen, out.Outcome, out.Head)
		}
		seen = out.Head
	}
}

func eventForLaterWait(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		d := r.Drive()
		d.Append(r.Begun("charge"))
		e := EventOf("paid", K("order", "1"))
		eq(t, "offers while the run is busy", len(f.Send(e).Made(store.OfferNoWaiter)), 1)
		f.WantLive(e)
		d.Append(r.Done("charge"))
		h.Advance(10 * time.Second)
		out := d.Register(r.Wait("w", "paid", K("order", "1")))
		eq(t, "outcome", out.Outcome, store.RegisterAnswered)
		WantAnswerOf(t, *out.Answer, e)
		r.WantAnswered("w", e)
		r.WantKinds(rendezvous.EffectStarted, rendezvous.EffectDone, rendezvous.WaitRegistered, rendezvous.WaitAnswered)
	}
}

func tenantsAreStrangers(t *testing.T, h *Harness) {
	fs := h.Two(t)
	var runs [2]*Flow
	for i, f := range fs {
		runs[i] = f.StartAs(store.Start{WorkflowID: "workflow", RunID: "run", Type: "order"})
		runs[i].Waits("w", "paid", K("order", "1"), K("customer", "2"))
		eq(t, "waits of "+f.Name(), len(f.Listed(store.WaitFilter{})), 1)
		key := K("order", "1")
		eq(t, "waits of "+f.Name()+" under the key", len(f.Listed(store.WaitFilter{Key: &key, RunID: "run", Type: "paid"})), 1)
	}
	e := EventOf("paid", K("order", "1"))
	f, other := fs[1], fs[0] // the other's wait is the older one
	f.Put(e)
	other.Absent(e.EventID)
	eq(t, "offer in the other tenant", other.OfferEvent(e.EventID).Outcome, store.OfferUnknown)
	runs[0].WantNothing("w")
	f.Send(e)
	runs[1].WantAnswered("w", e)
	runs[0].WantOpen("w")
	runs[0].WantKinds(rendezvous.WaitRegistered)

	e.Payload = []byte("another content: another event")
	eq(t, "the same identity in the other tenant", other.Put(e).Outcome, store.BufferNew)
	items := append(f.Items(e), other.Items(e)...)
	out := must(h.Store.OfferBatch(ctx, items, now))(t, "offer both")
	eq(t, "outcome of the first tenant's", out.Items[0].Outcome, store.OfferAlreadyDelivered)
	eq(t, "outcome of the other's", out.Items[1].Outcome, store.OfferDelivered)
	eq(t, "tenants of the outcomes", []string{out.Items[0].Tenant, out.Items[1].Tenant}, []string{f.Name(), other.Name()})
	runs[0].WantAnswered("w", e)

	lone := f.PutNew("paid", K("order", "1")) // a live event and an open wait of two tenants
	runs[0].Waits("w2", "paid", K("order", "1"))
	eq(t, "offer across tenants", f.OfferEvent(lone.EventID).Outcome, store.OfferNoWaiter)
	runs[0].WantNothing("w2")
	h.SweepUnmet(t)
	f.WantLive(lone)
	runs[0].WantOpen("w2")
}

func registrationPullsIn(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		f := fs[i%2]
		a, b := K("a", ID("key")), K("b", ID("key"))
		old, young := f.Start(), f.Start()
		old.Waits("w", "paid", a)
		e1, e2 := f.PutNew("paid", a), f.PutNew("paid", b)
		eq(t, "offer of the second", f.OfferEvent(e2.EventID).Outcome, store.OfferNoWaiter)
		w, epoch := young.Wait("w", "paid", a, b), int64(0)
		if i%4 >= 2 {
			epoch = young.Drive().Epoch
		}
		if i < 4 { // alone, in every way
			out := must(f.RegisterWait(ctx, store.Registration{Wait: w, Epoch: epoch}, now))(t, "register")
			eq(t, "outcome", out.Outcome, store.RegisterAnswered)
			WantAnswerOf(t, *out.Answer, e2)
			eq(t, "other pairs made", len(out.Also), 1)
			eq(t, "event of the other pair", out.Also[0].Event, e1.EventID)
			eq(t, "wait of the other pair", out.Also[0].Wait, old.WaitID("w"))
		} else {
			var errs [3]error
			offers := func(e rendezvous.Event, err *error) func() {
				return func() { _, *err = h.Store.OfferBatch(ctx, f.Items(e), now) }
			}
			Race(t, func() { errs[0] = registering(young, w, i, epoch, 1) }, offers(e1, &errs[1]), offers(e2, &errs[2]))
			for _, err := range errs {
				done(t, "race", err)
			}
			if young.Answer("w") == nil && epoch != 0 { // the offer came first, and parked it
				young.WantParked("w", e2)
				must(f.Collect(ctx, young.ID, epoch))(t, "collect")
			}
		}
		old.WantAnswered("w", e1)
		young.WantAnswered("w", e2)
	}
}

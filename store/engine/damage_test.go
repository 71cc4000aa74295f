package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

func newDamagedWorld(t *testing.T) (*world, memory.Damage) {
	t.Helper()
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	b := memory.Open(c, 8)
	faults := fault.Wrap(b)
	s, err := engine.New(faults, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant("default")
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, ctx: context.Background(), clock: c, faults: faults, s: s, t: tenant}, b.Damage()
}

// EV-60: a corrupt event fails alone, and sixteen failures make it undeliverable.
func TestACorruptEventFailsAlone(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r1")
	w.register("r1", "a", 0, "1")
	bad, good := w.buffer("bad", "1"), w.buffer("good", "1")
	w.must(damage.Event("default", *bad.Event))
	w.outcomes("one of two", w.offer(bad, good), "failed delivered ")
	for range rendezvous.UndeliverableFrom - 2 {
		w.outcomes("again", w.offer(bad), "failed ")
	}
	o := w.offer(bad, bad)
	if o.Items[0].Outcome != store.OfferFailed || rendezvous.CodeOf(o.Items[0].Err) != rendezvous.CodeCorrupt {
		t.Fatalf("%+v", o)
	}
	o = w.offer(bad)
	if o.Items[0].Outcome != store.OfferDead || o.Items[0].Reason != rendezvous.DeadUndeliverable {
		t.Fatalf("%+v", o)
	}
}

// EV-37: a wait of a sealed run, put back by a restore, is the oldest on the key and is passed over by every verb.
func TestAWaitOfASealedRunIsPassedOver(t *testing.T) {
	w, damage := newDamagedWorld(t)
	for _, run := range []string{"r1", "r2", "r3", "r4"} {
		w.start(run)
	}
	w.register("r1", "a", 0, "1")
	restore, err := damage.Keep("default", rendezvous.WaitID{RunID: "r1", Effect: "a"})
	w.must(err)
	_, err = w.t.CancelRun(w.ctx, "r1", nil, "", true, time.Time{})
	w.must(err)
	w.must(restore())

	w.register("r2", "a", 0, "1")
	w.outcomes("offer", w.offer(w.buffer("e1", "1")), "delivered ")
	w.register("r3", "a", 0, "1")
	w.buffer("e2", "1")
	c, err := w.t.ClaimFor(w.ctx, rendezvous.WaitID{RunID: "r3", Effect: "a"}, time.Time{})
	if err != nil || c.Event == nil || c.Event.ID != "e2" {
		t.Fatalf("claim: %+v %v", c, err)
	}
	w.buffer("e3", "1")
	if r := w.register("r4", "a", 0, "1"); r.Outcome != store.RegisterAnswered {
		t.Fatalf("register: %+v", r)
	}
	e4 := w.buffer("e4", "1")
	if m, err := w.t.MatchWaiter(w.ctx, *e4.Event, time.Time{}); err != nil || m.Outcome != store.MatchNoWaiter {
		t.Fatalf("match: %+v %v", m, err)
	}
	sealed := store.OfferItem{Tenant: "default", Wait: &rendezvous.WaitID{RunID: "r1", Effect: "a"}}
	o := w.offer(sealed)
	if o.Items[0].Outcome == store.OfferDelivered || o.Items[0].Outcome == store.OfferParked {
		t.Fatalf("offer of the wait: %+v", o)
	}
}

// A row put back for a wait that is answered in the history takes no second event, and spoils no batch.
func TestARowLeftOverTakesNothing(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r1")
	w.start("r2")
	w.register("r1", "a", 0, "1")
	restore, err := damage.Keep("default", rendezvous.WaitID{RunID: "r1", Effect: "a"})
	w.must(err)
	w.outcomes("first", w.offer(w.buffer("e1", "1")), "delivered ")
	w.must(restore())
	w.register("r2", "a", 0, "1")
	e2 := w.buffer("e2", "1")
	o := w.offer(e2)
	w.outcomes("second", o, "delivered ")
	if o.Items[0].Wait.RunID != "r2" {
		t.Fatalf("%+v", o)
	}
}

// EV-22: a wait whose row was lost gets it back by registering again, with one record.
func TestALostRowComesBackByRegisteringAgain(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r1")
	w.register("r1", "a", 0, "1")
	w.must(damage.LoseWait("default", rendezvous.WaitID{RunID: "r1", Effect: "a"}))
	w.outcomes("no row", w.offer(w.buffer("e1", "2")), "no_waiter ")
	if r := w.register("r1", "a", 0, "1"); r.Outcome != store.RegisterWaiting || r.Seq != 2 {
		t.Fatalf("%+v", r)
	}
	w.outcomes("later", w.offer(w.buffer("e2", "1")), "delivered ")
	if got := w.told("r1"); got != "run.started[] wait.registered[] wait.answered[p-e2] " {
		t.Fatal(got)
	}
}

// A pair whose workflow row does not decode fails alone and is counted against the event.
func TestACorruptWorkflowFailsItsPairAlone(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r1")
	w.start("r2")
	w.register("r1", "a", 0, "1")
	w.register("r2", "a", 0, "2")
	w.must(damage.Lease("default", "wf-r1"))
	bad := w.buffer("bad", "1")
	w.outcomes("one of two", w.offer(bad, w.buffer("good", "2")), "failed delivered ")
	if e, err := w.t.LookupEvent(w.ctx, *bad.Event, false); err != nil || e.OfferFailures != 1 || e.State != rendezvous.EventLive {
		t.Fatalf("%+v %v", e, err)
	}
}

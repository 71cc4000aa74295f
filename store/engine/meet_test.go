package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// These are walks through offering, claiming and registering on the memory backend.

func orderKeys(values ...string) []rendezvous.Key {
	keys := make([]rendezvous.Key, len(values))
	for i, v := range values {
		keys[i] = rendezvous.Key{Namespace: "order", Value: v}
	}
	return keys
}

func (w *world) buffer(id string, values ...string) store.OfferItem {
	w.Helper()
	e := rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: id}, Type: "paid", Keys: orderKeys(values...), ContentType: "text/plain", Payload: []byte("p-" + id)}
	_, err := w.t.Buffer(w.ctx, e, time.Time{})
	w.must(err)
	return store.OfferItem{Tenant: "default", Event: &e.EventID}
}

func (w *world) register(run, effect string, epoch int64, values ...string) store.Registered {
	w.Helper()
	r, err := w.t.RegisterWait(w.ctx, registrationOf(run, effect, epoch, values...), time.Time{})
	w.must(err)
	return r
}

func registrationOf(run, effect string, epoch int64, values ...string) store.Registration {
	return store.Registration{
		Wait:  rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: run, Effect: effect}, Type: "paid", Keys: orderKeys(values...)},
		Epoch: epoch,
	}
}

func (w *world) offer(items ...store.OfferItem) store.Offered {
	w.Helper()
	o, err := w.s.OfferBatch(w.ctx, items, time.Time{})
	w.must(err)
	return o
}

func outcomes(o store.Offered) string {
	s := ""
	for _, i := range o.Items {
		s += string(i.Outcome) + " "
	}
	for _, i := range o.Also {
		s += "+" + string(i.Outcome) + ":" + i.Event.ID + ">" + i.Wait.RunID + " "
	}
	return s
}

func (w *world) outcomes(what string, o store.Offered, want string) {
	w.Helper()
	if diff := cmp.Diff(want, outcomes(o)); diff != "" {
		w.Fatalf("%s: %s\n%+v", what, diff, o)
	}
}

func (w *world) told(run string) string {
	w.Helper()
	records, err := w.t.ReadHistory(w.ctx, "wf-"+run)
	w.must(err)
	s := ""
	for _, r := range records {
		s += fmt.Sprintf("%s[%s] ", r.Kind, r.Payload)
	}
	return s
}

// EV-20, EV-23, EV-55, EV-58, EV-59.
func TestEventsMeetWaitsBothWaysRound(t *testing.T) {
	w := newWorld(t)
	w.start("r1")
	w.start("r2")

	e1 := w.buffer("e1", "1")
	w.outcomes("nothing waits", w.offer(e1), "no_waiter ")
	r := w.register("r1", "pay", 0, "1")
	if r.Outcome != store.RegisterAnswered || string(r.Answer.Payload) != "p-e1" || r.Answer.ContentType != "text/plain" || r.Seq != 3 || len(r.Notices.Resume) != 1 {
		t.Fatalf("event first: %+v", r)
	}
	again := w.register("r1", "pay", 0, "1")
	if again.Outcome != store.RegisterAnswered || string(again.Answer.Payload) != "p-e1" || again.Seq != 3 {
		t.Fatalf("again: %+v", again)
	}
	if r := w.register("r2", "pay", 0, "2"); r.Outcome != store.RegisterWaiting || r.Number == 0 || r.Seq != 2 || !r.Notices.Empty() {
		t.Fatalf("wait first: %+v", r)
	}
	e2 := w.buffer("e2", "2", "9")
	o := w.offer(e2, e2, e1)
	w.outcomes("offered twice", o, "delivered already_delivered already_delivered ")
	if o.Items[0].Seq != 3 || !o.Items[0].Resume || !o.Items[1].Woken || !o.Items[2].Woken || len(o.Notices.Resume) != 2 || o.Items[2].Queue != "default" {
		t.Fatalf("%+v", o)
	}
	w.acquire("r2", "a")
	if o := w.offer(e2); o.Items[0].Woken || o.Items[0].Seq != 3 {
		t.Fatalf("after a driver took the run: %+v", o)
	}
	if got, want := w.told("r2"), "run.started[] wait.registered[] wait.answered[p-e2] "; got != want {
		t.Fatal(got)
	}
}

// EV-56, EV-66, EV-39, EV-38: the oldest wait is taken though its run is leased; the next event goes to the next wait.
func TestAClaimParksAtALeasedRun(t *testing.T) {
	w := newWorld(t)
	w.start("r1")
	w.start("r2")
	l := w.acquire("r1", "a")
	w.register("r1", "pay", l.Epoch, "1")
	w.register("r2", "pay", 0, "1")
	e1, e2 := w.buffer("e1", "1"), w.buffer("e2", "1")
	o := w.offer(e1)
	w.outcomes("leased", o, "parked ")
	if o.Items[0].Remaining <= 0 || o.Items[0].Wait.RunID != "r1" {
		t.Fatalf("%+v", o.Items[0])
	}
	w.outcomes("again", w.offer(e1, e2), "parked delivered ")
	c, err := w.t.ClaimFor(w.ctx, rendezvous.WaitID{RunID: "r1", Effect: "pay"}, time.Time{})
	w.must(err)
	if !c.Again || string(c.Event.Payload) != "p-e1" {
		t.Fatalf("%+v", c)
	}
	r := w.register("r1", "pay", l.Epoch, "1")
	if r.Outcome != store.RegisterAnswered || string(r.Answer.Payload) != "p-e1" || len(r.Notices.Resume) != 0 {
		t.Fatalf("the driver asks again: %+v", r)
	}
}

// EV-28, EV-29, EV-34, EV-31.
func TestOlderPairsComeFirst(t *testing.T) {
	w := newWorld(t)
	for _, run := range []string{"r1", "r2", "r3"} {
		w.start(run)
	}
	w.register("r1", "pay", 0, "b")
	w.register("r2", "pay", 0, "a")
	e1 := w.buffer("e1", "a", "b")
	claim := func(run string) string {
		c, err := w.t.ClaimFor(w.ctx, rendezvous.WaitID{RunID: run, Effect: "pay"}, time.Time{})
		w.must(err)
		if c.Event == nil {
			return "nothing"
		}
		return c.Event.ID
	}
	if got := claim("r2") + claim("r1") + claim("r2"); got != "nothinge1nothing" {
		t.Fatal(got)
	}
	e2, e3 := w.buffer("e2", "a"), w.buffer("e3", "a")
	m, err := w.t.MatchWaiter(w.ctx, *e3.Event, time.Time{})
	w.must(err)
	if m.Outcome != store.MatchOlder || m.Older.ID != "e2" {
		t.Fatalf("%+v", m)
	}
	if m, err = w.t.MatchWaiter(w.ctx, *e1.Event, time.Time{}); err != nil || m.Outcome != store.MatchClaimed || m.RunID != "r1" {
		t.Fatalf("%+v %v", m, err)
	}
	w.outcomes("the younger pulls in the older", w.offer(e3), "no_waiter +delivered:e2>r2 ")
	w.outcomes("claimed before, free now", w.offer(e1, e2), "delivered already_delivered ")
	if r := w.register("r3", "pay", 0, "a", "z"); r.Outcome != store.RegisterAnswered || string(r.Answer.Payload) != "p-e3" {
		t.Fatalf("%+v", r)
	}
	if m, err = w.t.MatchWaiter(w.ctx, *e3.Event, time.Time{}); err != nil || m.Outcome != store.MatchConsumed || m.Seq != 3 {
		t.Fatalf("%+v %v", m, err)
	}
}

// EV-84: a contested event goes to its older wait first, and the registration's second look takes the next.
func TestARegistrationMakesOlderPairsInItsSecondLook(t *testing.T) {
	w := newWorld(t)
	for _, run := range []string{"r0", "r1"} {
		w.start(run)
	}
	w.register("r0", "pay", 0, "a")
	w.buffer("e1", "a")
	w.buffer("e2", "b")
	l := w.acquire("r1", "a")
	r := w.register("r1", "pay", l.Epoch, "a", "b")
	if r.Outcome != store.RegisterAnswered || string(r.Answer.Payload) != "p-e2" || len(r.Also) != 1 || r.Also[0].Event.ID != "e1" || r.Also[0].Wait.RunID != "r0" {
		t.Fatalf("%+v", r)
	}
	if len(r.Notices.Resume) != 1 || r.Notices.Resume[0].RunID != "r0" {
		t.Fatalf("%+v", r.Notices)
	}
}

// EV-19, EV-21, EV-26, G7, G8.
func TestWhatMayNotBeRegistered(t *testing.T) {
	w := newWorld(t)
	w.start("r1")
	w.register("r1", "pay", 0, "1")
	register := func(r store.Registration) error {
		_, err := w.t.RegisterWait(w.ctx, r, time.Time{})
		return err
	}
	w.want("other keys", register(registrationOf("r1", "pay", 0, "2")), rendezvous.ErrConflict)
	w.want("unknown", register(registrationOf("rx", "pay", 0, "2")), rendezvous.ErrNotFound)
	second := registrationOf("r1", "pay", 0, "1")
	second.Attempt = 2
	w.want("a second attempt", register(second), rendezvous.ErrConflict)
	w.want("an invented epoch", register(registrationOf("r1", "other", 7, "2")), rendezvous.ErrFenced)
	_, err := w.t.PauseRun(w.ctx, "r1", &rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}, "", time.Time{})
	w.must(err)
	w.want("paused", register(registrationOf("r1", "other", 0, "2")), rendezvous.ErrConflict)
	if r := w.register("r1", "pay", 0, "1"); r.Outcome != store.RegisterWaiting {
		t.Fatalf("paused, again: %+v", r)
	}
	if got := w.told("r1"); got != "run.started[] wait.registered[] run.paused[] " {
		t.Fatal(got)
	}
	w.outcomes("a paused run is answered without a notice", w.offer(w.buffer("e1", "1")), "delivered ")
	s, err := w.t.Subscribe(w.ctx, registrationOf("r1", "pay", 0, "1"), time.Time{})
	if err != nil || s.Closed != rendezvous.ClosedAnswered || s.Seq != 4 {
		t.Fatalf("%+v %v", s, err)
	}
	w.start("r2")
	w.acquire("r2", "a")
	w.want("leased", register(registrationOf("r2", "pay", 0, "1")), rendezvous.ErrLeaseHeld)
}

// EV-87: repeats in a batch see what the first did; a bad one fails alone.
func TestABatchOfRegistrations(t *testing.T) {
	w := newWorld(t)
	w.start("r1")
	w.start("r2")
	w.buffer("e1", "1")
	item := func(r store.Registration) store.RegisterItem {
		return store.RegisterItem{Tenant: "default", Registration: r}
	}
	out, err := w.s.RegisterBatch(w.ctx, []store.RegisterItem{
		item(registrationOf("r1", "a", 0, "1")), item(registrationOf("r1", "a", 0, "1")), item(registrationOf("r1", "a", 0, "2")),
		item(registrationOf("rx", "a", 0, "1")), item(registrationOf("r2", "a", 0, "1")), item(registrationOf("r2", "", 0, "1")),
	}, time.Time{})
	w.must(err)
	got := ""
	for _, r := range out {
		got += string(r.Outcome) + string(rendezvous.CodeOf(r.Err)) + " "
	}
	if got != "answered answered conflict not_found waiting invalid " {
		t.Fatal(got)
	}
	if out[1].Answer == nil || out[1].Seq != 3 || out[0].Seq != 3 {
		t.Fatalf("%+v", out)
	}
}

// EV-40, EV-52, kept and expired events; a wait offered.
func TestWhatAnOfferSays(t *testing.T) {
	w := newWorld(t)
	w.start("r1")
	wait := func(run, effect string) store.OfferItem {
		return store.OfferItem{Tenant: "default", Wait: &rendezvous.WaitID{RunID: run, Effect: effect}}
	}
	expires := rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: "x"}, Type: "paid", Keys: orderKeys("1"), ExpiresAt: w.clock.Now().Add(time.Second)}
	_, err := w.t.Buffer(w.ctx, expires, time.Time{})
	w.must(err)
	w.clock.Advance(time.Second)
	r := w.register("r1", "a", 0, "1")
	if r.Outcome != store.RegisterWaiting {
		t.Fatalf("%+v", r)
	}
	kept := rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: "kept"}, Type: "paid"}
	d, err := w.t.DeliverTo(w.ctx, "r1", rendezvous.Event{EventID: kept.EventID, Type: "sent"}, true, time.Time{})
	if err != nil || d.Outcome != store.DeliveryKept {
		t.Fatalf("%+v %v", d, err)
	}
	bad := store.OfferItem{Tenant: "default"}
	unknown := store.OfferItem{Tenant: "default", Event: &rendezvous.EventID{Source: "shop", ID: "?"}}
	w.outcomes("all sorts", w.offer(
		store.OfferItem{Tenant: "default", Event: &expires.EventID}, wait("r1", "a"), wait("r1", "?"), bad, unknown, store.OfferItem{Tenant: "default", Event: &kept.EventID},
	), "expired no_event closed failed unknown no_waiter ")
	sent := registrationOf("r1", "b", 0)
	sent.Type = "sent"
	if r, err := w.t.RegisterWait(w.ctx, sent, time.Time{}); err != nil || r.Outcome != store.RegisterAnswered {
		t.Fatalf("a kept event: %+v %v", r, err)
	}
	w.outcomes("answered", w.offer(wait("r1", "b")), "closed ")
}

// A take holds an unmet event back, longer each time; an offer settles it.
func TestUnmetPairsAreTaken(t *testing.T) {
	w := newWorld(t)
	w.start("r1")
	w.register("r1", "a", 0, "1")
	e := w.buffer("e1", "1")
	take := func() int {
		page, _, err := w.s.TakeUnmet(w.ctx, 2*time.Second, 0, 0, "")
		w.must(err)
		for _, p := range page.Rows {
			if p.Wait.RunID != "r1" || p.Event.ID != "e1" {
				t.Fatalf("%+v", p)
			}
		}
		return len(page.Rows)
	}
	if n := take(); n != 0 {
		t.Fatal("within the grace")
	}
	w.clock.Advance(3 * time.Second)
	if take() != 1 || take() != 0 {
		t.Fatal("taken once")
	}
	w.clock.Advance(31 * time.Second)
	if take() != 1 {
		t.Fatal("the take ran out")
	}
	w.clock.Advance(31 * time.Second)
	if take() != 0 {
		t.Fatal("the second take holds twice as long")
	}
	got, err := w.t.LookupEvent(w.ctx, *e.Event, false)
	if err != nil || got.OfferFailures != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	w.outcomes("offered", w.offer(e), "delivered ")
	w.clock.Advance(time.Hour)
	if take() != 0 {
		t.Fatal("answered")
	}
}

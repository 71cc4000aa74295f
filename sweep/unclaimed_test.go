package sweep_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// letters are the ids of acme's dead letters by reason.
func (p *plane) letters() map[rendezvous.DeadReason][]string {
	p.t.Helper()
	page, err := p.tenant.DeadLetters(p.t.Context(), store.DeadFilter{}, 0, "", false)
	must(p.t, err)
	found := map[rendezvous.DeadReason][]string{}
	for _, l := range page.Letters {
		found[l.Reason] = append(found[l.Reason], l.ID)
	}
	return found
}

// SW-1, SW-5: what nobody wanted is a dead letter when its window is over, and not a microsecond before; an expiry of its own is kept instead of the window, whether
// it comes earlier or later.
func TestThePassUnclaimedKeepsToTheWindow(t *testing.T) {
	p := newPlane(t)
	began := p.clock.Now()
	p.buffer("plain")
	for id, after := range map[string]time.Duration{"early": 10 * time.Minute, "late": 2 * time.Hour} {
		_, err := p.tenant.Buffer(t.Context(), rendezvous.Event{EventID: eventID(id), Type: "own", ExpiresAt: began.Add(after)}, time.Time{})
		must(t, err)
	}
	w := p.sweep(nil, sweep.Config{})
	for _, s := range []struct {
		at    time.Duration
		dead  string // "" for none
		as    rendezvous.DeadReason
		typed string
	}{
		{10*time.Minute - time.Microsecond, "", "", ""},
		{10 * time.Minute, "early", rendezvous.DeadExpired, "own"},
		{time.Hour - time.Microsecond, "", "", ""},
		{time.Hour, "plain", rendezvous.DeadUnclaimed, "t"},
		{2*time.Hour - time.Microsecond, "", "", ""},
		{2 * time.Hour, "late", rendezvous.DeadExpired, "own"},
		{3 * time.Hour, "", "", ""},
	} {
		got := pass(t, w.tick(began.Add(s.at).Sub(p.clock.Now())), sweep.Unclaimed)
		switch {
		case s.dead == "" && got.Handed != 0:
			t.Errorf("at %s: %+v", s.at, got)
		case s.dead != "" && (got.Handed != 1 || got.Done != 1 || got.Types[s.typed] != 1 || !slices.Contains(p.letters()[s.as], s.dead)):
			t.Errorf("at %s: %+v, letters %v", s.at, got, p.letters())
		}
	}
	if r := w.Last(); r.Depths.DeadLetters != 3 || !attends(r, "dead_letters", "") {
		t.Errorf("depths %+v, attention %+v", r.Depths, r.Attention)
	}
}

// SW-2, S9: a window longer than time itself retires nothing and fails no tick.
func TestAWindowLongerThanTimeProtects(t *testing.T) {
	p := newPlane(t)
	p.buffer("run-1")
	w := p.sweep(nil, sweep.Config{Window: 1<<63 - 1})
	for range 5 {
		if got := pass(t, w.tick(1000*time.Hour), sweep.Unclaimed); got.Err != nil || got.Handed > 0 {
			t.Fatalf("reported %+v", got)
		}
	}
	if s := p.state("run-1"); s != rendezvous.EventLive {
		t.Errorf("the event is %s", s)
	}
}

// alone is a store in which the pass unmet finds nothing, as when it fails.
type alone struct{ Store }

func (alone) TakeUnmet(context.Context, time.Duration, int, time.Duration, string) (store.Taken[store.UnmetPair], string, error) {
	return store.Taken[store.UnmetPair]{}, "", nil
}

// SW-6: the window is over and the wait is open: the event is offered, not retired, also where the pass unmet did not find the pair.
func TestAnEventThatSomebodyWaitsForIsOfferedNotRetired(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	p.buffer("nobody")
	p.sender.take()
	w := p.sweep(alone{noNews{p.all()}}, sweep.Config{})
	got := pass(t, w.tick(2*time.Hour), sweep.Unclaimed)
	if got.Done != 1 || got.Deferred != 1 || p.state("nobody") != rendezvous.EventDead || p.state("run-1") != rendezvous.EventLive {
		t.Fatalf("reported %+v; nobody's is %s, the run's %s", got, p.state("nobody"), p.state("run-1"))
	}
	var offered []store.OfferItem
	for _, e := range p.sender.take().Events {
		offered = append(offered, store.OfferItem{Tenant: e.Tenant, Event: &e.EventID})
	}
	if len(offered) != 1 || *offered[0].Event != eventID("run-1") {
		t.Fatalf("offered %+v", offered)
	}
	_, err := p.store.OfferBatch(t.Context(), offered, time.Time{})
	must(t, err)
	if s, n := p.state("run-1"), p.answers("run-1"); s != rendezvous.EventConsumed || n != 1 {
		t.Errorf("the event is %s, %d answers", s, n)
	}
}

// unofferable is a store in which one event's offer never comes back: its worker dies of it.
type unofferable struct {
	Store
	id string
}

func (u unofferable) OfferBatch(ctx context.Context, items []store.OfferItem, at time.Time) (store.Offered, error) {
	var good []store.OfferItem
	for _, i := range items {
		if i.Event.ID != u.id {
			good = append(good, i)
		}
	}
	var got store.Offered
	if len(good) > 0 {
		var err error
		if got, err = u.Store.OfferBatch(ctx, good, at); err != nil {
			return got, err
		}
	}
	out := make([]store.Offer, len(items))
	for i, item := range items {
		out[i] = store.Offer{Outcome: store.OfferFailed}
		if item.Event.ID != u.id {
			out[i], got.Items = got.Items[0], got.Items[1:]
		}
	}
	got.Items = out
	return got, nil
}

// SW-22: an event whose offer always fails, the first in line: the later ones are offered in the same tick; it ends as undeliverable, listed and to be requeued.
func TestAnEventThatCannotBeOfferedEndsUndeliverable(t *testing.T) {
	p := newPlane(t)
	for _, run := range []string{"bad", "good"} {
		p.start(run)
		p.await(run, 0)
		p.buffer(run)
	}
	w := p.sweep(unofferable{p.all(), "bad"}, sweep.Config{Window: 1000 * time.Hour})
	w.tick(3 * time.Second)
	if s := p.state("good"); s != rendezvous.EventConsumed {
		t.Fatalf("behind the bad one the event is %s", s)
	}
	w.until(11*time.Minute, "the dead letter", func(r sweep.Report) bool { return p.state("bad") == rendezvous.EventDead })
	if got := p.letters()[rendezvous.DeadUndeliverable]; !slices.Equal(got, []string{"bad"}) {
		t.Errorf("letters %v", p.letters())
	}
	if r := w.tick(time.Second); !attends(r, "undeliverable", "") || !attends(r, "dead_letters", "") {
		t.Errorf("attention %+v", r.Attention)
	}
	done, err := p.tenant.RequeueDeadLetters(t.Context(), store.Selection{Events: []rendezvous.EventID{eventID("bad")}}, store.Requeue{},
		rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}, "op-1", time.Time{})
	must(t, err)
	if len(done.Items) != 1 || done.Items[0].Outcome != store.RequeueRequeued {
		t.Errorf("requeued %+v", done)
	}
	healed := p.sweep(nil, sweep.Config{})
	healed.tick(7 * time.Second)
	if s := p.state("bad"); s != rendezvous.EventConsumed {
		t.Errorf("requeued, with a worker that lives, the event is %s", s)
	}
}

// SW-8, S7: 10,000 due events go page by page within a tick, and a pass with more than its pages says so.
func TestManyUnclaimedEventsGoPageByPage(t *testing.T) {
	p := newPlane(t)
	const n = 10_500
	for at := 0; at < n; at += 500 {
		items := make([]store.BufferItem, 500)
		for i, id := range runs("event", at+500)[at:] {
			items[i] = store.BufferItem{Tenant: "acme", Event: rendezvous.Event{EventID: eventID(id), Type: "t", Keys: []rendezvous.Key{{Namespace: "k", Value: id}}}}
		}
		_, err := p.store.BufferBatch(t.Context(), items, time.Time{})
		must(t, err)
	}
	w := p.sweep(nil, sweep.Config{})
	first := pass(t, w.tick(2*time.Hour), sweep.Unclaimed)
	second := pass(t, w.tick(time.Second), sweep.Unclaimed)
	if first.Done != 10_000 || first.Pages != 20 || !first.Saturated || second.Done != 500 || second.Saturated {
		t.Errorf("reported %+v, %+v", first, second)
	}
}

package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// eventsNews are the cases of looks at what became matchable lately (SW-34): TakeUnmet's walk through all is elsewhere all the while.
var eventsNews = []Case{
	{Name: "SW-34 SW-20 a notice lost of any origin is found by the next look at the news", Run: newsOfEveryOrigin},
	{Name: "SW-34 what a look is too early for, a later one finds, however much later", Run: newsTooEarly},
	{Name: "SW-34 a look that is cut goes on, hides nothing, and ends", Run: newsCut},
	{Name: "SW-34 SW-25 a page of news is fair by tenant", Run: newsFair},
	{Name: "SW-34 EV-60 a take that ran out is none of the news", Run: newsLostTake},
	{Name: "SW-34 a wait that names a sender leads to that sender's event", Run: newsFrom},
	{Name: "SW-34 limits of a look at the news are refused by name", Run: newsLimits},
}

// news is a pass that looks at what is new and nowhere else.
type news struct {
	t      testing.TB
	h      *Harness
	cursor string
}

// news is a pass that began long ago: what is stored by now is none of its news.
func (h *Harness) news(t testing.TB) *news {
	n := &news{t, h, ""}
	for range 4 {
		h.Advance(time.Minute)
		n.take(0)
	}
	eq(t, "events left apart of what is old", len(n.take(0).Rows), 0)
	return n
}

// take is one page.
func (n *news) take(limit int) store.Taken[store.UnmetPair] {
	n.t.Helper()
	page, next, err := n.h.Store.TakeNews(ctx, grace, limit, sweepHold, n.cursor)
	done(n.t, "take news", err)
	if next == "" {
		n.t.Fatal("a page of news has no next")
	}
	n.cursor = next
	return page
}

// look offers what one page finds a little more than the grace from now, and fails the test unless that is the one event, or none.
func (n *news) look(want rendezvous.Event) {
	n.t.Helper()
	n.h.Advance(grace + time.Second)
	var found []string
	var all store.Notices
	for _, p := range n.take(0).Rows {
		found, all.Events = append(found, p.Event.ID), append(all.Events, p.Event)
	}
	var ids []string
	if want.ID != "" {
		ids = []string{want.ID}
	}
	eq(n.t, "events found", found, ids)
	n.h.Offer(n.t, all)
}

func newsOfEveryOrigin(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := func(name string) rendezvous.Key { return K("order", name) }
	expiring := func(e rendezvous.Event) rendezvous.Event {
		e.ExpiresAt = h.Now(t).Add(24 * time.Hour)
		return e
	}
	// What is old when the pass looks.
	letter, late := f.Kill(EventOf("paid", key("requeue"))), EventOf("paid", key("expiring requeue"))
	late.ExpiresAt = h.Now(t).Add(time.Second)
	f.Put(late)
	h.Advance(2 * time.Second)
	f.Sweep(time.Hour)
	f.WantDead(late.EventID, rendezvous.DeadExpired)
	stored := map[string]rendezvous.Event{}
	for _, name := range []string{"registration", "expiring registration"} {
		stored[name] = EventOf("paid", key(name))
	}
	stored["expiring registration"] = expiring(stored["expiring registration"])
	for _, e := range stored {
		f.Put(e)
	}
	waiting := map[string]*Flow{}
	for _, name := range []string{"arrival", "expiring arrival", "requeue", "expiring requeue"} {
		waiting[name] = f.Start()
		waiting[name].Waits("w", "paid", key("no other"), key(name))
	}
	targeted := f.Start()
	kept := EventOf("paid")
	eq(t, "kept", must(f.DeliverTo(ctx, targeted.ID, kept, true, now))(t, "deliver").Outcome, store.DeliveryKept)
	// A leased run parks the event: it can be released, and it can be erased.
	parked := func(name string) (*Driver, rendezvous.Event) {
		d := f.Start().DriveFor(time.Hour)
		d.Waits("w", "paid", key(name))
		e := EventOf("paid", key(name))
		f.Send(e)
		f.WantState(e.EventID, rendezvous.EventClaimed)
		return d, e
	}
	releasing, released := parked("release")
	reopening, erased := parked("reopening")
	second := f.PutNew("paid", key("reopening"))
	next := f.Start()
	next.Waits("w", "paid", key("release"))

	n := h.news(t)
	n.look(rendezvous.Event{})
	for _, name := range []string{"arrival", "expiring arrival"} {
		e := EventOf("paid", key(name), key("of its own"))
		if strings.HasPrefix(name, "expiring") {
			e = expiring(e)
		}
		f.Put(e)
		n.look(e)
		waiting[name].WantAnswered("w", e)
	}
	for name, e := range stored {
		r := f.Start()
		r.Subscribes("w", "paid", key("of its own"), key(name))
		n.look(e)
		r.WantAnswered("w", e)
	}
	targeted.Subscribes("w", "paid")
	n.look(kept)
	targeted.WantAnswered("w", kept)

	f.RequeueAll(letter.EventID)
	n.look(letter)
	waiting["requeue"].WantAnswered("w", letter)
	_, err := f.RequeueDeadLetters(ctx, store.Selection{Events: []rendezvous.EventID{late.EventID}}, store.Requeue{ExpiresAt: h.Now(t).Add(time.Hour)}, *kim, ID("op"), now)
	done(t, "requeue with a new expiry", err)
	n.look(late)
	waiting["expiring requeue"].WantAnswered("w", late)

	releasing.Conclude(rendezvous.StatusCompleted)
	n.look(released)
	next.WantAnswered("w", released)

	f.Erase(erased.EventID)
	n.look(second)
	reopening.Suspend()
	reopening.WantAnswered("w", second)
}

// newsTooEarly has looks right behind the arrival, within its grace: afterwards its number is one that was drawn before them.
func newsTooEarly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, pause := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, time.Hour} {
		for looks := range 4 {
			n, r, key := h.news(t), f.Start(), K("order", ID("order"))
			r.Waits("w", "paid", key)
			e := f.PutNew("paid", key)
			for range looks {
				n.take(0)
			}
			h.Advance(pause)
			n.look(e)
			r.WantAnswered("w", e)
		}
	}
}

// newsCut has more events left apart than a page holds, some of them behind events that stand beside a wait and do not meet it, as they are another source's.
func newsCut(t *testing.T, h *Harness) {
	f := h.Fix(t)
	n := h.news(t)
	owed := map[string]int{}
	picky := f.Start()
	w := picky.Wait("w", "paid", K("order", "picky"))
	w.From = "bank"
	picky.Register(w)
	for range 5 {
		f.PutNew("paid", K("order", "picky"))
	}
	for i := range 4 {
		key := K("order", ID("order"))
		r := f.Start()
		if i%2 == 0 {
			r.Waits("w", "paid", key)
		}
		owed[f.PutNew("paid", key).ID] = 0
		if i%2 == 1 {
			r.Subscribes("w", "paid", key)
		}
	}
	h.Advance(grace + time.Second)
	pages := 0
	for page := n.take(2); ; page = n.take(2) {
		for _, p := range page.Rows {
			owed[p.Event.ID]++
		}
		if pages++; !page.Saturated || pages == 20 {
			break
		}
	}
	if pages == 20 {
		t.Fatal("the look never ends")
	}
	for id, times := range owed {
		eq(t, "times that "+id+" was taken", times, 1)
	}
	eq(t, "events that were owed", len(owed), 4)
}

func newsFair(t *testing.T, h *Harness) {
	n := h.news(t)
	busy, other := h.FixOf(t, ID("busy")), h.FixOf(t, ID("other"))
	for i := range 7 {
		f, key := busy, K("order", ID("order"))
		if i == 6 {
			f = other
		}
		f.Start().Waits("w", "paid", key)
		f.PutNew("paid", key)
	}
	h.Advance(grace + time.Second)
	tenants := map[string]int{}
	page := n.take(4)
	for _, p := range page.Rows {
		tenants[p.Tenant]++
	}
	eq(t, "taken", tenants, map[string]int{busy.Name(): 3, other.Name(): 1})
	eq(t, "more", page.Saturated, true)
}

func newsLostTake(t *testing.T, h *Harness) {
	f := h.Fix(t)
	n, r, key := h.news(t), f.Start(), K("order", "1")
	r.Waits("w", "paid", key)
	e := f.PutNew("paid", key)
	h.Advance(grace + time.Second)
	taken := n.take(0).Rows
	eq(t, "taken", len(taken), 1)
	eq(t, "pair", taken[0].Wait, r.WaitID("w"))
	eq(t, "taken again", len(n.take(0).Rows), 0)
	done(t, "give back", h.Store.GiveBackUnmet(ctx, taken, time.Second))
	h.Advance(time.Second)
	eq(t, "taken after it was given back", len(n.take(0).Rows), 1)
	h.Advance(sweepHold)
	eq(t, "taken when its take ran out", len(n.take(0).Rows), 0)
	eq(t, "failures", f.Stored(e.EventID).OfferFailures, 0)
	page, _, err := h.Store.TakeUnmet(ctx, grace, 0, 0, "")
	done(t, "take unmet", err)
	eq(t, "taken by the walk through all", len(page.Rows), 1)
	eq(t, "failures", f.Stored(e.EventID).OfferFailures, 1)
}

func newsFrom(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	for range 3 {
		f.PutNew("paid", key)
	}
	e := EventOf("paid", key)
	e.Source = "bank"
	f.Put(e)
	n, r := h.news(t), f.Start()
	w := r.Wait("w", "paid", key)
	w.From = "bank"
	must(f.Subscribe(ctx, store.Registration{Wait: w}, now))(t, "subscribe")
	n.look(e)
	r.WantAnswered("w", e)
}

func newsLimits(t *testing.T, h *Harness) {
	take := func(grace time.Duration, limit int, hold time.Duration, cursor string) error {
		_, _, err := h.Store.TakeNews(ctx, grace, limit, hold, cursor)
		return err
	}
	code(t, "a negative limit", take(grace, -1, 0, ""), rendezvous.CodeInvalid, "field", "limit")
	code(t, "a negative grace", take(-1, 0, 0, ""), rendezvous.CodeInvalid, "field", "grace")
	for _, hold := range []time.Duration{-time.Second, 301 * time.Second, time.Millisecond} {
		code(t, fmt.Sprint("a hold of ", hold), take(grace, 0, hold, ""), rendezvous.CodeInvalid, "field", "hold", "limit", "5m0s", "value", hold.String())
	}
	for _, cursor := range []string{"no cursor", "17"} {
		code(t, "cursor "+cursor, take(grace, 0, 0, cursor), rendezvous.CodeInvalid, "field", "cursor")
	}
}

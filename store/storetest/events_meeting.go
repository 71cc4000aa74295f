package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// eventsMeeting are the cases of who meets whom (EV-28..EV-44, EV-84). The random streams are in meeting_model.go.
var eventsMeeting = []Case{
	{Name: "EV-28 the younger of two waits claims nothing", Run: youngerClaimsNothing},
	{Name: "EV-29 matching twice is matched, then claimed", Run: matchingTwice},
	{Name: "EV-30 two events offered at once to one wait: one answers, the older", Run: twoEventsOneWait},
	{Name: "EV-31 the older wait wins, on whatever key", Run: olderWaitWins},
	{Name: "EV-32 of one instant the lower number wins", Run: equalInstants},
	{Name: "EV-33 the older event wins, on whatever key", Run: olderEventWins},
	{Name: "EV-34 an older event has precedence at the wait", Run: olderEventFirst},
	{Name: "EV-34 of more than 500 older pairs the rest is later", Run: pulledInLater},
	{Name: "EV-35 a wait naming a sender takes its own", Run: namedSender},
	{Name: "EV-36 right type, wrong key", Run: wrongKey},
	{Name: "EV-37 a sealed run's wait is passed over", Run: sealedWaitPassed},
	{Name: "EV-38 a parked wait is not matched again", Run: parkedWaitPassed},
	{Name: "EV-39 matching parks, and claiming gives the event again", Run: matchingParks},
	{Name: "EV-40 an expired event meets nobody", Run: expiredMeetsNobody},
	{Name: "EV-40 an expiry at the very start of time is past, not none", Run: expiredAtTheStart},
	{Name: "EV-40 claimed in time, expired while parked: delivered", Run: expiredWhileParked},
	{Name: "EV-41 registration and arrival at once always meet", Run: registrationMeetsArrival},
	{Name: "EV-41 many registrations and arrivals at once leave no pair apart", Run: manyMeetAtOnce},
	{Name: "EV-42 an event right behind the start of its run is answered", Run: eventBehindStart},
	{Name: "EV-43 an event for a later wait is there when that registers", Run: eventForLaterWait},
	{Name: "EV-44 equal waits and events of two tenants are strangers", Run: tenantsAreStrangers},
	{Name: "EV-84 a registration makes the older pairs first", Run: registrationPullsIn},
}

func youngerClaimsNothing(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, keys := range [][2][]rendezvous.Key{
			{{K("order", "1")}, {K("order", "1")}},
			{{K("other", "1"), K("customer", "2")}, {K("order", "1")}}, // the event has a key of each
		} {
			older, younger := f.Start(), f.Start()
			older.Waits("w", "paid", keys[0]...)
			younger.Waits("w", "paid", keys[1]...)
			e := f.PutNew("paid", K("customer", "2"), K("order", "1"))
			younger.WantNothing("w")
			f.WantLive(e)
			older.WantClaim("w", e, false)
			younger.WantNothing("w")
			younger.WantOpen("w")
			older.WantParked("w", e)
			older.Redelivered("w")
			older.WantAnswered("w", e)
			younger.WantNothing("w")
			younger.Conclude(rendezvous.StatusCompleted)
		}
	}
}

func matchingTwice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "1"))
	_, err := f.MatchWaiter(ctx, rendezvous.EventID{Source: "shop", ID: ID("unknown")}, now)
	code(t, "match an unknown event", err, rendezvous.CodeNotFound)
	_, err = h.FixOf(t, "globex").MatchWaiter(ctx, e.EventID, now)
	code(t, "match another tenant's event", err, rendezvous.CodeNotFound)
	f.Matched(e, r, "w")
	m := f.Match(e.EventID)
	eq(t, "outcome of matching again", m.Outcome, store.MatchClaimed)
	eq(t, "place", m.Place, store.Place{State: rendezvous.EventClaimed, RunID: r.ID, Effect: "w"})
	r.WantParked("w", e)
	r.WantKinds(rendezvous.WaitRegistered) // it does not journal
	r.Redelivered("w")
	m = f.Match(e.EventID)
	eq(t, "outcome of matching the consumed", m.Outcome, store.MatchConsumed)
	eq(t, "place", m.Place, f.Stored(e.EventID).Place)
}

func twoEventsOneWait(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i := range h.Rounds(t) {
		f := fs[i%2]
		r, key := f.Start(), K("order", ID("order"))
		r.Waits("w", "paid", K("other", key.Value), key)
		first, second := f.PutNew("paid", key), f.PutNew("paid", key, K("other", key.Value))
		offer := func(events ...rendezvous.Event) func() {
			return func() { _, _ = h.Store.OfferBatch(ctx, f.Items(events...), now) }
		}
		Race(t, offer(second), offer(first), offer(second, first))
		r.WantAnswered("w", first) // O2, whichever was offered first
		f.WantLive(second)
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		eq(t, "outcome of a later wait", f.Start().Register(rendezvous.Wait{
			WaitID: rendezvous.WaitID{RunID: r.ID, Effect: "w2"}, Type: "paid",
			Keys: []rendezvous.Key{key},
		}).Outcome, store.RegisterAnswered)
		r.WantAnswered("w2", second)
	}
	for i := range h.Rounds(t) { // both arrive in the race
		f := fs[i%2]
		r, key := f.Start(), K("order", ID("order"))
		r.Waits("w", "paid", key)
		events := []rendezvous.Event{EventOf("paid", key), EventOf("paid", key)}
		var errs [2]error
		send := func(i int) func() {
			return func() {
				if _, errs[i] = f.Buffer(ctx, events[i], now); errs[i] == nil {
					_, errs[i] = h.Store.OfferBatch(ctx, f.Items(events[i]), now)
				}
			}
		}
		Race(t, send(0), send(1))
		done(t, "send the first", errs[0])
		done(t, "send the second", errs[1])
		won, lost := events[0], events[1]
		if f.Stored(won.EventID).State == rendezvous.EventLive {
			won, lost = lost, won
		}
		r.WantAnswered("w", won)
		f.WantLive(lost)
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
	}
}

// orders are two keys in both orders, and beside others.
func orders(a, b rendezvous.Key) [][]rendezvous.Key {
	return [][]rendezvous.Key{{a, b}, {b, a}, {K("x", "1"), b, K("y", "2"), a}, {a, K("z", "3"), b}}
}

// claimers give an event to a wait in each way there is that begins with the event. They answer the wait that has it.
var claimers = []struct {
	name string
	do   func(f *Fix, e rendezvous.Event) *rendezvous.WaitID
}{
	{"MatchWaiter", func(f *Fix, e rendezvous.Event) *rendezvous.WaitID {
		if m := f.Match(e.EventID); m.Outcome == store.MatchMatched {
			return &m.Wait.WaitID
		}
		return nil
	}},
	{"OfferBatch", func(f *Fix, e rendezvous.Event) *rendezvous.WaitID {
		if o := f.OfferEvent(e.EventID); o.Outcome == store.OfferDelivered || o.Outcome == store.OfferParked {
			return &o.Wait
		}
		return nil
	}},
}

func olderWaitWins(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, by := range claimers {
		n := 0
		for _, event := range orders(K("a", "1"), K("b", "1")) {
			for _, swap := range []bool{false, true} {
				older, younger := f.Start(), f.Start()
				on, off := K("b", "1"), K("a", "1")
				if swap {
					on, off = off, on
				}
				older.Waits("z", "paid", K("only", "z"), on)
				younger.Waits("a", "paid", off, K("only", "a"))
				third := f.Start()
				third.Waits("b", "paid", on, off)
				e := f.PutNew("paid", event...)
				got := by.do(f, e)
				eq(t, fmt.Sprintf("wait given by %s, event %v", by.name, event), got, &rendezvous.WaitID{RunID: older.ID, Effect: "z"})
				younger.WantOpen("a")
				third.WantOpen("b")
				for _, r := range []*Flow{older, younger, third} {
					must(f.CancelRun(ctx, r.ID, nil, "", true, now))(t, "cancel")
				}
				_, err := f.ErasePayload(ctx, e.EventID, nil, now)
				done(t, "erase", err)
				n++
			}
		}
		eq(t, "scenes", n, 8)
	}
}

func equalInstants(t *testing.T, h *Harness) {
	for i := range h.Rounds(t) {
		f := h.FixOf(t, fmt.Sprintf("tenant-%d", i))
		at := h.Now(t)
		// Ids that rise and ids that fall with the number: none of them decides.
		ids := []string{"run-a", "run-b", "run-c"}
		if i%2 == 1 {
			slices.Reverse(ids)
		}
		var runs []*Flow
		for _, id := range ids {
			runs = append(runs, f.StartAs(store.Start{WorkflowID: "of-" + id, RunID: id, Type: "order"}))
		}
		var items []store.RegisterItem
		for _, r := range runs {
			items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait("w", "paid", K("k", "1"))}})
		}
		var events []store.BufferItem
		for n := range 3 {
			e := EventOf("paid", K("k", "1"))
			e.ID = fmt.Sprintf("event-%d", n)
			if i%2 == 0 {
				e.ID = fmt.Sprintf("event-%d", 3-n)
			}
			events = append(events, store.BufferItem{Tenant: f.Name(), Event: e})
		}
		if i%4 < 2 { // one by one, stamped with one instant
			for _, item := range items {
				must(f.RegisterWait(ctx, item.Registration, at))(t, "register")
			}
			for _, item := range events {
				must(f.Buffer(ctx, item.Event, at))(t, "buffer")
			}
		} else {
			for _, o := range must(h.Store.RegisterBatch(ctx, items, at))(t, "register a batch") {
				done(t, "register in a batch", o.Err)
			}
			for _, o := range must(h.Store.BufferBatch(ctx, events, at))(t, "buffer a batch") {
				done(t, "buffer in a batch", o.Err)
			}
		}
		rows := f.Listed(store.WaitFilter{})
		slices.SortFunc(events, func(a, b store.BufferItem) int {
			return int(f.Stored(a.Event.EventID).Number - f.Stored(b.Event.EventID).Number)
		})
		for n := range 3 {
			eq(t, "registered_at", rows[n].RegisteredAt, at)
			eq(t, "received_at", f.Stored(events[n].Event.EventID).ReceivedAt, at)
			o := f.OfferEvent(events[n].Event.EventID)
			eq(t, fmt.Sprintf("wait of event %d", n), o.Wait, rows[n].WaitID)
		}
	}
}

func olderEventWins(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		n := 0
		for _, keys := range orders(K("a", "1"), K("b", "1")) {
			for _, on := range [][2]rendezvous.Key{{K("b", "1"), K("a", "1")}, {K("a", "1"), K("b", "1")}} {
				for _, way := range []string{"ClaimFor", "RegisterWait", "offer of the wait"} {
					r := f.Start()
					r.Subscribes("w", "paid", keys...)
					older, younger := f.PutNew("paid", on[0]), f.PutNew("paid", on[1], K("other", "1"))
					switch way {
					case "ClaimFor":
						r.WantClaim("w", older, false)
						r.Redelivered("w")
					case "RegisterWait":
						eq(t, "outcome", r.Register(r.Wait("w", "paid", keys...)).Outcome, store.RegisterAnswered)
					default:
						eq(t, "event given to the wait", f.OfferWait(r.WaitID("w")).Event, older.EventID)
					}
					r.WantAnswered("w", older)
					f.WantLive(younger)
					must(f.ErasePayload(ctx, younger.EventID, nil, now))(t, "erase")
					n++
				}
			}
		}
		eq(t, "scenes", n, 24)
	}
}

func olderEventFirst(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Waits("w", "paid", K("order", "1"), K("customer", "2"))
		older, younger := f.PutNew("paid", K("customer", "2")), f.PutNew("paid", K("order", "1"))
		m := f.Match(younger.EventID)
		eq(t, "outcome of matching the younger", m.Outcome, store.MatchOlder)
		eq(t, "event named", m.Older, older.EventID)
		f.WantLive(older, younger)
		r.WantOpen("w")
		r.WantKinds(rendezvous.WaitRegistered)

		out := f.OfferAll(younger)
		eq(t, "outcome of offering the younger", out.Items[0].Outcome, store.OfferNoWaiter)
		eq(t, "pairs pulled in", len(out.Also), 1)
		eq(t, "outcome of the pulled-in pair", out.Also[0].Outcome, store.OfferDelivered)
		eq(t, "event pulled in", out.Also[0].Event, older.EventID)
		eq(t, "wait of the event pulled in", out.Also[0].Wait, r.WaitID("w"))
		eq(t, "tenant of the event pulled in", out.Also[0].Tenant, f.Name())
		eq(t, "seq of the pulled-in pair", out.Also[0].Seq, r.WantAnswered("w", older).Seq)
		f.WantLive(younger)
		must(f.ErasePayload(ctx, younger.EventID, nil, now))(t, "erase")
	}
	f := h.Fix(t) // O3: W1-E1 and W2-E2, whichever is offered first
	for _, batch := range [][]int{{0}, {1}, {1, 0}, {0, 1}} {
		first, second, key := f.Start(), f.Start(), K("order", ID("order"))
		first.Waits("w", "paid", key)
		second.Waits("w", "paid", key)
		events := []rendezvous.Event{f.PutNew("paid", key), f.PutNew("paid", key)}
		var offered []rendezvous.Event
		for _, i := range batch {
			offered = append(offered, events[i])
		}
		f.OfferAll(offered...)
		f.OfferAll(events...)
		first.WantAnswered("w", events[0])
		second.WantAnswered("w", events[1])
	}
}

func namedSender(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	w := r.Wait("w", "paid", K("order", "1"))
	w.From = "bank"
	eq(t, "outcome", r.Register(w).Outcome, store.RegisterWaiting)
	strange := f.PutNew("paid", K("order", "1")) // from "shop"
	eq(t, "match of a stranger's event", f.Match(strange.EventID).Outcome, store.MatchNoWaiter)
	eq(t, "offer of a stranger's event", f.OfferEvent(strange.EventID).Outcome, store.OfferNoWaiter)
	eq(t, "offer of the wait", f.OfferWait(w.WaitID).Outcome, store.OfferNoEvent)
	r.WantNothing("w")
	eq(t, "outcome of registering again", r.Register(w).Outcome, store.RegisterWaiting)
	targeted := EventOf("paid", K("order", "1"))
	d := must(f.DeliverTo(ctx, r.ID, targeted, false, now))(t, "deliver a stranger's event")
	eq(t, "outcome", d.Outcome, store.DeliveryNotWaiting)
	eq(t, "reason", d.Why, "other_source")
	f.WantLive(strange)

	own := EventOf("paid", K("order", "1"))
	own.Source = "bank"
	f.Put(own)
	got := f.Matched(own, r, "w")
	eq(t, "from of the wait returned", got.From, "bank")
	r.WantClaim("w", own, true)
	r.Redelivered("w")
	r.WantAnswered("w", own)

	w = r.Wait("w2", "paid", K("order", "1")) // from anybody
	eq(t, "outcome for a wait that names no sender", r.Register(w).Outcome, store.RegisterAnswered)
	r.WantAnswered("w2", strange)
	w = r.Wait("w3", "paid", K("order", "1"))
	w.From = "bank"
	eq(t, "outcome", r.Register(w).Outcome, store.RegisterWaiting)
	own = EventOf("paid")
	own.Source = "bank"
	r.Targeted("w3", own)
}

func wrongKey(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "4711"), K("customer", "ü"))
	for _, keys := range [][]rendezvous.Key{
		{K("order", "4712")},
		{K("invoice", "4711")},
		{K("Order", "4711")},
		{K("order", "4711 ")},
		{K("order", " 4711")},
		{K("4711", "order")},
		{K("order", "471"), K("ord", "er4711")},
		{K("customer", "u\u0308")},
		{K("customer", "Ü"), K("order", "ü")},
		nil,
	} {
		e := f.PutNew("paid", keys...)
		eq(t, fmt.Sprintf("match of %v", keys), f.Match(e.EventID).Outcome, store.MatchNoWaiter)
		eq(t, fmt.Sprintf("offer of %v", keys), f.OfferEvent(e.EventID).Outcome, store.OfferNoWaiter)
		r.WantNothing("w")
		f.WantLive(e)
	}
	for _, kind := range []string{"Paid", "paid ", "pai", "refunded"} {
		e := f.PutNew(kind, K("order", "4711"))
		eq(t, "offer of type "+kind, f.OfferEvent(e.EventID).Outcome, store.OfferNoWaiter)
		f.WantLive(e)
	}
	eq(t, "outcome of registering again", r.Register(r.Wait("w", "paid", K("order", "4711"), K("customer", "ü"))).Outcome, store.RegisterWaiting)
	r.WantKinds(rendezvous.WaitRegistered)
	e := EventOf("paid", K("customer", "ü"))
	f.Send(e)
	r.WantAnswered("w", e)
}

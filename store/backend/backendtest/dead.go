package backendtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var deadCases = []backendCase{
	{"overdue events: live ones past the window or their own expiry, the longest due first", overdue},
	{"overdue events beside an open wait are near, and held ones left out", overdueNear},
	{"a page of overdue events is fair by tenant and says when more was due", overdueFair},
	{"an overdue event is one, however many keys it has", overdueKeys},
	{"dead letters both ways, by every index", deadWalks},
	{"dead letters come and go with deaths, requeues and purges", deadLaw},
	{"events by their last operation", eventsOfOp},
}

// letter is a dead letter, stored.
func (x *bench) letter(tenant, id string, reason rendezvous.DeadReason, keys ...rendezvous.Key) *backend.Event {
	x.Helper()
	e := x.event(tenant, id, keys...)
	e.State, e.DeadReason, e.DeadDetail, e.DeadAt = rendezvous.EventDead, reason, "detail", x.now()
	if reason == rendezvous.DeadErased {
		e.Erased, e.Digest, e.Payload = true, nil, nil
	}
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
	return x.read(e)
}

// purged purges a letter.
func (x *bench) purged(e *backend.Event) *backend.Event {
	x.Helper()
	e.Purged, e.Shed, e.Op, e.OpBy = true, true, "purge", &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	return x.read(e)
}

// sweepOf asks for one page of overdue events.
func (x *bench) sweepOf(o backend.Overdue, limit int) (due, near []string, more bool) {
	x.Helper()
	x.update(func(tx backend.Tx) {
		found := got(tx.OverdueEvents(ctx, o, limit))(x)
		due, near, more = idsOf(found.Due), idsOf(found.Near), found.More
	})
	return due, near, more
}

func (x *bench) expiring(id string, in time.Duration, keys ...rendezvous.Key) *backend.Event {
	x.Helper()
	e := x.event(acme, id, keys...)
	e.ExpiresAt = e.ReceivedAt.Add(in)
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
	return e
}

func overdue(x *bench) {
	start := x.now()
	x.expiring("late", 4*time.Second)
	x.expiring("early", time.Second, key("1"))
	x.expiring("later", time.Hour)
	x.stored(acme, "a", key("1"))
	x.stored(acme, "b")
	kept := x.event(acme, "kept", key("1"))
	kept.Target = "r9"
	x.apply(&backend.Changes{NewEvents: []*backend.Event{kept}})
	w := x.flow(acme, "1")
	x.parked(w, "claimed")
	x.letter(acme, "dead", rendezvous.DeadUnclaimed)
	x.advance(10 * time.Second)
	x.stored(acme, "young")

	all := backend.Overdue{Since: start.Add(2 * time.Second), At: start.Add(4 * time.Second)}
	due, near, more := x.sweepOf(all, 10) // early is due for 3 s, those without an expiry for 2 s, late since now
	eq(x, "due", due, []string{"early", "a", "b", "kept", "late"})
	eq(x, "near", near, nil)
	eq(x, "more", more, false)
	due, _, more = x.sweepOf(all, 2)
	eq(x, "page", due, []string{"early", "a"})
	eq(x, "more", more, true)
	due, _, _ = x.sweepOf(backend.Overdue{Tenant: acme, Since: start, At: start.Add(4*time.Second - time.Microsecond)}, 10)
	eq(x, "due at their instant", due, []string{"early", "a", "b", "kept"})
	due, _, _ = x.sweepOf(backend.Overdue{Since: start.Add(-time.Microsecond), At: start.Add(time.Second - time.Microsecond)}, 10)
	eq(x, "due a moment before", due, nil)
	due, _, _ = x.sweepOf(backend.Overdue{At: start.Add(time.Minute)}, 10)
	eq(x, "due without a window", due, []string{"early", "late"})
	due, _, _ = x.sweepOf(backend.Overdue{Tenant: globex, Since: x.now(), At: x.now()}, 10)
	eq(x, "due of another tenant", due, nil)
}

func overdueNear(x *bench) {
	w := x.flow(acme, "1")
	x.opened(w, "w", key("1"))
	other := x.wait(w, "other")
	other.Type = "shipped"
	x.apply(&backend.Changes{NewWaits: []*backend.Wait{other}}, w.Key())
	x.stored(acme, "near", key("9"), key("1"), key("8"))
	x.stored(acme, "alone", key("2"))
	x.stored(globex, "elsewhere", key("1"))
	kept := func(id, run, kind string) {
		e := x.event(acme, id, key("7"))
		e.Target, e.Type = run, kind
		x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
	}
	kept("kept", "r1", "paid")
	kept("kept of another type", "r1", "refunded")
	kept("kept for another run", "r2", "paid")
	held := x.stored(acme, "held", key("1"))
	held.Take, held.TakeUntil, held.TakeOpen = 1, x.now().Add(time.Minute), true
	x.apply(&backend.Changes{Events: []*backend.Event{held}})
	x.expiring("expired", 0, key("1"))
	x.stored(acme, "behind", key("1"))
	x.stored(acme, "last")
	x.advance(time.Second)
	all := backend.Overdue{Since: x.now(), At: x.now()}
	due, near, more := x.sweepOf(all, 10)
	eq(x, "due", due, []string{"alone", "elsewhere", "kept of another type", "kept for another run", "expired", "last"})
	eq(x, "near", near, []string{"near", "kept", "behind"})
	eq(x, "more", more, false)
	x.advance(time.Minute)
	_, near, _ = x.sweepOf(all, 10)
	eq(x, "near once the take ran out", near, []string{"near", "kept", "held", "behind"})
	due, near, more = x.sweepOf(backend.Overdue{Tenant: acme, Since: x.now(), At: x.now()}, 1)
	eq(x, "due of a page of one", due, []string{"alone"})
	eq(x, "near of it", near, []string{"near", "kept"}[:len(near)])
	eq(x, "more", more, true)
}

func overdueFair(x *bench) {
	for i := range 8 {
		x.stored(acme, fmt.Sprint("many", i), key("1"))
	}
	x.advance(time.Second)
	x.stored(globex, "one")
	x.stored(globex, "two")
	third := x.event("third", "three")
	third.ExpiresAt = x.now()
	x.apply(&backend.Changes{NewEvents: []*backend.Event{third}})
	x.advance(time.Second)
	all := backend.Overdue{Since: x.now(), At: x.now()}
	for limit, want := range map[int][]string{
		1: {"many0"},
		2: {"many0", "one"},
		3: {"many0", "one", "three"},
		4: {"many0", "many1", "one", "three"},
		7: {"many0", "many1", "many2", "many3", "one", "two", "three"},
	} {
		due, _, more := x.sweepOf(all, limit)
		eq(x, fmt.Sprint("page of ", limit), due, want)
		eq(x, "more", more, true)
	}
	due, _, more := x.sweepOf(all, 11)
	eq(x, "all", len(due), 11)
	eq(x, "more", more, false)
}

func overdueKeys(x *bench) {
	var want []string
	for i := range 60 {
		var keys []rendezvous.Key
		for k := range i%rendezvous.MaxKeys + 1 {
			keys = append(keys, key(fmt.Sprint(k)))
		}
		want = append(want, x.stored(acme, fmt.Sprint("event", i), keys...).ID)
	}
	x.advance(time.Second)
	for _, limit := range []int{1, 2, 7, 59, 60, 61} {
		due, _, more := x.sweepOf(backend.Overdue{Since: x.now(), At: x.now()}, limit)
		eq(x, fmt.Sprint("page of ", limit), due, want[:min(limit, 60)])
		eq(x, "more", more, limit < 60)
	}
}

// walk is all letters, by pages of that size.
func (x *bench) walk(tenant string, w backend.DeadWalk, limit int) (ids []string) {
	x.Helper()
	for pages := 0; ; pages++ {
		var next int64
		x.view(func(r backend.Reader) {
			rows, n, err := r.DeadLetters(ctx, tenant, w, limit)
			if err != nil || len(rows) > limit || pages > 50 {
				x.Fatalf("%d rows on page %d, %v", len(rows), pages, err)
			}
			ids, next = append(ids, idsOf(rows)...), n
		})
		if next == 0 {
			return ids
		}
		w.After = next
	}
}

func deadWalks(x *bench) {
	k := key("1")
	x.letter(acme, "1", rendezvous.DeadUnclaimed, k, key("2"))
	x.letter(globex, "other", rendezvous.DeadUnclaimed, k)
	x.stored(acme, "live", k)
	x.letter(acme, "2", rendezvous.DeadErased, key("2"))
	x.advance(time.Second)
	at := x.now()
	x.letter(acme, "3", rendezvous.DeadUnclaimed, k)
	x.purged(x.letter(acme, "purged", rendezvous.DeadUnclaimed, k))
	x.letter(acme, "4", rendezvous.DeadExpired)
	for _, v := range []struct {
		f    backend.DeadFilter
		want []string
	}{
		{backend.DeadFilter{}, []string{"1", "2", "3", "4"}},
		{backend.DeadFilter{Key: &k}, []string{"1", "3"}},
		{backend.DeadFilter{Key: &rendezvous.Key{Namespace: "order", Value: "2"}}, []string{"1", "2"}},
		{backend.DeadFilter{Type: "paid"}, []string{"1", "2", "3", "4"}},
		{backend.DeadFilter{Type: "shipped"}, nil},
		{backend.DeadFilter{Reason: rendezvous.DeadUnclaimed}, []string{"1", "3"}},
		{backend.DeadFilter{Reason: rendezvous.DeadErased, Key: &k}, nil},
		{backend.DeadFilter{Reason: rendezvous.DeadErased, Type: "paid"}, []string{"2"}},
		{backend.DeadFilter{Source: "shop", DeadAfter: at}, []string{"3", "4"}},
		{backend.DeadFilter{ReceivedBefore: at.Add(-time.Microsecond)}, []string{"1", "2"}},
	} {
		down := slices.Clone(v.want)
		slices.Reverse(down)
		for _, limit := range []int{1, 2, 10} {
			what := fmt.Sprintf("letters of %+v by %d, ", v.f, limit)
			eq(x, what+"up", x.walk(acme, backend.DeadWalk{Filter: v.f, Up: true}, limit), v.want)
			eq(x, what+"down", x.walk(acme, backend.DeadWalk{Filter: v.f}, limit), down)
		}
		for most := range 4 {
			n := 0
			counts, more := x.countDead(v.f, most)
			for _, c := range counts {
				n += c
			}
			want := len(v.want)
			if most > 0 {
				want = min(want, most)
			}
			eq(x, fmt.Sprintf("count of %+v up to %d, and whether there are more", v.f, most), []any{n, more}, []any{want, want < len(v.want)})
		}
	}
	all := map[rendezvous.DeadReason]int{rendezvous.DeadUnclaimed: 2, rendezvous.DeadErased: 1, rendezvous.DeadExpired: 1}
	counts, _ := x.countDead(backend.DeadFilter{}, 0)
	eq(x, "counts", counts, all)
	counts, _ = x.countDead(backend.DeadFilter{}, 4)
	eq(x, "counts up to all", counts, all)
	counts, _ = x.countDead(backend.DeadFilter{}, 2)
	eq(x, "counts of the lowest", counts, map[rendezvous.DeadReason]int{rendezvous.DeadUnclaimed: 1, rendezvous.DeadErased: 1})
}

func (x *bench) countDead(f backend.DeadFilter, most int) (counts map[rendezvous.DeadReason]int, more bool) {
	x.Helper()
	x.view(func(r backend.Reader) {
		var err error
		if counts, more, err = r.CountDead(ctx, acme, f, most); err != nil {
			x.Fatal(err)
		}
	})
	return counts, more
}

func deadLaw(x *bench) {
	k, other := key("1"), rendezvous.Key{Namespace: "customer", Value: "é"}
	e := x.stored(acme, "e", k, other)
	listed := func(what string, want ...string) {
		x.Helper()
		for _, of := range []rendezvous.Key{k, other} {
			eq(x, what, x.walk(acme, backend.DeadWalk{Filter: backend.DeadFilter{Key: &of}}, 5), want)
		}
		eq(x, what, x.walk(acme, backend.DeadWalk{}, 5), want)
	}
	listed("letters while it lives")
	e.State, e.DeadReason, e.DeadAt = rendezvous.EventDead, rendezvous.DeadUnclaimed, x.now()
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	e = x.read(e)
	listed("letters after its death", "e")
	e.State, e.DeadAt, e.LiveSince, e.Requeues, e.Op = rendezvous.EventLive, time.Time{}, x.now(), 1, "op"
	e.OpBy = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAuthenticated}
	e.Target, e.ExpiresAt = "r1", x.now().Add(time.Second)
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	eq(x, "requeued", x.read(e), e)
	e = x.read(e)
	listed("letters after its requeue")
	x.advance(time.Second)
	due, _, _ := x.sweepOf(backend.Overdue{At: x.now()}, 5)
	eq(x, "overdue by its new expiry", due, []string{"e"})
	e.State, e.DeadReason, e.DeadDetail, e.DeadAt, e.OfferFailures = rendezvous.EventDead, rendezvous.DeadUndeliverable, "why", x.now(), 16
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	listed("letters after its next death", "e")
	e = x.read(e)
	e.Erased, e.Digest, e.Shed = true, nil, true
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	listed("letters after its erasure", "e")
	gone := x.purged(x.read(e))
	listed("letters after its purge")
	eq(x, "keys of a purged letter", gone.Keys, nil)
	eq(x, "payload of a purged letter", gone.HasPayload, false)
}

func eventsOfOp(x *bench) {
	a, b := x.letter(acme, "a", rendezvous.DeadUnclaimed), x.letter(acme, "b", rendezvous.DeadUnclaimed)
	x.purged(x.letter(globex, "c", rendezvous.DeadUnclaimed))
	of := func(op string, purged bool, limit int) (ids []string) {
		x.view(func(r backend.Reader) { ids = idsOf(got(r.EventsOfOp(ctx, acme, op, purged, 0, limit))(x)) })
		return ids
	}
	requeued := x.letter(acme, "requeued", rendezvous.DeadUnclaimed)
	requeued.State, requeued.DeadAt, requeued.Requeues, requeued.Op = rendezvous.EventLive, time.Time{}, 1, "purge"
	requeued.OpBy = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAuthenticated}
	x.apply(&backend.Changes{Events: []*backend.Event{requeued}})
	eq(x, "before", of("purge", true, 5), nil)
	x.purged(b)
	x.purged(a)
	eq(x, "after", of("purge", true, 5), []string{"a", "b"})
	eq(x, "up to one", of("purge", true, 1), []string{"a"})
	eq(x, "requeued by an operation of that name", of("purge", false, 5), []string{"requeued"})
	eq(x, "of another", of("other", true, 5), nil)
}

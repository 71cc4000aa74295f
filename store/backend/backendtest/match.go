package backendtest

import (
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var matchCases = []backendCase{
	{"a live event stands under each of its keys, and nothing else does", eventKeys},
	{"a live event without keys and a targeted one stand under one key of their own", loneKeys},
	{"an open wait stands under each of its keys, and nothing else does", waitKeys},
	{"an event that stays live under another target moves in the index", rekeyed},
	{"look-ups answer in order, page by page, each for itself", lookups},
	{"tenants and types are apart in the match index", apart},
	{"kept events are counted and listed by run", kept},
	{"claimed events are found by their wait", claimedEvents},
	{"mail counts parked waits that are not quarantined", mail},
}

func look(tenant string, k rendezvous.Key) backend.Lookup {
	return backend.Lookup{Tenant: tenant, Type: "paid", Key: k, Limit: 100}
}

// live are the ids of live events under a key.
func (x *bench) live(l backend.Lookup) []string {
	x.Helper()
	var rows []*backend.Event
	x.view(func(r backend.Reader) { rows = got(r.LiveEvents(ctx, []backend.Lookup{l}))(x)[0] })
	return idsOf(rows)
}

// open are the effects of open waits under a key.
func (x *bench) open(l backend.Lookup) []string {
	x.Helper()
	var rows []*backend.Wait
	x.view(func(r backend.Reader) { rows = got(r.OpenWaits(ctx, []backend.Lookup{l}))(x)[0] })
	return effectsOf(rows)
}

func eventKeys(x *bench) {
	w := x.flow(acme, "1")
	wait := x.opened(w, "wait", key("1"))
	e := x.stored(acme, "e", key("1"), key("2"))
	stands := func(what string, want ...string) {
		x.Helper()
		eq(x, what+", first key", x.live(look(acme, key("1"))), want)
		eq(x, what+", second key", x.live(look(acme, key("2"))), want)
		eq(x, what+", no key", x.live(look(acme, rendezvous.Key{})), nil)
	}
	stands("live", "e")

	claim(wait, e, x.now())
	x.apply(&backend.Changes{Events: []*backend.Event{e}, Waits: []*backend.Wait{wait}}, w.Key())
	stands("claimed")

	e, wait = x.read(e), x.reread(wait)
	e.State, e.ClaimRun, e.ClaimEffect, e.ClaimedAt = rendezvous.EventLive, "", "", time.Time{}
	x.apply(&backend.Changes{Events: []*backend.Event{e}, GoneWaits: []*backend.Wait{wait}}, w.Key())
	stands("released", "e")

	e = x.read(e)
	e.OfferFailures = 1
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	stands("still live", "e")

	e = x.read(e)
	e.State, e.DeadReason, e.DeadAt = rendezvous.EventDead, rendezvous.DeadUnclaimed, x.now()
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	stands("dead")

	born := x.event(acme, "born dead", key("1"), key("2"))
	born.State, born.DeadReason, born.DeadAt = rendezvous.EventDead, rendezvous.DeadAddresseeConcluded, x.now()
	x.apply(&backend.Changes{NewEvents: []*backend.Event{born}})
	stands("born dead")
}

func loneKeys(x *bench) {
	x.stored(acme, "keyless")
	e := x.event(acme, "targeted", key("1"))
	e.Target = "r1"
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
	eq(x, "under no key", x.live(look(acme, rendezvous.Key{})), []string{"keyless"})
	eq(x, "under its target", x.live(look(acme, backend.TargetKey("r1"))), []string{"targeted"})
	eq(x, "under its own key", x.live(look(acme, key("1"))), nil)
}

func waitKeys(x *bench) {
	w := x.flow(acme, "1")
	wait := x.opened(w, "wait", key("1"), key("2"))
	x.opened(w, "keyless")
	stands := func(what string, want ...string) {
		x.Helper()
		eq(x, what+", first key", x.open(look(acme, key("1"))), want)
		eq(x, what+", second key", x.open(look(acme, key("2"))), want)
	}
	stands("open", "wait")
	eq(x, "under no key", x.open(look(acme, rendezvous.Key{})), nil)
	eq(x, "under its run", x.open(look(acme, backend.TargetKey("r1"))), nil)
	e := x.stored(acme, "e", key("1"))
	claim(wait, e, x.now())
	x.apply(&backend.Changes{Events: []*backend.Event{e}, Waits: []*backend.Wait{wait}}, w.Key())
	stands("parked")

	wait, e = x.reread(wait), x.read(e)
	wait.Held, wait.ParkedAt, wait.NextAttemptAt = nil, time.Time{}, time.Time{}
	e.State, e.ClaimRun, e.ClaimEffect, e.ClaimedAt = rendezvous.EventDead, "", "", time.Time{}
	e.DeadReason, e.DeadAt = rendezvous.DeadErased, x.now()
	x.apply(&backend.Changes{Events: []*backend.Event{e}, Waits: []*backend.Wait{wait}}, w.Key())
	stands("reopened", "wait")

	x.apply(&backend.Changes{GoneWaits: []*backend.Wait{x.reread(wait)}}, w.Key())
	stands("gone")
}

func rekeyed(x *bench) {
	e := x.stored(acme, "e", key("1"))
	e.Target, e.Rekey = "r1", true
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	eq(x, "under its old key", x.live(look(acme, key("1"))), nil)
	eq(x, "under its target", x.live(look(acme, backend.TargetKey("r1"))), []string{"e"})
	e = x.read(e)
	e.Target, e.Rekey = "", true
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	eq(x, "under its old key again", x.live(look(acme, key("1"))), []string{"e"})
	eq(x, "under its old target", x.live(look(acme, backend.TargetKey("r1"))), nil)
}

func lookups(x *bench) {
	w := x.flow(acme, "1")
	var numbers []int64
	for i := range 5 {
		numbers = append(numbers, x.stored(acme, fmt.Sprint("e", i), key("1"), key(fmt.Sprint("own", i))).Number)
		x.opened(w, fmt.Sprint("w", i), key("1"))
	}
	l := look(acme, key("1"))
	eq(x, "all", x.live(l), []string{"e0", "e1", "e2", "e3", "e4"})
	l.Limit = 2
	eq(x, "first page", x.live(l), []string{"e0", "e1"})
	eq(x, "first page of waits", x.open(l), []string{"w0", "w1"})
	l.After = numbers[1]
	eq(x, "second page", x.live(l), []string{"e2", "e3"})
	x.view(func(r backend.Reader) {
		rows := got(r.LiveEvents(ctx, []backend.Lookup{look(acme, key("own3")), look(acme, key("none")), l, look(acme, key("own3"))}))(x)
		eq(x, "lists", len(rows), 4)
		eq(x, "first", idsOf(rows[0]), []string{"e3"})
		eq(x, "second", idsOf(rows[1]), nil)
		eq(x, "third", idsOf(rows[2]), []string{"e2", "e3"})
		eq(x, "fourth", idsOf(rows[3]), []string{"e3"})
		eq(x, "no look-ups", len(got(r.OpenWaits(ctx, nil))(x)), 0)
	})
}

func apart(x *bench) {
	x.stored(acme, "ours", key("1"))
	x.stored(globex, "theirs", key("1"))
	x.opened(x.flow(acme, "1"), "our wait", key("1"))
	x.opened(x.flow(globex, "1"), "their wait", key("1"))
	eq(x, "our events", x.live(look(acme, key("1"))), []string{"ours"})
	eq(x, "their events", x.live(look(globex, key("1"))), []string{"theirs"})
	eq(x, "our waits", x.open(look(acme, key("1"))), []string{"our wait"})
	eq(x, "their waits", x.open(look(globex, key("1"))), []string{"their wait"})
	other := look(acme, key("1"))
	other.Type = "shipped"
	eq(x, "events of another type", x.live(other), nil)
	eq(x, "another namespace", x.live(look(acme, rendezvous.Key{Namespace: "customer", Value: "1"})), nil)
}

func kept(x *bench) {
	for _, id := range []string{"e1", "e2", "e3"} {
		e := x.event(acme, id, key("1"))
		if e.Target = "r1"; id == "e3" {
			e.Target, e.Type = "r0", "shipped"
		}
		x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
	}
	keys := []backend.RunKey{runKey(acme, "r1"), runKey(acme, "r0"), runKey(acme, "r2"), runKey(globex, "r1")}
	x.view(func(r backend.Reader) {
		eq(x, "kept events", idsOf(got(r.KeptEvents(ctx, keys))(x)), []string{"e3", "e1", "e2"})
		counts := got(r.KeptCounts(ctx, keys))(x)
		eq(x, "counts", []int{counts[keys[0]], counts[keys[1]], counts[keys[2]], counts[keys[3]]}, []int{2, 1, 0, 0})
	})
	var e *backend.Event
	x.view(func(r backend.Reader) { e = got(r.KeptEvents(ctx, keys[:1]))(x)[0] })
	e.State, e.DeadReason, e.DeadAt = rendezvous.EventDead, rendezvous.DeadAddresseeConcluded, x.now()
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	x.view(func(r backend.Reader) {
		eq(x, "kept events", idsOf(got(r.KeptEvents(ctx, keys))(x)), []string{"e3", "e2"})
		eq(x, "count", got(r.KeptCounts(ctx, keys))(x)[keys[0]], 1)
	})
}

func claimedEvents(x *bench) {
	w := x.flow(acme, "1")
	wait, e := x.parked(w, "wait")
	x.opened(w, "open", key("9"))
	keys := []backend.WaitKey{wait.Key(), {Tenant: acme, RunID: "r1", Effect: "open"}, {Tenant: globex, RunID: "r1", Effect: "wait"}}
	x.view(func(r backend.Reader) {
		eq(x, "claimed", got(r.ClaimedEvents(ctx, keys))(x), map[backend.WaitKey]*backend.Event{wait.Key(): e})
	})
	e.State, e.ClaimRun, e.ClaimEffect, e.ClaimedAt = rendezvous.EventLive, "", "", time.Time{}
	x.apply(&backend.Changes{Events: []*backend.Event{e}, GoneWaits: []*backend.Wait{wait}}, w.Key())
	x.view(func(r backend.Reader) { eq(x, "claimed after the release", len(got(r.ClaimedEvents(ctx, keys))(x)), 0) })
}

func mail(x *bench) {
	w := x.flow(acme, "1")
	x.opened(w, "open", key("9"))
	x.parked(w, "first")
	stuck, _ := x.parked(w, "second")
	keys := []backend.RunKey{runKey(acme, "r1"), runKey(globex, "r1")}
	count := func() int {
		x.Helper()
		var n int
		x.view(func(r backend.Reader) { n = got(r.ParkedOf(ctx, keys))(x)[keys[0]] })
		return n
	}
	eq(x, "mail", count(), 2)
	stuck.QuarantinedAt = x.now()
	x.apply(&backend.Changes{Waits: []*backend.Wait{stuck}})
	eq(x, "mail", count(), 1)
}

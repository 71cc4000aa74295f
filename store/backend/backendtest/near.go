package backendtest

import (
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var nearCases = []backendCase{
	{"waits that share a key or the type, a bounded number of each", nearWaits},
	{"live events that share a key, whatever their type", nearEvents},
	{"the effects of a run by name", effectNames},
}

func nearWaits(x *bench) {
	w := x.flow(acme, "1")
	shipped := x.wait(w, "shipped", key("1"))
	shipped.Type = "shipped"
	x.apply(&backend.Changes{NewWaits: []*backend.Wait{shipped}}, w.Key())
	x.opened(w, "a", key("1"))
	x.opened(w, "b", key("1"), key("2"))
	x.opened(w, "far", key("9"))
	x.parked(w, "parked")
	x.opened(x.flow(globex, "1"), "foreign", key("1"))
	near := func(n backend.Near) [][]string {
		x.Helper()
		var lists [][]string
		x.view(func(r backend.Reader) {
			for _, rows := range got(r.NearWaits(ctx, n))(x) {
				lists = append(lists, effectsOf(rows))
			}
		})
		return lists
	}
	keys := []rendezvous.Key{key("1"), key("2")}
	eq(x, "by key and type", near(backend.Near{Tenant: acme, Type: "paid", Keys: keys, Most: 40}),
		[][]string{{"a", "b", "shipped"}, {"b"}, {"parked", "far", "b", "a"}})
	eq(x, "a few of each", near(backend.Near{Tenant: acme, Type: "paid", Keys: keys, Most: 8}), [][]string{{"a", "b"}, {"b"}, {"parked", "far", "b", "a"}})
	eq(x, "without keys", near(backend.Near{Tenant: acme, Type: "paid", Most: 2}), [][]string{{"parked", "far"}})
	eq(x, "of an unknown type", near(backend.Near{Tenant: acme, Type: "none", Keys: keys[1:], Most: 8}), [][]string{{"b"}, nil})
	eq(x, "of an unknown tenant", near(backend.Near{Tenant: "nobody", Type: "paid", Keys: keys[1:], Most: 8}), [][]string{nil, nil})
}

func nearEvents(x *bench) {
	e := x.event(acme, "shipped", key("1"))
	e.Type = "shipped"
	kept := x.event(acme, "kept", key("1"))
	kept.Target = "r1"
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e, kept}})
	ending := x.event(acme, "ending", key("3"), key("4"))
	ending.ExpiresAt = x.now().Add(time.Hour)
	x.apply(&backend.Changes{NewEvents: []*backend.Event{ending}})
	x.stored(acme, "e1", key("1"))
	dead := x.read(x.stored(acme, "dead", key("1")))
	dead.State, dead.DeadReason, dead.DeadAt = rendezvous.EventDead, rendezvous.DeadExpired, x.now()
	x.apply(&backend.Changes{Events: []*backend.Event{dead}})
	x.stored(globex, "theirs", key("1"))
	x.view(func(r backend.Reader) {
		lists := got(r.NearEvents(ctx, backend.Near{Tenant: acme, Type: "paid", Keys: []rendezvous.Key{key("1")}, Most: 20}))(x)
		eq(x, "lists", len(lists), 3)
		eq(x, "by key", idsOf(lists[0]), []string{"e1", "shipped"})
		newest := idsOf(lists[1]) // of one instant, perhaps
		slices.Sort(newest)
		eq(x, "the newest without an expiry", newest, []string{"e1", "kept", "shipped"})
		eq(x, "those with one", idsOf(lists[2]), []string{"ending", "ending"})
		few := got(r.NearEvents(ctx, backend.Near{Tenant: acme, Type: "paid", Most: 2}))(x)
		eq(x, "a few of each", []int{len(few), len(few[0]), len(few[1])}, []int{2, 1, 1})
	})
}

func effectNames(x *bench) {
	w := x.flow(acme, "1")
	for i, name := range []string{"b", "a", "c"} {
		rec := effect(w, int64(2+i), rendezvous.EffectStarted, name, 1, rendezvous.NameData{Name: "n"}, x.now())
		x.apply(&backend.Changes{Records: []*backend.Record{rec}}, w.Key())
	}
	x.view(func(r backend.Reader) {
		eq(x, "names", got(r.EffectNames(ctx, runKey(acme, "r1"), 10))(x), []string{"a", "b", "c"})
		eq(x, "two names", got(r.EffectNames(ctx, runKey(acme, "r1"), 2))(x), []string{"a", "b"})
		eq(x, "of an unknown run", len(got(r.EffectNames(ctx, runKey(acme, "r9"), 2))(x)), 0)
	})
}

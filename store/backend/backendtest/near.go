package backendtest

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var nearCases = []backendCase{
	{"waits that share a key or the type, a bounded number of each", nearWaits},
	{"live events that share a key or the type, a bounded number of each", nearEvents},
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
	near := func(n backend.Near) (lists [][]string, cut bool) {
		x.Helper()
		x.view(func(r backend.Reader) {
			found := got(r.NearWaits(ctx, n))(x)
			for _, rows := range append(found.Under, found.Newest) {
				lists = append(lists, effectsOf(rows))
			}
			cut = found.Cut
		})
		return lists, cut
	}
	keys := []rendezvous.Key{key("1"), key("2")}
	for what, c := range map[string]struct {
		near backend.Near
		want [][]string
		cut  bool
	}{
		"by key and type":      {backend.Near{Tenant: acme, Type: "paid", Keys: keys, Most: 40, Walk: 6}, [][]string{{"a", "b", "shipped"}, {"b"}, {"parked", "far", "b", "a"}}, false},
		"a few of each":        {backend.Near{Tenant: acme, Type: "paid", Keys: keys, Most: 8, Walk: 6}, [][]string{{"a", "b"}, {"b"}, {"parked", "far", "b", "a"}}, false},
		"without keys":         {backend.Near{Tenant: acme, Type: "paid", Most: 2, Walk: 6}, [][]string{{"parked", "far"}}, false},
		"behind other types":   {backend.Near{Tenant: acme, Type: "shipped", Most: 2, Walk: 6}, [][]string{{"shipped"}}, false},
		"behind the bound":     {backend.Near{Tenant: acme, Type: "shipped", Most: 2, Walk: 4}, [][]string{nil}, true},
		"of an unknown type":   {backend.Near{Tenant: acme, Type: "none", Keys: keys[1:], Most: 8, Walk: 6}, [][]string{{"b"}, nil}, false},
		"of an unknown tenant": {backend.Near{Tenant: "nobody", Type: "paid", Keys: keys[1:], Most: 8, Walk: 6}, [][]string{nil, nil}, false},
	} {
		lists, cut := near(c.near)
		eq(x, what, lists, c.want)
		eq(x, what+", cut", cut, c.cut)
	}
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
		near := func(kind string, most, walk int, keys ...rendezvous.Key) backend.Nearby[backend.Event] {
			return got(r.NearEvents(ctx, backend.Near{Tenant: acme, Type: kind, Keys: keys, Most: most, Walk: walk}))(x)
		}
		all := near("paid", 20, 4, key("1"), key("9"))
		eq(x, "by key", idsOf(all.Under[0]), []string{"e1", "shipped"})
		eq(x, "by a key that none has", len(all.Under[1]), 0)
		eq(x, "of the type", idsOf(all.Newest), []string{"e1", "ending", "kept"})
		eq(x, "cut", all.Cut, false)
		eq(x, "a few", idsOf(near("paid", 2, 4).Newest), []string{"e1", "ending"})
		rare := near("shipped", 2, 4)
		eq(x, "behind other types", idsOf(rare.Newest), []string{"shipped"})
		eq(x, "cut before its end", near("shipped", 2, 1).Cut, true)
		eq(x, "cut in the keys of one that expires", near("paid", 2, 2).Cut, true)
		eq(x, "of an unknown type", len(near("none", 2, 4).Newest), 0)
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

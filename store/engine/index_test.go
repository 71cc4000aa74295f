package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// meetingWorld is a match index over two slices, read as a backend reads it.
type meetingWorld struct {
	events []*backend.Event
	waits  []*backend.Wait
	reads  int
}

func (m *meetingWorld) OpenWaits(_ context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error) {
	m.reads++
	found := make([][]*backend.Wait, len(lookups))
	for i, l := range lookups {
		for _, w := range m.waits {
			if w.Tenant == l.Tenant && w.Type == l.Type && w.Open() && w.Number > l.After && slices.Contains(w.Keys, l.Key) && len(found[i]) < l.Limit {
				row := *w
				found[i] = append(found[i], &row)
			}
		}
	}
	return found, nil
}

func (m *meetingWorld) LiveEvents(_ context.Context, lookups []backend.Lookup) ([][]*backend.Event, error) {
	m.reads++
	found := make([][]*backend.Event, len(lookups))
	for i, l := range lookups {
		for _, e := range m.events {
			if e.Tenant == l.Tenant && e.Type == l.Type && e.Live() && e.Number > l.After && slices.Contains(e.MatchKeys(), l.Key) && len(found[i]) < l.Limit {
				row := *e
				found[i] = append(found[i], &row)
			}
		}
	}
	return found, nil
}

func (m *meetingWorld) WaitsOf(_ context.Context, keys []backend.RunKey) ([]*backend.Wait, error) {
	m.reads++
	var found []*backend.Wait
	for _, k := range keys {
		for _, w := range m.waits {
			if w.Tenant == k.Tenant && w.RunID == k.ID {
				row := *w
				found = append(found, &row)
			}
		}
	}
	return found, nil
}

func (m *meetingWorld) Runs(_ context.Context, _ []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	m.reads++
	return nil, nil
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// drawWorld draws a small crowded world: few types, keys, sources and runs, so that nearly everything competes.
func drawWorld(t *rapid.T) *meetingWorld {
	keys := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) rendezvous.Key {
		return rendezvous.Key{Namespace: "k", Value: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")}
	}), 0, 3, rapid.ID)
	tenants := rapid.SampledFrom([]string{"t1", "t1", "t1", "t2"})
	types := rapid.SampledFrom([]string{"paid", "paid", "sent"})
	sources := rapid.SampledFrom([]string{"s1", "s2"})
	runs := rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"})
	m := &meetingWorld{}
	for i := range rapid.IntRange(0, 14).Draw(t, "events") {
		e := &backend.Event{
			Version: 1, Number: int64(i + 1), Tenant: tenants.Draw(t, "tenant"), Source: sources.Draw(t, "source"), ID: fmt.Sprint(i),
			Type: types.Draw(t, "type"), Keys: keys.Draw(t, "keys"), State: rendezvous.EventLive, ReceivedAt: noon.Add(-time.Hour),
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind of event") {
		case 0, 1:
			e.Target = runs.Draw(t, "target")
		case 2:
			e.ExpiresAt = noon // expired from that instant on
		case 3:
			e.ExpiresAt = noon.Add(time.Microsecond)
		case 4:
			e.State = rendezvous.EventClaimed
		}
		m.events = append(m.events, e)
	}
	for i := range rapid.IntRange(0, 14).Draw(t, "waits") {
		w := &backend.Wait{
			Version: 1, Number: int64(i + 1), Tenant: tenants.Draw(t, "tenant"), RunID: runs.Draw(t, "run"), Effect: fmt.Sprint(i),
			Type: types.Draw(t, "type"), Keys: keys.Draw(t, "keys"), RegisteredAt: noon,
		}
		switch rapid.IntRange(0, 5).Draw(t, "kind of wait") {
		case 0:
			w.From = sources.Draw(t, "from")
		case 1:
			w.Held = &backend.HeldEvent{Number: 1}
		}
		m.waits = append(m.waits, w)
	}
	return m
}

// model is M1..M5 and O1..O3 by brute force.
type model struct {
	*meetingWorld
	eventTo map[int64]int64 // pairs made: event number to wait number
	waitTo  map[int64]int64
}

func newModel(m *meetingWorld) *model {
	return &model{m, map[int64]int64{}, map[int64]int64{}}
}

func (m *model) meets(e *backend.Event, w *backend.Wait) bool {
	_, eventTaken := m.eventTo[e.Number]
	_, waitTaken := m.waitTo[w.Number]
	shares := false
	for _, a := range e.Keys {
		for _, b := range w.Keys {
			shares = shares || a == b
		}
	}
	m1, m2 := e.Type == w.Type, w.From == "" || w.From == e.Source
	m3 := shares
	if e.Target != "" {
		m3 = e.Target == w.RunID && (shares || len(e.Keys) == 0 || len(w.Keys) == 0)
	}
	m4 := e.State == rendezvous.EventLive && (e.ExpiresAt.IsZero() || noon.Before(e.ExpiresAt)) && !eventTaken
	m5 := w.Held == nil && !waitTaken
	return e.Tenant == w.Tenant && m1 && m2 && m3 && m4 && m5
}

func (m *model) lowest(e *backend.Event) *backend.Wait {
	for _, w := range m.waits {
		if m.meets(e, w) {
			return w
		}
	}
	return nil
}

func (m *model) oldest(w *backend.Wait) *backend.Event {
	for _, e := range m.events {
		if m.meets(e, w) {
			return e
		}
	}
	return nil
}

func (m *model) pair(e *backend.Event, w *backend.Wait) {
	m.eventTo[e.Number], m.waitTo[w.Number] = w.Number, e.Number
}

// whole makes mutual first pairs until there is none: the one assignment in which nobody is overtaken.
func (m *model) whole() {
	for again := true; again; {
		again = false
		for _, e := range m.events {
			if w := m.lowest(e); w != nil && m.oldest(w) == e {
				m.pair(e, w)
				again = true
			}
		}
	}
}

// offer is one event offered alone: the older pairs that O3 demands are made first, each by offering its event.
func (m *model) offer(e *backend.Event) {
	for w := m.lowest(e); w != nil; w = m.lowest(e) {
		first := m.oldest(w)
		if first == e {
			m.pair(e, w)
			return
		}
		m.offer(first)
	}
}

func (m *model) offerWait(w *backend.Wait) {
	for e := m.oldest(w); e != nil; e = m.oldest(w) {
		m.offer(e)
	}
}

func pairsOf(p *plan) map[int64]int64 {
	made := map[int64]int64{}
	for _, x := range p.pairs {
		made[x.e.Number] = x.w.Number
	}
	return made
}

// EV-30..EV-34, EV-84, O1..O3: a batch makes exactly the pairs that offering its items one by one makes, and each belongs to the assignment in which
// nobody is overtaken; what stays apart is what that assignment leaves apart.
func TestABatchMakesThePairsOfOfferingOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := drawWorld(t)
		offered, waits := drawItems(t, world)
		alone, whole := newModel(world), newModel(world)
		whole.whole()
		for _, e := range offered {
			alone.offer(e)
		}
		for _, w := range waits {
			alone.offerWait(w)
		}

		p := &plan{x: newIndex(world, noon)}
		fates := map[int64]fate{}
		err := p.complete(context.Background(), func(p *plan) {
			for _, e := range offered {
				n := p.x.event(e)
				n.item = true
				fates[e.Number] = p.event(n)
			}
			for _, w := range waits {
				p.wait(p.x.wait(w))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		made := pairsOf(p)
		if fmt.Sprint(made) != fmt.Sprint(alone.eventTo) {
			t.Fatalf("pairs %v, one by one %v", made, alone.eventTo)
		}
		for e, w := range made {
			if whole.eventTo[e] != w {
				t.Fatalf("event %d went to wait %d, the whole assignment gives it %d", e, w, whole.eventTo[e])
			}
		}
		for _, e := range offered {
			if _, met := whole.eventTo[e.Number]; met != (fates[e.Number] == fatePaired) {
				t.Fatalf("event %d: fate %d, in the whole assignment %v", e.Number, fates[e.Number], met)
			}
		}
	})
}

// drawItems draws some of the live events by number, and some of the open waits.
func drawItems(t *rapid.T, world *meetingWorld) (offered []*backend.Event, waits []*backend.Wait) {
	for _, e := range world.events {
		live := e.State == rendezvous.EventLive && !expired(e, noon)
		if live && rapid.Bool().Draw(t, "offer the event") {
			offered = append(offered, e)
		}
	}
	for _, w := range world.waits {
		if w.Open() && rapid.IntRange(0, 3).Draw(t, "offer the wait") == 0 {
			waits = append(waits, w)
		}
	}
	return offered, waits
}

// EV-28, O3: a wait being registered takes its oldest event, unless an older wait meets that event too.
func TestARegistrationTakesItsOldestEventUnlessContested(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := drawWorld(t)
		if len(world.waits) == 0 {
			return
		}
		row := *world.waits[len(world.waits)-1] // the youngest is on its way in
		row.Version, row.Held = 0, nil
		world.waits = world.waits[:len(world.waits)-1]

		p := &plan{x: newIndex(world, noon)}
		n := p.x.add(&row)
		var got *eventNode
		if err := p.complete(context.Background(), func(p *plan) { got = p.claim(n) }); err != nil {
			t.Fatal(err)
		}

		m := newModel(world)
		want := m.oldest(&row)
		if want != nil && m.lowest(want) != nil {
			want = nil // contested
		}
		if (got == nil) != (want == nil) || got != nil && got.Number != want.Number {
			t.Fatalf("took %v, want %v", got, want)
		}
	})
}

func lone(number int64, key string) (*backend.Event, *backend.Wait) {
	keys := []rendezvous.Key{{Namespace: "k", Value: key}}
	return &backend.Event{Version: 1, Number: number, Tenant: "t1", Source: "s", ID: key, Type: "paid", Keys: keys, State: rendezvous.EventLive},
		&backend.Wait{Version: 1, Number: number, Tenant: "t1", RunID: "r" + key, Effect: "e", WorkflowID: "w" + key, Type: "paid", Keys: keys}
}

// EV-87, R3: a batch costs a fixed handful of reads, however many items it has, with keys of their own or all on one.
func TestPlanningCostsAHandfulOfReads(t *testing.T) {
	for _, one := range []bool{false, true} {
		for _, n := range []int{1, 50, 500} {
			world := &meetingWorld{}
			for i := range n {
				key := fmt.Sprint(i)
				if one {
					key = "one"
				}
				e, w := lone(int64(i+1), key)
				w.RunID = fmt.Sprint("r", i)
				world.events, world.waits = append(world.events, e), append(world.waits, w)
			}
			p := &plan{x: newIndex(world, noon)}
			err := p.complete(context.Background(), func(p *plan) {
				for _, e := range world.events {
					n := p.x.event(e)
					n.item = true
					p.event(n)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.pairs) != n || world.reads > 3 {
				t.Errorf("%d items, one key %v: %d pairs in %d reads", n, one, len(p.pairs), world.reads)
			}
		}
	}
}

// A chain of events that each stand behind an older one is pulled in up to the bound; beyond it the offer is Later and names the deepest, whose own
// offer goes on from there.
func TestPullingInEndsAtTheBound(t *testing.T) {
	world := &meetingWorld{}
	const depth = maxPulledIn + 20
	for i := range depth {
		// Event i is on keys i and i+1, wait i on key i+1 alone: event i+1 meets waits i and i+1, and wait i has the older event i.
		k := func(n int) rendezvous.Key { return rendezvous.Key{Namespace: "k", Value: fmt.Sprint(n)} }
		world.events = append(world.events, &backend.Event{
			Version: 1, Number: int64(i + 1), Tenant: "t1", Source: "s", ID: fmt.Sprint(i), Type: "paid", Keys: []rendezvous.Key{k(i), k(i + 1)},
			State: rendezvous.EventLive,
		})
		world.waits = append(world.waits, &backend.Wait{
			Version: 1, Number: int64(i + 1), Tenant: "t1", RunID: "r", Effect: fmt.Sprint(i), Type: "paid", Keys: []rendezvous.Key{k(i + 1)},
		})
	}
	offer := func(e *backend.Event) (*plan, fate) {
		p := &plan{x: newIndex(world, noon)}
		var f fate
		err := p.complete(context.Background(), func(p *plan) {
			n := p.x.event(e)
			n.item = true
			f = p.event(n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return p, f
	}
	p, f := offer(world.events[depth-1])
	if f != fateLater || len(p.pairs) != 0 || p.deep == nil || p.deep.Number != depth-maxPulledIn-1 {
		t.Fatalf("fate %d, %d pairs, deepest %v", f, len(p.pairs), p.deep)
	}
	p, f = offer(world.events[p.deep.Number-1])
	if f != fatePaired || len(p.pairs) != depth-maxPulledIn-1 {
		t.Fatalf("the deepest: fate %d, %d pairs", f, len(p.pairs))
	}
}

// R6, O6: a wait that was open when one key of it was read and answered when another was does not leave apart the events behind it: the plan is stale. Only
// what is torn in every try, as by a hand, is passed over.
func TestATornReadingIsStale(t *testing.T) {
	of := func(values ...string) (keys []rendezvous.Key) {
		for _, v := range values {
			keys = append(keys, rendezvous.Key{Namespace: "k", Value: v})
		}
		return keys
	}
	event := func(number int64, keys ...string) *backend.Event {
		return &backend.Event{Version: 1, Number: number, Tenant: "t", Source: "s", ID: fmt.Sprint(number), Type: "paid", Keys: of(keys...), State: rendezvous.EventLive}
	}
	world := &tornWorld{meetingWorld: meetingWorld{
		events: []*backend.Event{event(1, "b"), event(2, "a", "c")},
		waits: []*backend.Wait{
			{Version: 1, Number: 1, Tenant: "t", RunID: "r0", Effect: "e", Type: "paid", Keys: of("a", "b")},
			{Version: 1, Number: 2, Tenant: "t", RunID: "r2", Effect: "e", Type: "paid", Keys: of("c")},
		},
	}, after: "b"}
	offered := func(try int) (f fate, err error) {
		p := &plan{x: newIndex(world, noon), try: try}
		e := p.x.event(world.events[1])
		err = p.complete(t.Context(), func(p *plan) { f = p.event(e) })
		return f, err
	}
	if _, err := offered(0); !errors.Is(err, backend.ErrStale) {
		t.Errorf("the first try: %v, want it stale", err)
	}
	if f, err := offered(brokenAfter); err != nil || f != fateLater {
		t.Errorf("the last try: %v, %v; want it later", f, err)
	}
}

// tornWorld answers its first wait before the line of one key is read, and behind all others.
type tornWorld struct {
	meetingWorld
	after string
}

func (m *tornWorld) OpenWaits(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error) {
	found, err := m.meetingWorld.OpenWaits(ctx, lookups)
	for i, l := range lookups {
		if l.Key.Value == m.after {
			found[i] = slices.DeleteFunc(found[i], func(w *backend.Wait) bool { return w.Number == 1 })
		}
	}
	return found, err
}

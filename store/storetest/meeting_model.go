package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// meetingModel are random streams of events and waits, judged by a model that knows M1..M5 and O1..O3 of docs/spec/events.md and nothing of a store.
// The moves that make a stream are in meeting_moves.go.
var meetingModel = []Case{
	{Name: "EV-28 EV-31 EV-33 EV-34 EV-38 EV-48 EV-52 EV-84 random streams meet as the model says", Run: randomStreams},
}

// modelEvent is an event as the model knows it. Its place in the list of its tenant is its number (O1, O2).
type modelEvent struct {
	rendezvous.Event
	target string
	state  rendezvous.EventState
	wait   *modelWait // claimed, consumed
}

// modelWait is a wait as the model knows it.
type modelWait struct {
	rendezvous.Wait
	flow  *modelFlow
	event *modelEvent // parked or answered
	ended rendezvous.Closing
}

func (w *modelWait) open() bool   { return w.ended == "" && w.event == nil }
func (w *modelWait) parked() bool { return w.ended == "" && w.event != nil }

// modelFlow is a run of a stream, leased while it has a driver.
type modelFlow struct {
	*Flow
	driver *Driver
	sealed bool
	waits  int
}

func (r *modelFlow) epoch() int64 {
	if r.driver == nil {
		return 0
	}
	return r.driver.Epoch
}

// modelTenant is one tenant of a stream. Events and waits are in the order of their numbers.
type modelTenant struct {
	f      *Fix
	events []*modelEvent
	waits  []*modelWait
	flows  []*modelFlow
	number int64 // of the last event
}

// modelMeets is M1..M5 but for time: nothing in a stream expires or is due.
func modelMeets(e *modelEvent, w *modelWait) bool {
	if e.state != rendezvous.EventLive || !w.open() || w.flow.sealed { // M4, M5
		return false
	}
	if e.Type != w.Type { // M1
		return false
	}
	if w.From != "" && w.From != e.Source { // M2
		return false
	}
	shared := 0
	for _, a := range e.Keys {
		for _, b := range w.Keys {
			if a.Namespace == b.Namespace && a.Value == b.Value {
				shared++
			}
		}
	}
	switch { // M3
	case e.target == "":
		return shared > 0
	case e.target != w.RunID:
		return false
	case len(e.Keys) > 0 && len(w.Keys) > 0:
		return shared > 0
	}
	return true
}

// due are the pairs that come about if everything live is offered: again and again, a pair of which each is the other's first (O3).
func (m *modelTenant) due() map[*modelEvent]*modelWait {
	pairs := map[*modelEvent]*modelWait{}
	taken := map[*modelWait]bool{}
	for {
		before := len(pairs)
		for _, e := range m.events {
			if w := m.firstWait(e, pairs, taken); w != nil && m.firstEvent(w, pairs, taken) == e {
				pairs[e], taken[w] = w, true
			}
		}
		if len(pairs) == before {
			return pairs
		}
	}
}

// firstWait is the lowest wait that the event meets (O1), of those not in a pair.
func (m *modelTenant) firstWait(e *modelEvent, pairs map[*modelEvent]*modelWait, taken map[*modelWait]bool) *modelWait {
	for _, w := range m.waits {
		if pairs[e] == nil && !taken[w] && modelMeets(e, w) {
			return w
		}
	}
	return nil
}

// firstEvent is the lowest event that meets the wait (O2), of those not in a pair.
func (m *modelTenant) firstEvent(w *modelWait, pairs map[*modelEvent]*modelWait, taken map[*modelWait]bool) *modelEvent {
	for _, e := range m.events {
		if pairs[e] == nil && !taken[w] && modelMeets(e, w) {
			return e
		}
	}
	return nil
}

// claims and answers move a pair on.
func (m *modelTenant) claims(e *modelEvent, w *modelWait) {
	e.state, e.wait, w.event = rendezvous.EventClaimed, w, e
}

func (m *modelTenant) answers(e *modelEvent, w *modelWait) {
	m.claims(e, w)
	e.state, w.ended = rendezvous.EventConsumed, rendezvous.ClosedAnswered
}

// records answers everything that the run holds.
func (m *modelTenant) records(r *modelFlow) {
	for _, w := range m.waits {
		if w.flow == r && w.parked() {
			m.answers(w.event, w)
		}
	}
}

// ends makes a wait go; what it held lives again, or dies when it was the run's alone.
func (m *modelTenant) ends(w *modelWait, how rendezvous.Closing) {
	if e := w.event; e != nil {
		e.wait, w.event = nil, nil
		if e.state = rendezvous.EventLive; e.target != "" {
			e.state = rendezvous.EventDead
		}
	}
	w.ended = how
}

// stream is one random stream in two tenants.
type stream struct {
	t       *testing.T
	h       *Harness
	rand    *rand.Rand
	tenants []*modelTenant
	pool    []rendezvous.Key // the keys of events and waits: the fewer, the more contested
	said    []string         // the moves so far, for a failure
}

// fail ends the test with the moves that led there.
func (s *stream) fail(format string, args ...any) {
	s.t.Helper()
	from := max(0, len(s.said)-40)
	s.t.Fatalf("%s\nafter move %d of a stream, the last moves:\n%s", fmt.Sprintf(format, args...), len(s.said), lines(s.said[from:]))
}

func lines(all []string) (text string) {
	for _, s := range all {
		text += "  " + s + "\n"
	}
	return text
}

func (s *stream) say(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

// seedOf is RDV_SEED, or any.
func seedOf(t testing.TB) uint64 {
	text := os.Getenv("RDV_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("RDV_SEED is %q, want a number", text)
	}
	return seed
}

// A stream has this many moves, a few or many, before everything outstanding is offered.
const (
	fewestMoves = 15
	mostMoves   = 120
)

func randomStreams(t *testing.T, h *Harness) {
	seed := seedOf(t)
	t.Logf("RDV_SEED=%d", seed)
	made := 0
	for i := range 1 + h.Rounds(t)/5 { // streams are long, and every step of them commits
		s := &stream{t: t, h: h, rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		for _, name := range []string{"acme", "globex"} {
			m := &modelTenant{f: h.FixOf(t, fmt.Sprintf("%s-%d", name, i))}
			for n := range 4 {
				m.begin(n)
			}
			s.tenants = append(s.tenants, m)
		}
		s.pool = []rendezvous.Key{K("order", "1"), K("order", "2"), K("customer", "1"), K("customer", "2"), K("x", "order")}[:1+s.rand.IntN(5)]
		for range fewestMoves + s.rand.IntN(mostMoves-fewestMoves) {
			s.move()
			if s.rand.IntN(10) == 0 {
				s.compare()
			}
		}
		made += s.settle()
	}
	if made == 0 {
		t.Fatal("no pair was made in any stream: they prove nothing")
	}
	t.Logf("pairs made: %d", made)
}

// begin starts a run. Ids are equal in both tenants.
func (m *modelTenant) begin(n int) {
	r := m.f.StartAs(store.Start{WorkflowID: fmt.Sprint("of-run-", n), RunID: fmt.Sprint("run-", n), Type: "order"})
	m.flows = append(m.flows, &modelFlow{Flow: r})
}

// settle offers everything outstanding, in any order, and compares all that is left. It answers how many pairs were made.
func (s *stream) settle() int {
	var items []store.OfferItem
	for _, m := range s.tenants {
		for _, r := range m.flows {
			if r.driver != nil {
				s.release(m, r)
			}
		}
		for _, e := range m.events {
			if e.state == rendezvous.EventLive || e.state == rendezvous.EventClaimed {
				items = append(items, m.eventItem(e))
			}
		}
		for _, w := range m.waits {
			if w.ended == "" {
				items = append(items, m.waitItem(w))
			}
		}
	}
	s.rand.Shuffle(len(items), func(a, b int) { items[a], items[b] = items[b], items[a] })
	for len(items) > 0 {
		n := min(len(items), 1+s.rand.IntN(8))
		s.offer(items[:n])
		items = items[n:]
	}
	made := 0
	for _, m := range s.tenants {
		if left := m.due(); len(left) > 0 {
			s.fail("everything was offered, and %d pairs are apart", len(left))
		}
		made += m.judge(s)
	}
	s.compare()
	return made
}

// judge compares events and histories with the model, payloads bit for bit.
func (m *modelTenant) judge(s *stream) int {
	s.t.Helper()
	answers := map[rendezvous.WaitID]rendezvous.Record{}
	for _, r := range m.flows {
		for _, rec := range r.History() {
			if rec.Kind != rendezvous.WaitAnswered {
				continue
			}
			id := rendezvous.WaitID{RunID: rec.RunID, Effect: rec.Effect}
			if _, twice := answers[id]; twice {
				s.fail("%s: %v is answered twice", m.f.Name(), id)
			}
			answers[id] = rec
		}
	}
	made := 0
	for _, e := range m.events {
		stored := m.f.Stored(e.EventID)
		if stored.State != e.state || stored.Target != e.target {
			s.fail("%s: %s is %s for %q, want %s for %q", m.f.Name(), e.ID, stored.State, stored.Target, e.state, e.target)
		}
		if e.state == rendezvous.EventClaimed {
			s.fail("%s: %s is claimed though no run is leased", m.f.Name(), e.ID)
		}
		if e.state != rendezvous.EventConsumed {
			SamePayload(s.t, stored.Payload, e.Payload)
			continue
		}
		made++
		rec, answered := answers[e.wait.WaitID]
		if !answered {
			s.fail("%s: %s is consumed by %v, which has no answer", m.f.Name(), e.ID, e.wait.WaitID)
		}
		WantAnswerOf(s.t, rec, e.Event)
		eq(s.t, "place of "+e.ID, []any{stored.RunID, stored.Effect, stored.Seq}, []any{e.wait.RunID, e.wait.Effect, rec.Seq})
	}
	if made != len(answers) {
		s.fail("%s: the histories have %d answers, the model %d", m.f.Name(), len(answers), made)
	}
	return made
}

// compare compares the rows of waits with the model.
func (s *stream) compare() {
	s.t.Helper()
	for _, m := range s.tenants {
		var want []string
		for _, w := range m.waits {
			switch {
			case w.open():
				want = append(want, fmt.Sprintf("%s of %s open", w.Effect, w.RunID))
			case w.parked():
				want = append(want, fmt.Sprintf("%s of %s holds %s", w.Effect, w.RunID, w.event.ID))
			}
		}
		var got []string
		for _, row := range m.f.Listed(store.WaitFilter{}) {
			if row.State == rendezvous.WaitOpen {
				got = append(got, fmt.Sprintf("%s of %s open", row.Effect, row.RunID))
			} else {
				got = append(got, fmt.Sprintf("%s of %s holds %s", row.Effect, row.RunID, row.Held.ID))
			}
		}
		if diff := diffOf(got, want); diff != "" {
			s.fail("waits of %s (-want +got):\n%s", m.f.Name(), diff)
		}
	}
}

func (m *modelTenant) eventItem(e *modelEvent) store.OfferItem {
	return store.OfferItem{Tenant: m.f.Name(), Event: &e.EventID}
}

func (m *modelTenant) waitItem(w *modelWait) store.OfferItem {
	return store.OfferItem{Tenant: m.f.Name(), Wait: &w.WaitID}
}

// tenant, event and wait find what an answer of the store names.
func (s *stream) tenant(name string) *modelTenant {
	i := slices.IndexFunc(s.tenants, func(m *modelTenant) bool { return m.f.Name() == name })
	if i < 0 {
		s.fail("the store names the tenant %q", name)
	}
	return s.tenants[i]
}

func (m *modelTenant) event(s *stream, id rendezvous.EventID) *modelEvent {
	i := slices.IndexFunc(m.events, func(e *modelEvent) bool { return e.EventID == id })
	if i < 0 {
		s.fail("the store names the event %v in %s", id, m.f.Name())
	}
	return m.events[i]
}

func (m *modelTenant) wait(s *stream, id rendezvous.WaitID) *modelWait {
	i := slices.IndexFunc(m.waits, func(w *modelWait) bool { return w.WaitID == id })
	if i < 0 {
		s.fail("the store names the wait %v in %s", id, m.f.Name())
	}
	return m.waits[i]
}

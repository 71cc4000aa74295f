package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// matchReader is what the match index is read through.
type matchReader interface {
	OpenWaits(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error)
	LiveEvents(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Event, error)
	WaitsOf(ctx context.Context, keys []backend.RunKey) ([]*backend.Wait, error)
	Runs(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Run, error)
}

// index is a partial view of the store's match index, loaded as it is asked for. A question that it cannot answer yet is noted as a want; load fetches
// all wants in at most four reads, whatever their number. So a planner runs in memory over what there is, and again after a load, until it wants nothing.
//
// A row that several lists hold is one node. A turn is one run of the planner: what it gives away is gone until the next turn begins.
type index struct {
	r      matchReader
	at     time.Time // expiry is compared with it (R2)
	turn   int
	events map[int64]*eventNode
	waits  map[int64]*waitNode
	// lines hold the live events and open waits of one tenant, type and key.
	eventLines map[slot]*line[*eventNode]
	waitLines  map[slot]*line[*waitNode]
	runs       map[backend.RunKey]*runLine
	sealed     map[backend.RunKey]struct{} // found concluded under the lock: their waits are passed over (EV-37)
	closed     map[int64]struct{}          // waits whose effect is closed in the history: passed over

	wantEvents []*line[*eventNode]
	wantWaits  []*line[*waitNode]
	wantRuns   []*runLine
}

// slot is where events and waits of one tenant and type with one key meet.
type slot struct {
	tenant, typ string
	key         rendezvous.Key
}

// eventNode is an event in the index.
type eventNode struct {
	*backend.Event
	lines  []*line[*waitNode] // where an untargeted one meets waits
	gone   int                // the turn that gave it away
	pulled int                // the turn that pulled it in
	item   bool               // it is offered itself
	passed bool
	dealt  *deal // what an offer came to
}

// waitNode is a wait in the index.
type waitNode struct {
	*backend.Wait
	lines  []*line[*eventNode] // where it meets events
	gone   int
	passed bool
	dealt  *deal
}

// line is a prefix of a slot's rows, ascending by number.
type line[N any] struct {
	slot     slot
	rows     []N
	added    []N   // ascending by number, not in the store yet
	last     int64 // the number loaded up to
	loaded   bool
	complete bool
	turn     int // the turn that wants more
	want     int // how often it was asked in that turn
}

// runLine is what is known of the run an event is targeted at.
type runLine struct {
	key           backend.RunKey
	waits, added  []*waitNode
	run           *backend.Run // nil: unknown
	haveWaits     bool
	haveRun       bool
	turn          int
	wants, wantsR bool
}

func newIndex(r matchReader, at time.Time) *index {
	return &index{
		r: r, at: at,
		events: map[int64]*eventNode{}, waits: map[int64]*waitNode{},
		eventLines: map[slot]*line[*eventNode]{}, waitLines: map[slot]*line[*waitNode]{}, runs: map[backend.RunKey]*runLine{},
		sealed: map[backend.RunKey]struct{}{}, closed: map[int64]struct{}{},
	}
}

// event is the node of a row. Of two readings the later one counts.
func (x *index) event(row *backend.Event) *eventNode {
	n := x.events[row.Number]
	switch {
	case n == nil:
		n = &eventNode{Event: row, passed: row.Corrupt != nil}
		x.events[row.Number] = n
	case row.Version > n.Version:
		n.Event, n.lines, n.passed = row, nil, row.Corrupt != nil
	}
	return n
}

// wait is the node of a row. Of two readings the later one counts.
func (x *index) wait(row *backend.Wait) *waitNode {
	n := x.waits[row.Number]
	switch {
	case n == nil:
		n = &waitNode{Wait: row}
		x.waits[row.Number] = n
	case row.Version > n.Version:
		n.Wait, n.lines = row, nil
	default:
		return n
	}
	n.passed = x.passedOver(row)
	return n
}

func (x *index) passedOver(row *backend.Wait) bool {
	_, sealed := x.sealed[backend.RunKey{Tenant: row.Tenant, ID: row.RunID}]
	_, closed := x.closed[row.Number]
	return sealed || closed || row.Corrupt != nil
}

// pass makes the index pass over the waits that sealed and closed name.
func (x *index) pass() {
	for _, n := range x.waits {
		n.passed = x.passedOver(n.Wait)
	}
}

// add makes a wait part of the index that the unit is about to insert.
func (x *index) add(row *backend.Wait) *waitNode {
	n := x.wait(row)
	for _, k := range row.Keys {
		l := x.waitLine(slot{row.Tenant, row.Type, k})
		l.added = append(l.added, n)
	}
	r := x.runLine(backend.RunKey{Tenant: row.Tenant, ID: row.RunID})
	r.added = append(r.added, n)
	return n
}

// begin starts a turn: nothing is given away and nothing is wanted.
func (x *index) begin() {
	x.turn++
	x.wantEvents, x.wantWaits, x.wantRuns = x.wantEvents[:0], x.wantWaits[:0], x.wantRuns[:0]
}

// wanting reports whether this turn asked for what is not loaded: its answers are guesses then.
func (x *index) wanting() bool { return len(x.wantEvents)+len(x.wantWaits)+len(x.wantRuns) > 0 }

// take gives both away in this turn.
func (x *index) take(e *eventNode, w *waitNode) { e.gone, w.gone = x.turn, x.turn }

// leave makes a wait meet nothing in this turn.
func (x *index) leave(w *waitNode) { w.gone = x.turn }

// expired reports whether an event meets nobody any more at that instant (M4, EV-40).
func expired(e *backend.Event, at time.Time) bool {
	return !e.ExpiresAt.IsZero() && !at.Before(e.ExpiresAt)
}

// arrivedLate reports whether an event came when a wait's deadline was over.
func arrivedLate(e *backend.Event, w *backend.Wait) bool {
	return !w.Deadline.IsZero() && !e.ReceivedAt.Before(w.Deadline)
}

// meets is M1 to M5, whether or not a worker has ticked (TM-39), but for the seal of the wait's run, which is judged under its lock.
func meets(e *backend.Event, w *backend.Wait, at time.Time) bool {
	if e.Tenant != w.Tenant || e.Type != w.Type || (w.From != "" && w.From != e.Source) {
		return false // I14, M1, M2
	}
	if e.State != rendezvous.EventLive || e.Erased || expired(e, at) || !w.Open() {
		return false // M4, M5
	}
	if arrivedLate(e, w) {
		return false // M5
	}
	if e.Target != "" && (e.Target != w.RunID || len(e.Keys) == 0 || len(w.Keys) == 0) {
		return e.Target == w.RunID // M3: a side without keys does not restrict
	}
	_, shared := rendezvous.SharedKey(w.Keys, e.Keys)
	return shared
}

// lowestWait is the lowest-numbered open wait that e meets (O1), nil for none; known is false while not enough is loaded to say.
func (x *index) lowestWait(e *eventNode) (low *waitNode, known bool) {
	if e.Target != "" {
		return x.lowestOfRun(e)
	}
	if e.lines == nil {
		for _, k := range e.Keys {
			e.lines = append(e.lines, x.waitLine(slot{e.Tenant, e.Type, k}))
		}
	}
	for _, l := range e.lines {
		low = x.firstWait(l.rows, e, low)
		low = x.firstWait(l.added, e, low)
	}
	known = true
	for _, l := range e.lines {
		if !l.complete && (low == nil || l.last < low.Number) {
			x.wantWaits = l.wanted(x.turn, x.wantWaits)
			known = false
		}
	}
	return low, known
}

func (x *index) lowestOfRun(e *eventNode) (*waitNode, bool) {
	r := x.runLine(backend.RunKey{Tenant: e.Tenant, ID: e.Target})
	if !r.haveWaits {
		x.wantRun(r)
		r.wants = true
	}
	return x.firstWait(r.added, e, x.firstWait(r.waits, e, nil)), r.haveWaits
}

// firstWait is the first of rows that e meets if it is below low, else low.
func (x *index) firstWait(rows []*waitNode, e *eventNode, low *waitNode) *waitNode {
	for _, w := range rows {
		if low != nil && w.Number >= low.Number {
			break
		}
		if w.gone != x.turn && !w.passed && meets(e.Event, w.Wait, x.at) {
			return w
		}
	}
	return low
}

// oldestEvent is the lowest-numbered live event that w meets, kept ones included (O2), nil for none. sure, if there is one, is an event known to meet w.
func (x *index) oldestEvent(w *waitNode, sure *eventNode) (low *eventNode, known bool) {
	low = sure
	if w.lines == nil {
		for _, k := range w.Keys {
			w.lines = append(w.lines, x.eventLine(slot{w.Tenant, w.Type, k}))
		}
		w.lines = append(w.lines, x.eventLine(slot{w.Tenant, w.Type, backend.TargetKey(w.RunID)}))
	}
	for _, l := range w.lines {
		low = x.firstEvent(l, w, low)
	}
	known = true
	for _, l := range w.lines {
		if !l.complete && (low == nil || l.last < low.Number) {
			x.wantEvents = l.wanted(x.turn, x.wantEvents)
			known = false
		}
	}
	return low, known
}

func (x *index) firstEvent(l *line[*eventNode], w *waitNode, low *eventNode) *eventNode {
	for _, e := range l.rows {
		if low != nil && e.Number >= low.Number {
			break
		}
		if e.gone != x.turn && !e.passed && meets(e.Event, w.Wait, x.at) {
			return e
		}
	}
	return low
}

// addressee is the run a targeted event is for, nil if no run of that id was started yet.
func (x *index) addressee(e *eventNode) (run *backend.Run, known bool) {
	r := x.runLine(backend.RunKey{Tenant: e.Tenant, ID: e.Target})
	if !r.haveRun {
		x.wantRun(r)
		r.wantsR = true
	}
	return r.run, r.haveRun
}

func (x *index) eventLine(s slot) *line[*eventNode] {
	l := x.eventLines[s]
	if l == nil {
		l = &line[*eventNode]{slot: s}
		x.eventLines[s] = l
	}
	return l
}

func (x *index) waitLine(s slot) *line[*waitNode] {
	l := x.waitLines[s]
	if l == nil {
		l = &line[*waitNode]{slot: s}
		x.waitLines[s] = l
	}
	return l
}

func (x *index) runLine(key backend.RunKey) *runLine {
	r := x.runs[key]
	if r == nil {
		r = &runLine{key: key}
		x.runs[key] = r
	}
	return r
}

func (x *index) wantRun(r *runLine) {
	if r.turn != x.turn {
		r.turn = x.turn
		x.wantRuns = append(x.wantRuns, r)
	}
}

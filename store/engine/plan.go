package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// plan decides, in memory, which events go to which waits. Pairs are made only where each side is the other's first (O3): an event that is offered
// pulls in every older event that stands before it at its wait, and those pull in theirs. What it makes is what offering all of them one by one by event
// number would make: whatever the order, each such pair belongs to the one assignment in which nobody is overtaken.
type plan struct {
	x      *index
	pairs  []pair
	judged []*waitNode // waits whose seal decides about this plan, those of the pairs among them
	pulled int
	deep   *eventNode // where pulling in stopped, the oldest event seen
	torn   bool       // an event that stands before another at a wait does not meet that wait: both were read at different moments
	try    int        // of the verb
}

type pair struct {
	e *eventNode
	w *waitNode
}

// fate is what became of an event or wait in a plan.
type fate int

const (
	fateUnknown fate = iota // not enough is loaded
	fatePaired
	fateAlone // nothing meets it
	fateLater // too much would have to be pulled in
)

// maxPulledIn bounds the events one batch pulls in.
const maxPulledIn = 500

func (p *plan) begin() {
	p.x.begin()
	p.pairs, p.judged, p.pulled, p.deep, p.torn = p.pairs[:0], p.judged[:0], 0, nil, false
}

// event offers e.
func (p *plan) event(e *eventNode) fate {
	for {
		if e.gone == p.x.turn {
			return fatePaired
		}
		w, known := p.x.lowestWait(e)
		if !known {
			return fateUnknown
		}
		if w == nil {
			return fateAlone
		}
		first, known := p.x.oldestEvent(w, e)
		if !known {
			p.guess(e, w, first)
			return fateUnknown
		}
		if first == e {
			p.pair(e, w)
			return fatePaired
		}
		if f := p.pullIn(first); f != fatePaired {
			return f
		}
	}
}

// guess goes on as if nothing older were still to be loaded, in a turn that is thrown away anyway: so the items behind ask now for what they will need,
// and a batch on one key costs no load per item.
func (p *plan) guess(e *eventNode, w *waitNode, first *eventNode) {
	if first == e {
		p.x.take(e, w)
	} else {
		p.pullIn(first)
	}
}

// wait offers w: its oldest event is offered until one comes to w or none is left.
func (p *plan) wait(w *waitNode) fate {
	for {
		switch {
		case w.gone == p.x.turn:
			return fatePaired
		case w.passed:
			return fateAlone
		}
		e, known := p.x.oldestEvent(w, nil)
		if !known {
			return fateUnknown
		}
		if e == nil {
			return fateAlone
		}
		if f := p.pullIn(e); f != fatePaired {
			return f
		}
	}
}

// pullIn offers an event that stands before another. It meets an open wait, so it finds one, unless it takes too many others. One that finds none is torn
// from its wait: the wait was open in the line it was found in and gone when the event's own line was read, so what was planned is of no moment.
func (p *plan) pullIn(e *eventNode) fate {
	if e.pulled != p.x.turn && !e.item {
		if p.pulled == maxPulledIn {
			if p.deep == nil || e.Number < p.deep.Number {
				p.deep = e
			}
			return fateLater
		}
		e.pulled = p.x.turn
		p.pulled++
	}
	f := p.event(e)
	if f == fateAlone {
		p.torn = true
		return fateLater
	}
	return f
}

func (p *plan) pair(e *eventNode, w *waitNode) {
	p.take(e, w)
	p.judged = append(p.judged, w)
}

// take is pair for a wait that is judged already.
func (p *plan) take(e *eventNode, w *waitNode) {
	p.x.take(e, w)
	p.pairs = append(p.pairs, pair{e, w})
}

// matching settles a plan in a unit: planned unlocked, the workflows it touches locked at once, judged again under the lock, and planned anew without
// what did not hold there (R6, R7).
type matching struct {
	u      *unit
	plan   *plan
	memory *matchMemory
	locked bool
}

// matchMemory is what one verb keeps over its tries: without it a wait that holds only unlocked would be chosen in each of them.
type matchMemory struct {
	sealed map[backend.RunKey]struct{}
	closed map[int64]struct{}
}

func newMatchMemory() *matchMemory {
	return &matchMemory{sealed: map[backend.RunKey]struct{}{}, closed: map[int64]struct{}{}}
}

// matching starts a try.
func (u *unit) matching(m *matchMemory) *matching {
	x := newIndex(u.tx, u.at)
	x.sealed, x.closed = m.sealed, m.closed
	return &matching{u: u, plan: &plan{x: x, try: u.try}, memory: m}
}

// settle runs make until its plan wants nothing and holds under the locks. also are workflows to be locked beside those of the plan.
func (m *matching) settle(ctx context.Context, also []backend.WorkflowKey, make func(p *plan)) error {
	for {
		if err := m.plan.complete(ctx, make); err != nil {
			return err
		}
		first := !m.locked
		if first {
			m.locked = true
			if err := m.u.lock(ctx, m.plan.workflows(also)); err != nil {
				return err
			}
		}
		holds, err := m.judge(ctx, first)
		if holds || err != nil {
			return err
		}
		m.plan.x.pass()
	}
}

// complete runs make until everything it asks of the index is loaded. A torn plan is stale: the verb is made anew. What is torn in every try is torn in the
// store, by a hand; then what stands behind it is answered as too much for now, and the rest goes its way.
func (p *plan) complete(ctx context.Context, make func(p *plan)) error {
	for {
		p.begin()
		make(p)
		if !p.x.wanting() {
			if p.torn && p.try < brokenAfter {
				return backend.ErrStale
			}
			return nil
		}
		if err := p.x.load(ctx); err != nil {
			return err
		}
	}
}

// workflows are those of the judged waits, each once, behind also.
func (p *plan) workflows(also []backend.WorkflowKey) []backend.WorkflowKey {
	seen := map[backend.WorkflowKey]struct{}{}
	var keys []backend.WorkflowKey
	add := func(k backend.WorkflowKey) {
		if _, twice := seen[k]; !twice {
			seen[k] = struct{}{}
			keys = append(keys, k)
		}
	}
	for _, k := range also {
		add(k)
	}
	for _, w := range p.judged {
		add(flowKey(w.Wait))
	}
	return keys
}

func flowKey(w *backend.Wait) backend.WorkflowKey {
	return backend.WorkflowKey{Tenant: w.Tenant, ID: w.WorkflowID}
}

// judge looks under the lock whether the runs of the judged waits are unsealed. A plan made anew may need workflows that are not locked; then the verb
// is made anew, with what was learnt. That rows are still as they were read is for Apply to say, by their versions.
func (m *matching) judge(ctx context.Context, allLocked bool) (holds bool, err error) {
	holds = true
	for _, w := range m.plan.judged {
		f := m.u.flows[flowKey(w.Wait)]
		if f == nil && !allLocked {
			return false, backend.ErrStale
		}
		if f == nil || f.Corrupt == nil && (f.RunID != w.RunID || f.Status.Terminal()) {
			m.memory.sealed[backend.RunKey{Tenant: w.Tenant, ID: w.RunID}] = struct{}{}
			holds = false
		}
	}
	if !holds || m.u.try == 0 {
		return holds, nil
	}
	return m.judgeEffects(ctx)
}

// judgeEffects looks whether the effects of the pairs are still open in the history. A row left over by a restore is met only by the constraint that
// closes an effect once, so this is asked when a first try did not go through.
func (m *matching) judgeEffects(ctx context.Context) (holds bool, err error) {
	keys := make([]backend.WaitKey, len(m.plan.pairs))
	for i, p := range m.plan.pairs {
		keys[i] = p.w.Key()
	}
	if len(keys) == 0 {
		return true, nil
	}
	effects, err := m.u.tx.Effects(ctx, keys)
	if err != nil {
		return false, err
	}
	holds = true
	for i, p := range m.plan.pairs {
		if standingOf(effects[keys[i]]).closed != nil {
			m.memory.closed[p.w.Number] = struct{}{}
			holds = false
		}
	}
	return holds, nil
}

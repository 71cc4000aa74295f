package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// law is a small world that keeps to runs.md, to history.md sections 4 to 6 and to what events.md says of events with one key: written from the
// contract, not from a store, and small enough to be read. Every event in it is offered at once, so that no live event and no open wait of one key are
// ever left apart.
type law struct {
	now    time.Time
	flows  []*lawFlow
	events []*lawEvent // by number
	waits  int         // registered so far: their numbers
	claims int
}

type lawFlow struct {
	tenant, id string
	runs       []*lawRun // the last is the current one
	records    []lawRecord
	owner      string // "" when nobody's, expired or not
	acquireID  string
	epoch      int64
	expires    time.Time
	ended      rendezvous.LeaseEnd
	reclaims   int
	pause      bool // requested
	cancel     bool
	woken      lawMark
}

type lawRun struct {
	id      string
	status  rendezvous.Status
	effects map[string][]lawAttempt // by effect key: its attempts in their order
	waits   []*lawWait              // with a row, by number
}

// lawAttempt is one opening of an effect or wait and what closed it.
type lawAttempt struct {
	wait      bool
	key       string // of a wait
	closed    rendezvous.Kind
	retryable bool
}

type lawWait struct {
	effect string
	key    string
	number int
	held   *lawEvent
	claim  int // which claim is the older one: instants may be equal
}

type lawEvent struct {
	id       rendezvous.EventID
	tenant   string
	key      string
	targeted bool
	state    rendezvous.EventState
	run      string // of its claim or answer
	effect   string
	compared bool // in its last state
}

// lawRecord is a record as far as the law fixes it.
type lawRecord struct {
	run     string
	kind    rendezvous.Kind
	effect  string
	attempt int
	at      time.Time
}

// lawMark says whether a run is woken. A driver whose lease ran out and who is told of an answer by its own verb: that wakes it or not.
type lawMark int

const (
	markNo lawMark = iota
	markMaybe
	markYes
)

func (f *lawFlow) run() *lawRun          { return f.runs[len(f.runs)-1] }
func (f *lawFlow) head() int64           { return int64(len(f.records)) }
func (f *lawFlow) sealed() bool          { return f.run().status.Terminal() }
func (f *lawFlow) live(l *law) bool      { return f.owner != "" && f.expires.After(l.now) }
func (f *lawFlow) good(epoch int64) bool { return f.owner != "" && f.epoch == epoch }

// wake marks the run if it is free.
func (f *lawFlow) wake(l *law) {
	if !f.sealed() && !f.live(l) {
		f.woken = markYes
	}
}

// open counts the open attempts of effects, or of waits.
func (r *lawRun) open(waits bool) int {
	n := 0
	for _, attempts := range r.effects {
		for _, a := range attempts {
			if a.closed == "" && a.wait == waits {
				n++
			}
		}
	}
	return n
}

func (r *lawRun) wait(effect string) *lawWait {
	i := slices.IndexFunc(r.waits, func(w *lawWait) bool { return w.effect == effect })
	if i < 0 {
		return nil
	}
	return r.waits[i]
}

// admits is checks 3 to 5 of runs.md section 2.
func (l *law) admits(f *lawFlow, run string, epoch int64) rendezvous.Code {
	switch {
	case !slices.ContainsFunc(f.runs, func(r *lawRun) bool { return r.id == run }):
		return rendezvous.CodeNotFound
	case run != f.run().id || f.sealed():
		return rendezvous.CodeSealed
	case epoch == 0 && f.live(l):
		return rendezvous.CodeLeaseHeld
	case epoch != 0 && !f.good(epoch):
		return rendezvous.CodeFenced
	}
	return ""
}

// record writes one record of the current run. driven says that its writer holds a good epoch.
func (l *law) record(f *lawFlow, driven bool, kind rendezvous.Kind, effect string, attempt int) {
	at := l.now
	if n := len(f.records); n > 0 && f.records[n-1].at.After(at) {
		at = f.records[n-1].at
	}
	f.records = append(f.records, lawRecord{run: f.run().id, kind: kind, effect: effect, attempt: attempt, at: at})
	if s := kind.Status(); s != "" {
		f.run().status = s
	}
	if driven {
		f.reclaims = 0
	}
}

// order is G5 to G8 for one record, and its effect on the run's effects.
func (r *lawRun) order(pausing bool, rec rendezvous.Record, key string) rendezvous.Code {
	paused := r.status == rendezvous.StatusPaused
	attempts, n := r.effects[rec.Effect], max(rec.Attempt, 1)
	switch {
	case rec.Kind == rendezvous.RunPaused && paused, rec.Kind == rendezvous.RunResumed && !paused:
		return rendezvous.CodeConflict
	case rec.Kind.NewWork() && (paused || pausing):
		return rendezvous.CodeConflict
	case rec.Kind.Phase() == rendezvous.PhaseNone:
	case rec.Kind.Phase() == rendezvous.PhaseOpen:
		wait := rec.Kind == rendezvous.WaitRegistered
		switch {
		case len(attempts) > 0 && attempts[0].wait != wait, n <= len(attempts):
			return rendezvous.CodeDuplicate
		case n > len(attempts)+1, n > 1 && !attempts[n-2].retryable:
			return rendezvous.CodeConflict
		}
		r.effects[rec.Effect] = append(attempts, lawAttempt{wait: wait, key: key})
	default:
		wait := rec.Kind == rendezvous.WaitAnswered || rec.Kind == rendezvous.WaitWithdrawn
		if n > len(attempts) || attempts[n-1].wait != wait || attempts[n-1].closed != "" {
			return rendezvous.CodeConflict
		}
		attempts[n-1].closed = rec.Kind
		var d rendezvous.EffectFailedData
		attempts[n-1].retryable = rec.Kind == rendezvous.EffectFailed && rendezvous.DecodeData(rec, &d) == nil && d.Retryable
	}
	return ""
}

// trial is a copy of the run to try an order on.
func (r *lawRun) trial() *lawRun {
	c := &lawRun{id: r.id, status: r.status, effects: map[string][]lawAttempt{}}
	for k, attempts := range r.effects {
		c.effects[k] = slices.Clone(attempts)
	}
	return c
}

// answer records that the event answers the wait, which goes.
func (l *law) answer(f *lawFlow, driven bool, w *lawWait, e *lawEvent) {
	r := f.run()
	attempts := r.effects[w.effect]
	attempts[len(attempts)-1].closed = rendezvous.WaitAnswered
	l.record(f, driven, rendezvous.WaitAnswered, w.effect, len(attempts))
	r.waits = slices.DeleteFunc(r.waits, func(o *lawWait) bool { return o == w })
	e.state, e.run, e.effect = rendezvous.EventConsumed, r.id, w.effect
}

// let lets go of what a wait holds.
func (w *lawWait) let() {
	if e := w.held; e != nil {
		e.state, e.run, e.effect = rendezvous.EventLive, "", ""
		if e.targeted {
			e.state = rendezvous.EventDead
		}
		w.held = nil
	}
}

// withdraw closes an open wait, whose row goes.
func (l *law) withdraw(f *lawFlow, driven bool, effect string) {
	r := f.run()
	attempts := r.effects[effect]
	attempts[len(attempts)-1].closed = rendezvous.WaitWithdrawn
	l.record(f, driven, rendezvous.WaitWithdrawn, effect, len(attempts))
	r.waits = slices.DeleteFunc(r.waits, func(w *lawWait) bool {
		if w.effect == effect {
			w.let()
		}
		return w.effect == effect
	})
}

// retire is what a seal does to the run's waits.
func (r *lawRun) retire() {
	for _, w := range r.waits {
		w.let()
	}
	r.waits = nil
}

// conclude ends the current run. The caller has recorded its terminal.
func (l *law) conclude(f *lawFlow, end rendezvous.LeaseEnd) {
	f.run().retire()
	if f.owner != "" {
		f.free(end)
	}
	f.pause, f.cancel, f.woken = false, false, markNo
}

func (f *lawFlow) free(end rendezvous.LeaseEnd) {
	f.owner, f.acquireID, f.expires, f.ended = "", "", time.Time{}, end
}

// paused writes RunPaused, which empties the owner.
func (l *law) paused(f *lawFlow, driven bool) {
	l.record(f, driven, rendezvous.RunPaused, "", 0)
	f.pause = false
	if f.owner != "" {
		f.free(rendezvous.LeasePaused)
	}
}

// parked records what is parked, oldest claim first, and answers how many.
func (l *law) parked(f *lawFlow, driven bool) int {
	var due []*lawWait
	for _, w := range f.run().waits {
		if w.held != nil {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *lawWait) int { return cmp.Compare(a.claim, b.claim) })
	for _, w := range due {
		l.answer(f, driven, w, w.held)
	}
	return len(due)
}

// register gives the current run a wait's row, or the answer that is there for it already: the lowest live event of its key.
func (l *law) register(f *lawFlow, driven bool, effect, key string) {
	l.waits++
	w := &lawWait{effect: effect, key: key, number: l.waits}
	for _, e := range l.events {
		if e.tenant == f.tenant && e.key == key && e.state == rendezvous.EventLive {
			l.answer(f, driven, w, e)
			f.wake(l)
			return
		}
	}
	f.run().waits = append(f.run().waits, w)
}

// meet gives every live event, lowest first, to the lowest open wait of its key: recorded where the run is free, else parked.
func (l *law) meet() {
	for _, e := range l.events {
		if e.state != rendezvous.EventLive {
			continue
		}
		var f *lawFlow
		var w *lawWait
		for _, of := range l.flows {
			for _, o := range of.run().waits {
				if of.tenant == e.tenant && o.key == e.key && o.held == nil && (w == nil || o.number < w.number) {
					f, w = of, o
				}
			}
		}
		if w != nil {
			l.claim(f, w, e)
		}
	}
}

func (l *law) claim(f *lawFlow, w *lawWait, e *lawEvent) {
	if f.live(l) {
		e.state, e.run, e.effect = rendezvous.EventClaimed, f.run().id, w.effect
		l.claims++
		w.held, w.claim = e, l.claims
		return
	}
	l.answer(f, false, w, e)
	f.wake(l)
}

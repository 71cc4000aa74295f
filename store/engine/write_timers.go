package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// readTimers reads the live armings that the batch's records are about, under the workflow's lock.
func (w *writing) readTimers(ctx context.Context) error {
	ids := map[string]struct{}{}
	var keys []backend.TimerKey
	add := func(id string) {
		if _, twice := ids[id]; !twice {
			ids[id] = struct{}{}
			keys = append(keys, w.f.timerKey(id))
		}
	}
	for i, r := range w.b.records {
		switch r.Kind {
		case rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.TimerCancelled:
			var d rendezvous.TimerFiredData // of all three, the members in common
			if err := rendezvous.DecodeData(r, &d); err != nil {
				return placed(err, i)
			}
			add(d.TimerID)
		case rendezvous.WaitTimedOut:
			add(rendezvous.WaitTimerID(r.RunID, r.Effect))
		case rendezvous.RunTimedOut:
			add(rendezvous.RunTimerID(r.RunID))
		}
		if (r.Kind == rendezvous.TimerFired || r.Kind == rendezvous.WaitTimedOut) && w.b.epoch == 0 {
			return placed(rendezvous.InvalidField("epoch", "is missing: %s is for the run's driver; acquire its lease", r.Kind), i)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	w.timers = map[string]*backend.Timer{}
	if w.f.RunID == "" { // a workflow that begins here has none
		return nil
	}
	rows, err := w.tx.Timers(ctx, keys)
	for _, t := range rows {
		if t.RunID == w.f.RunID {
			w.timers[t.TimerID] = t
		}
	}
	return err
}

// timer writes a record about a timer and moves its row along (timers.md section 2).
func (w *writing) timer(ctx context.Context, r rendezvous.Record) error {
	if r.Kind == rendezvous.TimerStarted {
		return w.startTimer(ctx, r)
	}
	var d rendezvous.TimerFiredData
	if err := rendezvous.DecodeData(r, &d); err != nil {
		return err
	}
	live := w.timers[d.TimerID]
	switch {
	case live != nil && live.Corrupt != nil:
		return live.Corrupt
	case live == nil || live.ArmedSeq != d.ArmedSeq:
		return w.timerConflict(ctx, d.TimerID, live)
	}
	if r.Kind == rendezvous.TimerFired {
		if w.now.Before(live.FireAt) {
			return tooEarly("fire_at", live.FireAt, w.now)
		}
		if d.FireAt != "" && d.FireAt != rendezvous.FormatInstant(live.FireAt) {
			return conflict("fire_at", rendezvous.FormatInstant(live.FireAt), "timer %q is armed for %s; leave fire_at out, the store fills it in", d.TimerID,
				rendezvous.FormatInstant(live.FireAt))
		}
		var err error
		if r.Data, err = withInstant(r.Data, "fire_at", "", live.FireAt); err != nil {
			return err
		}
	}
	w.record(w.f, r)
	w.disarm(w.f, live.Key())
	delete(w.timers, d.TimerID)
	if w.authors > 0 {
		w.authors--
	}
	return nil
}

func (w *writing) startTimer(ctx context.Context, r rendezvous.Record) error {
	var d rendezvous.TimerStartedData
	err := rendezvous.DecodeData(r, &d)
	if err != nil {
		return err
	}
	at, err := rendezvous.Resolve("data.fire_at", d.FireAt, "data.after", d.After, w.stamp(w.f))
	if err != nil {
		return err
	}
	if r.Data, err = withInstant(r.Data, "fire_at", "after", at); err != nil {
		return err
	}
	live := w.timers[d.TimerID]
	if live == nil {
		if err := w.roomForTimer(ctx); err != nil {
			return err
		}
	}
	row := w.record(w.f, r)
	w.o.FireAt = at
	if w.b.ends() { // the run ends in this batch, and its timers with it
		return nil
	}
	if live == nil && w.authors >= 0 {
		w.authors++
	}
	t := backend.Timer{TimerID: d.TimerID, Class: rendezvous.TimerAuthor, FireAt: at, ArmedSeq: row.Seq, Trace: w.b.trace}
	w.arm(w.f, t, live != nil)
	w.timers[d.TimerID] = w.unit.timers.rows[w.f.timerKey(d.TimerID)]
	return nil
}

// roomForTimer judges whether the run may have one more author timer (TM-12). They are counted only where there are so many timers of any class.
func (w *writing) roomForTimer(ctx context.Context) error {
	if w.f.LiveTimers < rendezvous.MaxTimersPerRun {
		return nil
	}
	if w.authors < 0 {
		rows, err := w.timersOf(ctx, []backend.WorkflowKey{w.f.Key()}, time.Time{})
		if err != nil {
			return err
		}
		w.authors = 0
		for _, t := range rows {
			if t.Class == rendezvous.TimerAuthor {
				w.authors++
			}
		}
	}
	if w.authors >= rendezvous.MaxTimersPerRun {
		return rendezvous.OverLimit("timers", rendezvous.MaxTimersPerRun, w.authors+1)
	}
	return nil
}

// timerConflict says what holds of a timer instead: re-armed, or from the history fired, cancelled, never armed (TM-16).
func (w *writing) timerConflict(ctx context.Context, id string, live *backend.Timer) error {
	if live != nil {
		return conflict("timer", "rearmed", "timer %q is armed by record %d, not by the one named", id, live.ArmedSeq).
			With("timer_id", id).With("armed_seq", live.ArmedSeq)
	}
	last, err := w.lastOfTimer(ctx, w.f, id)
	if err != nil {
		return err
	}
	return timerOver(id, last)
}

// lastOfTimer is the last record about a timer of f's run, those of this unit included; nil for none.
func (u *unit) lastOfTimer(ctx context.Context, f *flow, id string) (*rendezvous.Record, error) {
	for i := len(u.ch.Records) - 1; i >= 0; i-- {
		r := &u.ch.Records[i].Record
		var d rendezvous.TimerFiredData
		if r.RunID == f.RunID && isTimer(r.Kind) && rendezvous.DecodeData(*r, &d) == nil && d.TimerID == id {
			return r, nil
		}
	}
	key := backend.RunTimerKey{Tenant: f.Tenant, RunID: f.RunID, TimerID: id}
	rows, err := u.tx.LastTimerRecords(ctx, []backend.RunTimerKey{key})
	if r, ok := rows[key]; ok {
		return &r, err
	}
	return nil, err
}

func isTimer(k rendezvous.Kind) bool {
	return k == rendezvous.TimerStarted || k == rendezvous.TimerFired || k == rendezvous.TimerCancelled
}

// timerOver is the conflict of a timer without a live arming: last is its last record, nil for none.
func timerOver(id string, last *rendezvous.Record) *rendezvous.Error {
	switch {
	case last == nil:
		return conflict("timer", "never armed", "timer %q was never armed in this run", id).With("timer_id", id)
	case last.Kind == rendezvous.TimerFired:
		return conflict("timer", "fired", "timer %q fired at seq %d", id, last.Seq).With("timer_id", id).With("seq", last.Seq)
	case last.Kind == rendezvous.TimerCancelled:
		return conflict("timer", "cancelled", "timer %q was cancelled at seq %d", id, last.Seq).With("timer_id", id).With("seq", last.Seq)
	}
	return conflict("timer", "ended", "timer %q was armed at seq %d and ended with a conclusion", id, last.Seq).With("timer_id", id).With("seq", last.Seq)
}

// tooEarly refuses what may be recorded only from an instant on, whoever writes (G10, TM-18).
func tooEarly(field string, due, now time.Time) *rendezvous.Error {
	left := due.Sub(now)
	return rendezvous.InvalidField(field, "%s is %s ahead; it is recorded from then on", rendezvous.FormatInstant(due), left).
		With("remaining_ms", (left + time.Millisecond - 1).Milliseconds())
}

// resolveWait makes the instant of a registered wait's deadline, and its record say it; zero for none.
func (w *writing) resolveWait(r *rendezvous.Record) (time.Time, error) {
	var d rendezvous.WaitRegisteredData
	if err := rendezvous.DecodeData(*r, &d); err != nil || d.Deadline == "" && d.DeadlineAfter == nil {
		return time.Time{}, err
	}
	due, err := rendezvous.Resolve("data.deadline", d.Deadline, "data.deadline_after", d.DeadlineAfter, w.stamp(w.f))
	if err != nil {
		return due, err
	}
	r.Data, err = withInstant(r.Data, "deadline", "deadline_after", due)
	return due, err
}

// due is the instant of a stored wait's deadline: the timer's, for a poll's row says until when it was looked.
func (w *writing) due(wait *backend.Wait) time.Time {
	if t := w.timers[rendezvous.WaitTimerID(wait.RunID, wait.Effect)]; t != nil && t.Corrupt == nil {
		return t.FireAt
	}
	return wait.Deadline
}

// lastLook judges the batch's WaitTimedOut records: from the deadline on, and only where no event came in time (M5, RN-10). One that did is claimed, that
// claim alone is committed, and the batch is a conflict; a contested one leaves everything as it is.
func (w *writing) lastLook(ctx context.Context) error {
	p := &plan{x: newIndex(w.tx, w.at), try: w.try}
	var nodes []*waitNode
	var places []int
	for i, r := range w.b.records {
		if r.Kind != rendezvous.WaitTimedOut {
			continue
		}
		wait := w.waits[r.Effect]
		switch {
		case wait == nil || wait.Deadline.IsZero():
			return placed(effectConflict(r, "no deadline", "wait %q has no deadline that could have come", r.Effect), i)
		case w.now.Before(w.due(wait)):
			return placed(tooEarly("deadline", w.due(wait), w.now), i)
		case wait.Held != nil:
			return placed(held(r, wait.Held.ID), i)
		}
		nodes, places = append(nodes, p.x.wait(wait)), append(places, i)
	}
	if len(nodes) == 0 {
		return nil
	}
	taken, contested, err := p.claimAll(ctx, nodes)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		r := w.b.records[places[i]]
		switch {
		case taken[i] != nil:
			w.claim(n.Wait, taken[i].Event)
			if w.o.refused == nil {
				w.o.refused = placed(held(r, taken[i].ID), places[i])
			}
		case contested[i] && w.o.refused == nil:
			w.o.refused = placed(effectConflict(r, "contested", "an event came in time for wait %q that an older wait meets too; offer the wait and send again", r.Effect),
				places[i])
		}
	}
	return nil
}

// held says that a wait has an event that came in time.
func held(r rendezvous.Record, id string) *rendezvous.Error {
	return effectConflict(r, "held", "wait %q holds event %q, which came in time; collect it", r.Effect, id)
}

// claimAll gives each wait its oldest event, in their order, and says of which an event is there that an older wait meets too (O3).
func (p *plan) claimAll(ctx context.Context, nodes []*waitNode) (taken []*eventNode, contested []bool, err error) {
	taken, contested = make([]*eventNode, len(nodes)), make([]bool, len(nodes))
	err = p.complete(ctx, func(p *plan) {
		for i, n := range nodes {
			contested[i] = false
			if taken[i] = p.claim(n); taken[i] == nil {
				contested[i] = p.contested(n)
			}
		}
	})
	return taken, contested, err
}

// checkRunDeadline judges a RunTimedOut, and makes it say the instant that was due.
func (w *writing) checkRunDeadline(r *rendezvous.Record) error {
	t := w.timers[rendezvous.RunTimerID(r.RunID)]
	switch {
	case t == nil:
		return conflict("deadline", "none", "run %q has no deadline", r.RunID).With("run", r.RunID)
	case t.Corrupt != nil:
		return t.Corrupt
	case w.now.Before(t.FireAt):
		return tooEarly("deadline", t.FireAt, w.now)
	}
	var err error
	r.Data, err = withInstant(r.Data, "deadline", "", t.FireAt)
	return err
}

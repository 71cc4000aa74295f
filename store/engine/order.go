package engine

import (
	"slices"

	"github.com/rendezvous-events/rendezvous"
)

// orderFacts is what legal order (history.md section 4) is judged from, read before, set-based: the workflow row, and what the history says of the
// effects a batch names. No history is read.
type orderFacts struct {
	run     string            // the current run; "" for a workflow that is about to begin
	status  rendezvous.Status // of the current run
	pausing bool              // a pause is requested of its driver
	head    int64
	// effects holds the records that opened and closed the effects named, ascending by seq.
	effects map[string][]rendezvous.Record
	// open holds the openings of effects (not waits) that nothing closed, ascending by seq. Needed only by a batch that continues as new, and then at
	// least one more of them than the batch closes.
	open []rendezvous.Record
	// reopened is the seq of the run's last RunReopened, 0 for none; superseded the effects which that one lets be tried again (G8).
	reopened   int64
	superseded map[string]struct{}
}

// order is how things stand as far as legal order goes, record by record.
type order struct {
	run     string
	status  rendezvous.Status
	pausing bool
	head    int64
	effects map[string]*effectLine
	open    []rendezvous.Record

	reopened   int64
	superseded map[string]struct{}
}

// effectLine is the attempts of one effect key, which names an effect or a wait, never both in one run (G7).
type effectLine struct {
	wait     bool
	attempts map[int]*attempt
}

// attempt is one opening and what closed it.
type attempt struct {
	opened    int64
	closed    int64 // 0: open
	closing   rendezvous.Kind
	retryable bool // closed by EffectFailed, to be tried again
}

// checkOrder judges a batch by G1..G8 (G9 is the conclusion's, G10 is judged by the timers' rows) and writes nothing. The records are checked by shape, their
// places in the batch by checkPlaces.
func checkOrder(facts orderFacts, records []rendezvous.Record) error {
	if int64(len(records)) > rendezvous.MaxSeq-facts.head {
		return rendezvous.OverLimit("seq", rendezvous.MaxSeq, rendezvous.MaxSeq).With("head", facts.head)
	}
	o := order{
		run: facts.run, status: facts.status, pausing: facts.pausing, head: facts.head, effects: map[string]*effectLine{}, open: slices.Clone(facts.open),
		reopened: facts.reopened, superseded: facts.superseded,
	}
	for effect, stored := range facts.effects {
		for _, r := range stored {
			o.note(effect, r)
		}
	}
	for i, r := range records {
		o.head++
		r.Seq = o.head
		if err := o.take(r); err != nil {
			return err.With("record", i)
		}
	}
	return nil
}

// take judges one record and lets it move the order on.
func (o *order) take(r rendezvous.Record) *rendezvous.Error {
	if r.Kind == rendezvous.RunStarted {
		return o.begin(r)
	}
	if o.run == "" { // G1
		return rendezvous.InvalidField("kind", "a workflow begins with %s, not with %s", rendezvous.RunStarted, r.Kind)
	}
	if err := o.checkPause(r); err != nil {
		return err
	}
	if r.Kind == rendezvous.RunContinued && len(o.open) > 0 { // G3
		first := o.open[0]
		return conflict("open_effect", first.Effect, "effect %q is open since seq %d; close it before the run continues as new", first.Effect, first.Seq).
			With("effect", first.Effect).With("attempt", first.Attempt).With("seq", first.Seq)
	}
	if err := o.checkEffect(r); err != nil {
		return err
	}
	if s := r.Kind.Status(); s != "" {
		o.status = s
	}
	return nil
}

// begin judges a RunStarted: the first of a workflow, or directly behind the RunContinued that made room for it (G1, G2).
func (o *order) begin(r rendezvous.Record) *rendezvous.Error {
	if o.run != "" && o.status != rendezvous.StatusContinued {
		return conflict("workflow", o.run, "the workflow has begun already, with run %q as its current one; a second root never appears", o.run).
			With("run", o.run)
	}
	o.run, o.status, o.pausing = r.RunID, rendezvous.StatusRunning, false
	o.reopened, o.superseded = 0, nil
	o.effects, o.open = map[string]*effectLine{}, nil // keys of the old run mean nothing in the next
	return nil
}

// checkPause is G5 and G6, and the refusal of new work while a pause is only requested (runs.md section 6): also of a driver with a good epoch.
func (o *order) checkPause(r rendezvous.Record) *rendezvous.Error {
	paused := o.status == rendezvous.StatusPaused
	switch {
	case r.Kind == rendezvous.RunPaused && o.status != rendezvous.StatusRunning, r.Kind == rendezvous.RunResumed && !paused:
		return conflict("status", string(o.status), "%s needs another status: the run is %s", r.Kind, o.status)
	case r.Kind.NewWork() && paused:
		return conflict("paused", string(o.status), "the run is paused: %s waits until it is resumed", r.Kind)
	case r.Kind.NewWork() && o.pausing:
		return conflict("pausing", string(o.status), "a pause is requested: %s waits until the run is resumed; give the lease up", r.Kind)
	}
	return nil
}

// checkEffect is G7 and G8.
func (o *order) checkEffect(r rendezvous.Record) *rendezvous.Error {
	switch r.Kind.Phase() {
	case rendezvous.PhaseOpen:
		if err := o.checkOpening(r); err != nil {
			return err
		}
		if !r.Kind.IsWait() {
			o.open = append(o.open, r)
		}
	case rendezvous.PhaseClose:
		if err := o.checkClosing(r); err != nil {
			return err
		}
	default:
		return nil
	}
	o.note(r.Effect, r)
	return nil
}

func (o *order) checkOpening(r rendezvous.Record) *rendezvous.Error {
	line := o.effects[r.Effect]
	if line != nil && line.wait != r.Kind.IsWait() {
		return duplicate(r, line.first(), "the key %q names a %s in this run since seq %d; choose another key", r.Effect, line.word(), line.first())
	}
	if line != nil && line.attempts[r.Attempt] != nil {
		seq := line.attempts[r.Attempt].opened
		return duplicate(r, seq, "attempt %d of %q was opened at seq %d", r.Attempt, r.Effect, seq)
	}
	if r.Attempt == 1 {
		return nil
	}
	before := line.attempt(r.Attempt - 1) // G8
	switch {
	case before == nil:
		return effectConflict(r, "never opened", "attempt %d of %q comes before attempt %d", r.Attempt-1, r.Effect, r.Attempt)
	case before.closed == 0 && r.Kind.IsWait() && before.opened < o.reopened: // left open by a conclusion that was reopened
	case before.closed == 0:
		return effectConflict(r, "open", "attempt %d of %q is open since seq %d", r.Attempt-1, r.Effect, before.opened).With("seq", before.opened)
	case !before.retryable && before.closed < o.reopened && before.closing == rendezvous.EffectFailed && o.supersedes(r.Effect):
	case !before.retryable:
		return effectConflict(r, string(before.closing), "attempt %d of %q was closed for good by %s at seq %d", r.Attempt-1, r.Effect,
			before.closing, before.closed).With("seq", before.closed)
	}
	return nil
}

func (o *order) checkClosing(r rendezvous.Record) *rendezvous.Error {
	line := o.effects[r.Effect]
	if line != nil && line.wait != r.Kind.IsWait() {
		return effectConflict(r, line.word(), "the key %q names a %s, which %s does not close", r.Effect, line.word(), r.Kind)
	}
	a := line.attempt(r.Attempt)
	switch {
	case a == nil:
		return effectConflict(r, "never opened", "attempt %d of %q was never opened", r.Attempt, r.Effect)
	case line.wait && a.opened < o.reopened: // G9
		return effectConflict(r, "ended", "attempt %d of %q ended with a conclusion that was reopened; register its next attempt", r.Attempt, r.Effect).
			With("seq", a.opened)
	case a.closed != 0:
		return effectConflict(r, string(a.closing), "attempt %d of %q was closed by %s at seq %d", r.Attempt, r.Effect, a.closing, a.closed).
			With("seq", a.closed).With("kind", string(a.closing))
	}
	return nil
}

func (o *order) supersedes(effect string) bool {
	_, ok := o.superseded[effect]
	return ok
}

// note keeps what an opening or closing says of its effect.
func (o *order) note(effect string, r rendezvous.Record) {
	number := max(r.Attempt, 1)
	line := o.effects[effect]
	if line == nil {
		line = &effectLine{wait: r.Kind.IsWait(), attempts: map[int]*attempt{}}
		o.effects[effect] = line
	}
	a := line.attempts[number]
	if a == nil {
		a = &attempt{}
		line.attempts[number] = a
	}
	if r.Kind.Phase() == rendezvous.PhaseOpen {
		a.opened = r.Seq
		return
	}
	a.closed, a.closing, a.retryable = r.Seq, r.Kind, retryable(r)
	o.open = slices.DeleteFunc(o.open, func(e rendezvous.Record) bool { return e.Effect == effect && max(e.Attempt, 1) == number })
}

// retryable reports whether r is a failure after which the effect is tried again. Data that does not say so is final.
func retryable(r rendezvous.Record) bool {
	var d rendezvous.EffectFailedData
	return r.Kind == rendezvous.EffectFailed && rendezvous.DecodeData(r, &d) == nil && d.Retryable
}

func (l *effectLine) attempt(number int) *attempt {
	if l == nil {
		return nil
	}
	return l.attempts[number]
}

// first is the seq that gave the key its meaning.
func (l *effectLine) first() int64 {
	var seq int64
	for _, a := range l.attempts {
		if seq == 0 || a.opened < seq {
			seq = a.opened
		}
	}
	return seq
}

func (l *effectLine) word() string {
	if l.wait {
		return "wait"
	}
	return "effect"
}

// duplicate says that an effect attempt is taken, with the seq that opened it (G7).
func duplicate(r rendezvous.Record, seq int64, format string, args ...any) *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeDuplicate, format, args...).With("effect", r.Effect).With("attempt", r.Attempt).With("seq", seq)
}

func effectConflict(r rendezvous.Record, current, format string, args ...any) *rendezvous.Error {
	return conflict("effect", current, format, args...).With("effect", r.Effect).With("attempt", r.Attempt)
}

// checkPlaces judges where the records of one run's batch stand among each other: a terminal and a RunPaused are last (RN-11, RN-57), RunContinued is
// directly before the RunStarted it names (G2, HI-11), and nothing else is of another run (RN-4).
func checkPlaces(run string, records []rendezvous.Record) error {
	for i, r := range records {
		last := i == len(records)-1
		successor := i > 0 && records[i-1].Kind == rendezvous.RunContinued && r.Kind == rendezvous.RunStarted
		switch {
		case r.RunID != run && !successor:
			return misplaced(i, "is of run %q, the batch of run %q; a batch is of one run", r.RunID, run)
		case (r.Kind == rendezvous.RunPaused || successor) && !last:
			return misplaced(i, "(%s) stands last in its batch", r.Kind)
		case r.Kind == rendezvous.RunContinued:
			if err := checkLink(i, r, records[i+1:]); err != nil {
				return err
			}
		case r.Kind.Terminal() && !last:
			return misplaced(i, "(%s) ends the run and stands last in its batch", r.Kind)
		case r.Kind == rendezvous.RunStarted && i == 0:
			var d rendezvous.RunStartedData
			if rendezvous.DecodeData(r, &d) != nil || d.PreviousRun != "" { // G1
				return misplaced(i, "is the first of a workflow and has no previous_run")
			}
		}
	}
	return nil
}

// checkLink judges that a RunContinued and the RunStarted behind it name each other.
func checkLink(i int, r rendezvous.Record, rest []rendezvous.Record) error {
	var d rendezvous.RunContinuedData
	if len(rest) == 0 || rest[0].Kind != rendezvous.RunStarted || rendezvous.DecodeData(r, &d) != nil {
		return misplaced(i, "(%s) stands directly before the %s of its next run", r.Kind, rendezvous.RunStarted)
	}
	var next rendezvous.RunStartedData
	if rendezvous.DecodeData(rest[0], &next) != nil || rest[0].RunID != d.NextRun || next.PreviousRun != r.RunID || d.NextRun == r.RunID {
		return misplaced(i, "names %q as its next run, but the next record starts %q after %q", d.NextRun, rest[0].RunID, next.PreviousRun)
	}
	return nil
}

func misplaced(i int, format string, args ...any) error {
	return rendezvous.InvalidField("records", "record %d "+format, append([]any{i}, args...)...).With("record", i)
}

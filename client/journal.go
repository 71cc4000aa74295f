package client

import (
	"fmt"

	"github.com/rendezvous-events/rendezvous"
)

// journal is what a driver knows of its run: the records in order, without gaps, and how each effect stands by them.
type journal struct {
	records []rendezvous.Record
	seen    int64 // every record up to here is known; the head, as far as the driver knows
	effects map[string]*effect
	timers  map[string]*arming
	notes   map[string]int // how many notes of a name there are
	unknown *rendezvous.Record

	reopened int64 // seq of the run's last run.reopened, 0 for none
}

// arming is the latest arming of a timer.
type arming struct {
	armed rendezvous.Record
	over  *rendezvous.Record // fired or cancelled; nil: live
}

// effect is the latest attempt of an effect key.
type effect struct {
	opened rendezvous.Record
	closed *rendezvous.Record // nil: open
	anew   bool               // a reopening lets its next attempt begin: a wait that was left open, an effect that had failed for good (G8)
}

// newJournal begins behind the record before, which is the last of another run, or nothing.
func newJournal(before int64) journal {
	return journal{seen: before, effects: map[string]*effect{}, timers: map[string]*arming{}, notes: map[string]int{}}
}

// add takes records in that follow what is known; known ones are passed over. It reports whether none was missing in between.
func (j *journal) add(records ...rendezvous.Record) bool {
	for _, r := range records {
		switch {
		case r.Seq <= j.seen:
			continue
		case r.Seq > j.seen+1:
			return false
		}
		j.seen = r.Seq
		j.records = append(j.records, r)
		j.index(r)
	}
	return true
}

func (j *journal) index(r rendezvous.Record) {
	if r.Unknown && j.unknown == nil {
		j.unknown = &r
	}
	switch {
	case r.Kind.Phase() == rendezvous.PhaseOpen:
		j.effects[r.Effect] = &effect{opened: r}
	case r.Kind.Phase() == rendezvous.PhaseClose:
		if e := j.effects[r.Effect]; e != nil {
			e.closed = &r
		}
	case r.Kind == rendezvous.Note:
		j.notes[nameOf(r)]++
	case r.Kind == rendezvous.TimerStarted:
		j.timers[timerOf(r)] = &arming{armed: r}
	case r.Kind == rendezvous.TimerFired, r.Kind == rendezvous.TimerCancelled:
		if t := j.timers[timerOf(r)]; t != nil {
			t.over = &r
		}
	case r.Kind == rendezvous.RunReopened:
		j.reopen(r)
	}
}

// reopen notes what the reopened run begins anew. Its timers come back by records of their own.
func (j *journal) reopen(r rendezvous.Record) {
	j.reopened = r.Seq
	for _, e := range j.effects {
		e.anew = e.anew || e.isWait() && e.closed == nil
	}
	var d rendezvous.RunReopenedData
	_ = rendezvous.DecodeData(r, &d) // a record that was accepted decodes
	for _, name := range d.Superseded {
		if e := j.effects[name]; e != nil {
			e.anew = true
		}
	}
}

// byCancel reports whether a driver ended a wait or a timer because of a cancel of the run.
func (j *journal) byCancel(closing rendezvous.Record) bool {
	var d rendezvous.ReasonData
	_ = rendezvous.DecodeData(closing, &d)
	return d.Reason == cancelReason
}

// wait is the effect key under which a handler's wait stands. One that was withdrawn because of a cancel stays closed (G8); when the run was reopened since,
// the wait has another key, the same on every replay.
func (j *journal) wait(name string) string {
	key := name
	for {
		e := j.effects[key]
		if e == nil || e.closed == nil || e.closed.Kind != rendezvous.WaitWithdrawn || e.closed.Seq > j.reopened || !j.byCancel(*e.closed) {
			return key
		}
		key = fmt.Sprintf("%s@%d", name, e.closed.Seq)
	}
}

func timerOf(r rendezvous.Record) string {
	var d rendezvous.TimerStartedData // the others name it alike
	_ = rendezvous.DecodeData(r, &d)
	return d.TimerID
}

func nameOf(r rendezvous.Record) string {
	var d rendezvous.NameData
	_ = rendezvous.DecodeData(r, &d) // a record that was accepted has a name
	return d.Name
}

// attempt is the number of the latest attempt.
func (e *effect) attempt() int { return max(e.opened.Attempt, 1) }

func (e *effect) isWait() bool { return e.opened.Kind.IsWait() }

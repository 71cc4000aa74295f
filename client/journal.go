package client

import (
	"github.com/rendezvous-events/rendezvous"
)

// journal is what a driver knows of its run: the records in order, without gaps, and how each effect stands by them.
type journal struct {
	records []rendezvous.Record
	seen    int64 // every record up to here is known; the head, as far as the driver knows
	effects map[string]*effect
	notes   map[string]int // how many notes of a name there are
	unknown *rendezvous.Record
}

// effect is the latest attempt of an effect key.
type effect struct {
	opened rendezvous.Record
	closed *rendezvous.Record // nil: open
}

// newJournal begins behind the record before, which is the last of another run, or nothing.
func newJournal(before int64) journal {
	return journal{seen: before, effects: map[string]*effect{}, notes: map[string]int{}}
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
	}
}

func nameOf(r rendezvous.Record) string {
	var d rendezvous.NameData
	_ = rendezvous.DecodeData(r, &d) // a record that was accepted has a name
	return d.Name
}

// attempt is the number of the latest attempt.
func (e *effect) attempt() int { return max(e.opened.Attempt, 1) }

func (e *effect) isWait() bool { return e.opened.Kind.IsWait() }

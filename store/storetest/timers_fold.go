package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersFold reads from a workflow's history alone which armings are live, and judges on the way whether what is recorded of timers and deadlines may stand
// there (timers.md): the law beside the store's rows.
type timersFold struct {
	t     testing.TB
	run   string
	start rendezvous.RunStartedData
	over  bool // a terminal is the last lifecycle record

	live    map[string]store.Arming // by timer id, of all classes
	waits   map[string]string       // timer ids of open waits with a deadline, by effect
	due     []rendezvous.Record     // the records that armed authors' timers which the next RunReopened arms again, in their order
	armed   map[string]rendezvous.Record
	pending int // how many of them the reopening's batch still owes
}

// foldTimers folds a workflow's history.
func foldTimers(t testing.TB, records []rendezvous.Record) *timersFold {
	t.Helper()
	f := &timersFold{t: t}
	for _, r := range records {
		f.take(r)
	}
	if f.pending > 0 {
		t.Fatalf("%d timers did not return with their run's reopening", f.pending)
	}
	return f
}

func (f *timersFold) fail(r rendezvous.Record, format string, args ...any) {
	f.t.Helper()
	f.t.Fatalf("record %d (%s %s): %s", r.Seq, r.Kind, r.Data, fmt.Sprintf(format, args...))
}

func (f *timersFold) take(r rendezvous.Record) {
	f.t.Helper()
	if f.over && r.Kind != rendezvous.RunReopened && r.Kind != rendezvous.RunStarted {
		f.fail(r, "follows a terminal")
	}
	if f.pending > 0 && r.Kind != rendezvous.TimerStarted {
		f.fail(r, "comes before all timers have returned")
	}
	switch r.Kind {
	case rendezvous.RunStarted:
		f.start = rendezvous.RunStartedData{}
		f.decode(r, &f.start)
		f.run, f.over = r.RunID, false
		f.live, f.waits, f.armed = map[string]store.Arming{}, map[string]string{}, map[string]rendezvous.Record{}
		f.deadline(r)
	case rendezvous.RunReopened:
		f.over = false
		f.deadline(r)
		for _, started := range f.armed {
			f.due = append(f.due, started)
		}
		slices.SortFunc(f.due, func(a, b rendezvous.Record) int { return int(a.Seq - b.Seq) })
		f.pending, f.armed = len(f.due), map[string]rendezvous.Record{}
	case rendezvous.TimerStarted:
		f.arm(r)
	case rendezvous.TimerFired, rendezvous.TimerCancelled:
		var d rendezvous.TimerFiredData
		f.decode(r, &d)
		a, is := f.live[d.TimerID]
		if !is || a.ArmedSeq != d.ArmedSeq {
			f.fail(r, "its arming is not live: %+v", a)
		}
		if r.Kind == rendezvous.TimerFired {
			f.onTime(r, a.FireAt, d.FireAt)
		}
		delete(f.live, d.TimerID)
		delete(f.armed, d.TimerID)
	case rendezvous.WaitRegistered:
		var d rendezvous.WaitRegisteredData
		if f.decode(r, &d); d.Deadline != "" {
			id := rendezvous.WaitTimerID(r.RunID, r.Effect)
			f.live[id] = store.Arming{FireAt: f.instant(r, d.Deadline), ArmedSeq: r.Seq}
			f.waits[r.Effect] = id
		}
	case rendezvous.WaitAnswered, rendezvous.WaitWithdrawn, rendezvous.WaitTimedOut:
		id := f.waits[r.Effect]
		if r.Kind == rendezvous.WaitTimedOut {
			var d rendezvous.DeadlineData
			f.decode(r, &d)
			f.onTime(r, f.live[id].FireAt, d.Deadline)
		}
		delete(f.live, id)
		delete(f.waits, r.Effect)
	case rendezvous.RunTimedOut:
		var d rendezvous.DeadlineData
		f.decode(r, &d)
		f.onTime(r, f.live[rendezvous.RunTimerID(f.run)].FireAt, d.Deadline)
		f.end()
	default:
		if r.Kind.Terminal() {
			f.end()
		}
	}
}

func (f *timersFold) end() {
	f.over, f.live, f.waits = true, map[string]store.Arming{}, map[string]string{}
}

func (f *timersFold) arm(r rendezvous.Record) {
	f.t.Helper()
	var d rendezvous.TimerStartedData
	if f.decode(r, &d); d.After != nil {
		f.fail(r, "records a duration")
	}
	if f.pending > 0 {
		if string(f.due[0].Data) != string(r.Data) {
			f.fail(r, "returns in the place of %s", f.due[0].Data)
		}
		f.due = f.due[1:]
		f.pending--
	}
	f.live[d.TimerID] = store.Arming{FireAt: f.instant(r, d.FireAt), ArmedSeq: r.Seq}
	f.armed[d.TimerID] = r
}

// deadline arms the run's deadline by a record.
func (f *timersFold) deadline(r rendezvous.Record) {
	f.t.Helper()
	if f.start.Deadline != "" {
		f.live[rendezvous.RunTimerID(f.run)] = store.Arming{FireAt: f.instant(r, f.start.Deadline), ArmedSeq: r.Seq}
	}
}

// onTime fails the test unless what a record tells is the due instant and not ahead of the record.
func (f *timersFold) onTime(r rendezvous.Record, due time.Time, told string) {
	f.t.Helper()
	if due.IsZero() {
		f.fail(r, "nothing was armed")
	}
	if at := f.instant(r, told); !at.Equal(due) {
		f.fail(r, "was due at %s", due)
	}
	if r.RecordedAt.Before(due) {
		f.fail(r, "is early: recorded at %s", r.RecordedAt)
	}
}

func (f *timersFold) decode(r rendezvous.Record, v any) {
	f.t.Helper()
	done(f.t, fmt.Sprintf("decode record %d", r.Seq), rendezvous.DecodeData(r, v))
}

func (f *timersFold) instant(r rendezvous.Record, text string) time.Time {
	f.t.Helper()
	return must(rendezvous.ParseInstant("instant", text))(f.t, fmt.Sprintf("read the instant of record %d", r.Seq))
}

// sound fails the test unless the workflow's rows of timers and their count are what its history says.
func (r *Flow) sound() *timersFold {
	r.F.T.Helper()
	fold := foldTimers(r.F.T, r.History())
	rows := map[string]store.Arming{}
	for _, x := range r.Timers() {
		rows[x.TimerID] = x.Arming
		if x.RunID != fold.run || x.DueAt.Before(x.FireAt) {
			r.F.T.Fatalf("row %+v of a workflow whose run is %s", x, fold.run)
		}
	}
	eq(r.F.T, "rows of timers of "+r.WorkflowID+" by its history", rows, fold.live)
	eq(r.F.T, "count of live timers of "+r.WorkflowID, r.Describe().LiveTimers, len(fold.live))
	return fold
}

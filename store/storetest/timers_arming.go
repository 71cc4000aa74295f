package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersArming is timers.md section 2: how armings come and go inside appends.
var timersArming = []Case{
	{Name: "TM-2 re-arming a timer replaces its instant", Run: rearmed},
	{Name: "TM-3 an instant is kept to the microsecond, rounded up", Run: armedExactly},
	{Name: "TM-3 rows survive close and reopen", Run: armedReopened, Durable: true},
	{Name: "TM-11 ids that the plane keeps are refused at every door, others are kept verbatim", Run: timerIDs},
	{Name: "TM-12 the 1,001st live timer of a run is too much, and its batch writes nothing", Run: timerLimit},
	{Name: "TM-13 a record and its row appear together or not at all", Run: armingBroken},
	{Name: "TM-14 a duration counts from the record, and exactly one of the two is given", Run: armedAfter},
	{Name: "TM-15 a loop that sleeps gets instants apart by its sleep", Run: sleepingLoop},
	{Name: "TM-16 a cancel deletes the row, and afterwards says what holds", Run: cancelled},
	{Name: "TM-16 the verbs answer their repeat as the first time", Run: timerVerbsAgain},
	{Name: "TM-17 a timer armed again after its fire or cancel fires again, a replaced arming never", Run: armedAgain},
	{Name: "TM-18 a fire in an append is its driver's, from the instant on", Run: firedByDriver},
	{Name: "HI-16 while paused nothing is armed, and what is armed may be cancelled and fires", Run: pausedArming},
	{Name: "RN-52 arming is refused as soon as a pause is asked for", Run: pausingArming},
	{Name: "timers.md 2: the records of a batch apply in their order", Run: armedInOrder},
	{Name: "timers.md 2: an early instant is noticed, a far one is left to the probe", Run: timerNotices},
	{Name: "timers.md 2: arming and cancelling need the epoch of a leased run, and no head", Run: armingLeased},
}

func rearmed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		soon, late := h.In(t, time.Second), h.In(t, time.Hour)
		first := r.Arm("sleep", soon)
		second := r.Arm("sleep", late)
		eq(t, "first arming", first, store.Arming{FireAt: soon, ArmedSeq: 2})
		eq(t, "second arming", second, store.Arming{FireAt: late, ArmedSeq: 3})
		r.WantTimers("sleep")
		r.WantArmed("sleep", second)
		eq(t, "rows at the old instant", len(h.expired(t, h.Store, soon, store.Scope{Tenant: f.Name()}, 0)), 0)
		eq(t, "rows at the new one", len(h.expired(t, h.Store, late, store.Scope{Tenant: f.Name()}, 0)), 1)
		third := r.Arm("sleep", soon) // and back to an earlier one
		r.WantArmed("sleep", third)
	}
	h.Advance(time.Second)
	p := h.TimerPod(t)
	eq(t, "fired at the new instant", len(p.Fire(t)), 2)
	h.Advance(2 * time.Hour)
	eq(t, "fired at the old one", len(p.Fire(t)), 0)
	h.noRows(t)
}

func armedExactly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	day := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for what, at := range map[string][2]time.Time{
		"microseconds":           {day.Add(789_123 * time.Microsecond), day.Add(789_123 * time.Microsecond)},
		"a nanosecond more":      {day.Add(1), day.Add(time.Microsecond)},
		"a nanosecond less":      {day.Add(time.Microsecond - 1), day.Add(time.Microsecond)},
		"another zone":           {day.In(time.FixedZone("east", 5*3600+1800)), day},
		"the past":               {day.AddDate(-40, 0, 0), day.AddDate(-40, 0, 0)},
		"the first microsecond":  {time.Time{}.Add(time.Microsecond), time.Time{}.Add(time.Microsecond)},
		"the last microsecond":   {endOfTime, endOfTime},
		"before the epoch":       {time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC)},
		"before it, nanoseconds": {time.Date(1968, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(1968, 1, 1, 0, 0, 0, 1000, time.UTC)},
	} {
		id := ID("timer")
		a := r.Arm(id, at[0])
		eq(t, what+": answered", a.FireAt, at[1])
		r.WantArmed(id, a)
		var d rendezvous.TimerStartedData
		rec := r.History()[a.ArmedSeq-1]
		done(t, "decode", rendezvous.DecodeData(rec, &d))
		eq(t, what+": recorded", d, rendezvous.TimerStartedData{TimerID: id, FireAt: rendezvous.FormatInstant(at[1])})
	}
	before := len(r.Timers())
	for what, at := range map[string]time.Time{
		"year 10000": endOfTime.Add(time.Microsecond), "rounded up into year 10000": endOfTime.Add(1), "before year 1": time.Time{}.Add(-time.Microsecond),
		"the zero time": {},
	} {
		r.refuses(what, rendezvous.CodeInvalid, func() error {
			_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: at, BatchID: ID("batch")}, now)
			return err
		})
	}
	for what, text := range map[string]string{
		"no time": "tomorrow", "no zone": "2031-01-01T00:00:00", "a day that is none": "2031-02-30T00:00:00Z", "a leap second": "2016-12-31T23:59:60Z", "a number": "7",
	} {
		rec := r.record(rendezvous.TimerStarted, "", rendezvous.TimerStartedData{TimerID: "t", FireAt: text})
		r.refuses(what, rendezvous.CodeInvalid, func() error { return r.tryFree(rec) })
	}
	eq(t, "timers after refusals", len(r.Timers()), before)
	fine := r.record(rendezvous.TimerStarted, "", nil)
	fine.Data = []byte(`{"timer_id":"fine","fire_at":"2031-01-01T00:00:00.0000001+01:00","mood":"good"}`)
	seq := r.AppendFree(fine).Head
	r.WantArmed("fine", store.Arming{FireAt: time.Date(2030, 12, 31, 23, 0, 0, 1000, time.UTC), ArmedSeq: seq})
	eq(t, "data with a member of another build", string(r.History()[seq-1].Data), `{"fire_at":"2030-12-31T23:00:00.000001Z","mood":"good","timer_id":"fine"}`)
}

// tryFree appends records at the present head without a lease.
func (r *Flow) tryFree(records ...rendezvous.Record) error {
	_, err := r.F.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Records: records}, now)
	return err
}

func armedReopened(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, time.Hour)})
	trace := rendezvous.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "a=b"}
	must(f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "author/a b", FireAt: h.In(t, time.Minute+time.Microsecond), BatchID: ID("batch"), Trace: trace}, now))(t, "arm")
	r.WaitsUntil(h.In(t, 2*time.Minute), "w", "paid", K("order", "1"))
	parked := f.Start()
	parked.ArmIn("p", time.Second)
	d := parked.DriveFor(time.Minute)
	h.Advance(time.Second)
	p := h.TimerPod(t)
	one(t, "page", p.Page(t, 0).Fires, store.FireParked)
	before, counts := h.allTimers(t), must(f.CountTimers(ctx))(t, "count")
	eq(t, "trace of the author's", before[slices.IndexFunc(before, func(x store.Timer) bool { return x.Class == rendezvous.TimerAuthor && x.RunID == r.ID })].Trace, trace)
	h.Reopen(t)
	f = h.Fix(t)
	eq(t, "rows", h.allTimers(t), before)
	eq(t, "counts", must(f.CountTimers(ctx))(t, "count"), counts)
	eq(t, "timers of four", len(before), 4)
	h.Advance(2 * time.Hour)
	p = h.TimerPod(t)
	eq(t, "fired", len(p.Fire(t)), 4)
	eq(t, "outcome of the run", (&Flow{F: f, WorkflowID: r.WorkflowID, ID: r.ID}).Describe().Status, rendezvous.StatusTimedOut)
	_ = d
	h.noRows(t)
}

func timerIDs(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	at := h.In(t, time.Hour)
	for _, id := range []string{
		"a", "sleep/1", "/", "wait/x", "run/y", "a$b", " $", "größe/1", "a b", strings.Repeat("x", rendezvous.MaxID), `"'; DROP TABLE timers --`, "%_*>",
	} {
		a := r.Arm(id, at)
		row := r.WantArmed(id, a)
		eq(t, "class", row.Class, rendezvous.TimerAuthor)
		var d rendezvous.TimerStartedData
		done(t, "decode", rendezvous.DecodeData(r.History()[a.ArmedSeq-1], &d))
		eq(t, "id in the history", d.TimerID, id)
		eq(t, "cancel", r.CancelArmed(id).Outcome, store.TimerCancelled)
	}
	r.Arm("A", at)
	r.Arm("a", at)
	r.WantTimers("A", "a") // ids are bytes
	deadline := r.WaitsUntil(at.Add(time.Second), "w", "paid", K("order", "1"))
	minted := rendezvous.WaitTimerID(r.ID, deadline.Effect)
	for what, id := range map[string]string{
		"empty": "", "513 bytes": strings.Repeat("x", rendezvous.MaxID+1), "reserved": "$", "a wait's": minted, "a run's": rendezvous.RunTimerID(r.ID),
		"a tick's": "$tick/x", "control character": "a\x00b", "not UTF-8": "a\xff",
	} {
		for verb, call := range map[string]func() error{
			"ArmTimer": func() error {
				_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: id, FireAt: at, BatchID: ID("batch")}, now)
				return err
			},
			"CancelTimer":     func() error { _, err := f.CancelTimer(ctx, r.ID, 0, id, ID("batch"), "", now); return err },
			"timer.started":   func() error { return r.tryFree(r.TimedAt(id, at)) },
			"timer.cancelled": func() error { return r.tryFree(r.CancelledAs(id, 2)) },
			"timer.fired":     func() error { return r.tryFree(r.FiredAs(id, 2)) },
		} {
			if what == "not UTF-8" && strings.HasPrefix(verb, "timer.") {
				continue // its JSON is not what it was made of
			}
			want := rendezvous.CodeInvalid
			if what == "513 bytes" {
				want = rendezvous.CodeTooLarge
			}
			r.refuses(what+" by "+verb, want, call)
		}
	}
	r.WantTimers("A", "a", minted)
}

// arms are n timer.started records.
func (r *Flow) arms(prefix string, n int, at time.Time) []rendezvous.Record {
	all := make([]rendezvous.Record, n)
	for i := range all {
		all[i] = r.TimedAt(fmt.Sprintf("%s-%04d", prefix, i), at)
	}
	return all
}

func timerLimit(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, 2*time.Hour)})
	at := h.In(t, time.Hour)
	r.WaitsUntil(at, "w", "paid", K("order", "1")) // deadlines are no author's timers
	r.AppendFree(r.arms("a", 500, at)...)
	r.AppendFree(r.arms("b", 499, at)...)
	r.refuses("a batch that passes the limit", rendezvous.CodeTooLarge, func() error { return r.tryFree(r.Noted("n"), r.TimedAt("c-1", at), r.TimedAt("c-2", at)) },
		"limit", rendezvous.MaxTimersPerRun, "value", rendezvous.MaxTimersPerRun+1)
	eq(t, "live timers", r.Describe().LiveTimers, 999+2)
	r.Arm("last", at)
	arm := func() error {
		_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "more", FireAt: at, BatchID: ID("batch")}, now)
		return err
	}
	r.refuses("the 1,001st", rendezvous.CodeTooLarge, arm, "limit", rendezvous.MaxTimersPerRun)
	r.refuses("the 1,001st in a batch", rendezvous.CodeTooLarge, func() error { return r.tryFree(r.Noted("n"), r.TimedAt("more", at)) })
	again := r.Arm("a-0007", at.Add(time.Second))
	r.WantArmed("a-0007", again)
	r.refuses("the 1,001st behind a re-arming", rendezvous.CodeTooLarge, func() error { return r.tryFree(r.TimedAt("a-0008", at), r.TimedAt("more", at)) })
	// One that goes in the same batch makes room for one that comes behind it, and not before it.
	last := r.Timer("last")
	r.refuses("the 1,001st before a cancel", rendezvous.CodeTooLarge, func() error { return r.tryFree(r.TimedAt("more", at), r.CancelledAs("last", last.ArmedSeq)) })
	r.AppendFree(r.CancelledAs("last", last.ArmedSeq), r.TimedAt("last", at), r.CancelledAs("a-0000", r.Timer("a-0000").ArmedSeq), r.TimedAt("a-0000", at))
	eq(t, "live timers", r.Describe().LiveTimers, 1000+2)
	r.refuses("the 1,001st again", rendezvous.CodeTooLarge, arm)
	other := f.Start()
	other.Arm("a-0001", at) // another run's own
	h.Advance(time.Hour)
	h.TimerPod(t).Fire(t)
	eq(t, "live timers when the rest fired", r.Describe().LiveTimers, 2) // the re-armed one and the run's
	r.Arm("room", at)
}

func armingBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for verb, arm := range map[string]func(r *Flow, batch string) error{
		"append": func(r *Flow, batch string) error {
			a := store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: batch, Records: recs(r.TimedAt("t", endOfTime), r.Noted("n"))}
			_, err := f.Append(ctx, a, now)
			return err
		},
		"arm_timer": func(r *Flow, batch string) error {
			_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: endOfTime, BatchID: batch}, now)
			return err
		},
	} {
		h.Break(t, verb, func() (func() error, func(error, bool)) {
			r, batch := f.Start(), ID("batch")
			return func() error { return arm(r, batch) }, func(err error, committed bool) {
				if !committed {
					r.WantKinds()
					r.WantTimers()
				}
				done(t, "the same again", arm(r, batch))
				r.WantTimers("t")
				eq(t, "armed by", r.Timer("t").ArmedSeq, int64(2))
				eq(t, "records that arm", countKind(r, rendezvous.TimerStarted), 1)
			}
		})
	}
	h.Break(t, "cancel_timer", func() (func() error, func(error, bool)) {
		r, batch := f.Start(), ID("batch")
		a := r.Arm("t", endOfTime)
		cancel := func() error { _, err := f.CancelTimer(ctx, r.ID, 0, "t", batch, "", now); return err }
		return cancel, func(err error, committed bool) {
			if !committed {
				r.WantArmed("t", a)
				eq(t, "records that cancel", countKind(r, rendezvous.TimerCancelled), 0)
			}
			done(t, "the same again", cancel())
			r.WantTimers()
			eq(t, "records that cancel", countKind(r, rendezvous.TimerCancelled), 1)
		}
	})
}

// countKind is how many records of that kind the run's history has.
func countKind(r *Flow, kind rendezvous.Kind) int {
	n := 0
	for _, k := range r.Kinds() {
		if k == kind {
			n++
		}
	}
	return n
}

func armedAfter(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for _, after := range []time.Duration{0, time.Microsecond, time.Hour, rendezvous.MaxTimerAfter} {
		h.Advance(3 * time.Second)
		a := r.ArmIn(ID("timer"), after)
		rec := r.History()[a.ArmedSeq-1]
		eq(t, "instant", a.FireAt, rec.RecordedAt.Add(after))
		eq(t, "recorded at", rec.RecordedAt, h.Now(t))
		var d rendezvous.TimerStartedData
		done(t, "decode", rendezvous.DecodeData(rec, &d))
		eq(t, "instant in the record, and no duration", d, rendezvous.TimerStartedData{TimerID: d.TimerID, FireAt: rendezvous.FormatInstant(a.FireAt)})
	}
	eq(t, "a duration with nanoseconds rounds up", r.ArmIn("nano", time.Microsecond+1).FireAt, h.In(t, 2*time.Microsecond))
	seq := r.AppendFree(r.Noted("n"), r.TimedIn("x", time.Minute), r.TimedIn("y", time.Minute)).Head
	r.WantArmed("x", store.Arming{FireAt: h.In(t, time.Minute), ArmedSeq: seq - 1})
	r.WantArmed("y", store.Arming{FireAt: h.In(t, time.Minute), ArmedSeq: seq})
	h.Advance(-time.Hour) // a clock set back: records never go back, and what counts from them neither
	back := r.ArmIn("back", time.Minute)
	eq(t, "counted from recorded_at", back.FireAt, r.History()[back.ArmedSeq-1].RecordedAt.Add(time.Minute))
	h.Advance(time.Hour)

	before := r.Timers()
	hour, minus := time.Hour, -time.Nanosecond
	most, least := time.Duration(1<<63-1), time.Duration(-1<<63)
	over := rendezvous.MaxTimerAfter + time.Microsecond
	for what, a := range map[string]store.Arm{
		"both": {FireAt: h.In(t, time.Hour), After: &hour}, "neither": {}, "a negative duration": {After: ptr(-time.Microsecond)}, "over 100 years": {After: &over},
		"the longest duration there is": {After: &most}, "the most negative one": {After: &least},
	} {
		a.RunID, a.TimerID, a.BatchID = r.ID, "t", ID("batch")
		r.refuses(what, rendezvous.CodeInvalid, func() error { _, err := f.ArmTimer(ctx, a, now); return err })
	}
	_ = minus
	for what, data := range map[string]string{
		"both": `{"timer_id":"t","fire_at":"2031-01-01T00:00:00Z","after":1}`, "neither": `{"timer_id":"t"}`, "a negative duration": `{"timer_id":"t","after":-1}`,
		"over 100 years":        fmt.Sprintf(`{"timer_id":"t","after":%d}`, over.Microseconds()),
		"64 bits":               `{"timer_id":"t","after":9223372036854775807}`,
		"more than 64 bits":     `{"timer_id":"t","after":9223372036854775808}`,
		"1e300":                 `{"timer_id":"t","after":1e300}`,
		"a fraction":            `{"timer_id":"t","after":1.5}`,
		"text":                  `{"timer_id":"t","after":"1h"}`,
		"an instant in numbers": `{"timer_id":"t","fire_at":1}`,
	} {
		rec := r.record(rendezvous.TimerStarted, "", nil)
		rec.Data = []byte(data)
		r.refuses("a record with "+what, rendezvous.CodeInvalid, func() error { return r.tryFree(r.Noted("n"), rec) })
	}
	eq(t, "timers after refusals", r.Timers(), before)
}

// ptr is a value that may be absent.
func ptr[T any](v T) *T { return &v }

func sleepingLoop(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := h.TimerPod(t)
	var armings []store.Arming
	for range 20 {
		d := r.Drive()
		armings = append(armings, d.ArmIn("sleep", 10*time.Second))
		eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended)
		h.Advance(10*time.Second - time.Microsecond)
		eq(t, "fired early", len(p.Page(t, 0).Fires), 0)
		h.Advance(time.Microsecond)
		one(t, "page", p.Page(t, 0).Fires, store.FireFired)
	}
	for i := 1; i < len(armings); i++ {
		eq(t, "pause between two instants", armings[i].FireAt.Sub(armings[i-1].FireAt), 10*time.Second)
	}
	r.WantFired("sleep", armings...)
	r.WantTimers()
}

func cancelled(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	cancel := func(id string, armed int64) func() error {
		return func() error { return r.tryFree(r.Noted("n"), r.CancelledAs(id, armed)) }
	}
	a := r.Arm("t", h.In(t, time.Hour))
	seq := r.AppendFree(r.CancelledAs("t", a.ArmedSeq)).Head
	r.WantTimers()
	r.refuses("cancelled twice", rendezvous.CodeConflict, cancel("t", a.ArmedSeq), "what", "timer", "current", "cancelled", "seq", seq)
	r.refuses("never armed", rendezvous.CodeConflict, cancel("u", a.ArmedSeq), "what", "timer", "current", "never armed")
	b := r.Arm("t", h.In(t, time.Hour))
	r.refuses("re-armed", rendezvous.CodeConflict, cancel("t", a.ArmedSeq), "what", "timer", "current", "rearmed", "armed_seq", b.ArmedSeq)
	c := r.Arm("t", h.In(t, time.Hour)) // for the identical instant
	r.refuses("re-armed alike", rendezvous.CodeConflict, cancel("t", b.ArmedSeq), "current", "rearmed", "armed_seq", c.ArmedSeq)
	r.refuses("a later one", rendezvous.CodeConflict, cancel("t", c.ArmedSeq+1), "current", "rearmed", "armed_seq", c.ArmedSeq)
	r.refuses("armed by 0", rendezvous.CodeInvalid, cancel("t", 0))
	r.refuses("armed by -1", rendezvous.CodeInvalid, cancel("t", -1))
	r.WantArmed("t", c)
	h.Advance(time.Hour)
	fire := one(t, "page", p.Page(t, 0).Fires, store.FireFired)
	r.refuses("fired", rendezvous.CodeConflict, cancel("t", c.ArmedSeq), "what", "timer", "current", "fired", "seq", fire.Seq)

	eq(t, "cancel of a fired one", r.CancelArmed("t"), store.CancelledTimer{Outcome: store.TimerFired, Seq: fire.Seq})
	eq(t, "cancel of one never armed", r.CancelArmed("u"), store.CancelledTimer{Outcome: store.TimerNotArmed})
	e := r.Arm("t", h.In(t, time.Hour))
	first := must(f.CancelTimer(ctx, r.ID, 0, "t", ID("batch"), "no need", now))(t, "cancel")
	eq(t, "cancel of a live one", first, store.CancelledTimer{Outcome: store.TimerCancelled, Seq: e.ArmedSeq + 1})
	eq(t, "record", string(r.History()[first.Seq-1].Data), string(rendezvous.EncodeData(rendezvous.TimerCancelledData{TimerID: "t", ArmedSeq: e.ArmedSeq, Reason: "no need"})))
	again := r.CancelArmed("t")
	eq(t, "cancel of a cancelled one", fmt.Sprint(again.Outcome, again.Seq), fmt.Sprint(store.TimerCancelled, first.Seq))
	eq(t, "records that cancel", countKind(r, rendezvous.TimerCancelled), 2)
	next := r.Continue()
	eq(t, "cancel of one that the run before armed", next.CancelArmed("t"), store.CancelledTimer{Outcome: store.TimerNotArmed})
	_, err := f.CancelTimer(ctx, ID("run"), 0, "t", ID("batch"), "", now)
	code(t, "an unknown run", err, rendezvous.CodeNotFound)
	_, err = f.CancelTimer(ctx, r.ID, 0, "t", ID("batch"), "", now)
	code(t, "a run that ended", err, rendezvous.CodeSealed)
	_, err = f.CancelTimer(ctx, next.ID, 0, "t", "", "", now)
	code(t, "no batch id", err, rendezvous.CodeInvalid)
	_, err = f.CancelTimer(ctx, next.ID, 0, "t", ID("batch"), strings.Repeat("x", rendezvous.MaxReason+1), now)
	code(t, "a reason too long", err, rendezvous.CodeTooLarge)
	h.noRows(t)
}

func timerVerbsAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	after := time.Minute
	arm := store.Arm{RunID: r.ID, TimerID: "t", After: &after, BatchID: "arm"}
	first := must(f.ArmTimer(ctx, arm, now))(t, "arm")
	h.Advance(10 * time.Second)
	again := func(what string) {
		t.Helper()
		got := must(f.ArmTimer(ctx, arm, now))(t, "arm again "+what)
		eq(t, "arming "+what, got.Arming, first.Arming)
		eq(t, "again "+what, got.Again, true)
	}
	again("at once")
	r.WantArmed("t", first.Arming)
	other := arm
	other.TimerID = "u"
	_, err := f.ArmTimer(ctx, other, now)
	code(t, "the batch id for another timer", err, rendezvous.CodeConflict)
	longer := 2 * time.Minute
	other = arm
	other.After = &longer
	_, err = f.ArmTimer(ctx, other, now)
	code(t, "the batch id for another duration", err, rendezvous.CodeConflict)
	_, err = f.CancelTimer(ctx, r.ID, 0, "t", "arm", "", now)
	code(t, "the batch id for a cancel", err, rendezvous.CodeConflict)

	cancel := must(f.CancelTimer(ctx, r.ID, 0, "t", "cancel", "", now))(t, "cancel")
	again("after the cancel")
	r.WantTimers()
	rearm := r.Arm("t", endOfTime)
	got := must(f.CancelTimer(ctx, r.ID, 0, "t", "cancel", "", now))(t, "cancel again")
	eq(t, "cancel again, after a re-arming", fmt.Sprint(got.Outcome, got.Seq, got.Again), fmt.Sprint(store.TimerCancelled, cancel.Seq, true))
	r.WantArmed("t", rearm)
	d := r.Drive()
	again("under a lease")
	d.Conclude(rendezvous.StatusCompleted)
	again("after the seal")
	got = must(f.CancelTimer(ctx, r.ID, 0, "t", "cancel", "", now))(t, "cancel again")
	eq(t, "cancel after the seal", fmt.Sprint(got.Outcome, got.Seq, got.Again), fmt.Sprint(store.TimerCancelled, cancel.Seq, true))
	h.noRows(t)
}

func armedAgain(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	var flows []*Flow
	for _, f := range h.Two(t) {
		r := f.Start()
		flows = append(flows, r)
		replaced := r.Arm("t", h.In(t, time.Second))
		first := r.Arm("t", h.In(t, time.Second))
		h.Advance(time.Second)
		p.Fire(t)
		r.WantFired("t", first)
		second := r.Arm("t", h.In(t, time.Second))
		r.CancelArmed("t")
		third := r.Arm("t", h.In(t, 2*time.Second))
		h.Advance(time.Second)
		eq(t, "the cancelled one", len(p.Fire(t)), 0)
		h.Advance(time.Second)
		p.Fire(t)
		r.WantFired("t", first, third)
		past := r.Arm("t", first.FireAt) // the very instant again
		p.Fire(t)
		r.WantFired("t", first, third, past)
		eq(t, "three of five armings fired", past.ArmedSeq > third.ArmedSeq && second.ArmedSeq > first.ArmedSeq && replaced.ArmedSeq == 2, true)
	}
	h.Advance(time.Hour)
	eq(t, "fired later", len(p.Fire(t)), 0)
	for _, r := range flows {
		r.WantTimers()
	}
}

func firedByDriver(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	a := r.Arm("t", h.In(t, time.Minute))
	d := r.DriveFor(time.Hour)
	try := func(records ...rendezvous.Record) func() error {
		return func() error { _, err := f.Append(ctx, d.Batch(records...), now); return err }
	}
	r.refuses("a minute early", rendezvous.CodeInvalid, try(r.Noted("n"), r.FiredAs("t", a.ArmedSeq)), "remaining_ms", int64(60_000))
	h.Advance(time.Minute - time.Microsecond)
	r.refuses("a microsecond early", rendezvous.CodeInvalid, try(r.FiredAs("t", a.ArmedSeq)), "remaining_ms", int64(1))
	r.WantArmed("t", a)
	h.Advance(time.Microsecond)
	r.refuses("another arming", rendezvous.CodeConflict, try(r.FiredAs("t", a.ArmedSeq+5)), "current", "rearmed", "armed_seq", a.ArmedSeq)
	r.refuses("never armed", rendezvous.CodeConflict, try(r.FiredAs("u", a.ArmedSeq)), "current", "never armed")
	lie := r.record(rendezvous.TimerFired, "", rendezvous.TimerFiredData{TimerID: "t", ArmedSeq: a.ArmedSeq, FireAt: rendezvous.FormatInstant(a.FireAt.Add(time.Second))})
	r.refuses("another instant", rendezvous.CodeConflict, try(lie))
	if err := r.tryFree(r.FiredAs("t", a.ArmedSeq)); rendezvous.CodeOf(err) != rendezvous.CodeLeaseHeld {
		t.Fatalf("without the epoch: %v", err)
	}
	d.Append(r.FiredAs("t", a.ArmedSeq))
	r.WantFired("t", a)
	r.WantTimers()
	r.refuses("fired twice", rendezvous.CodeConflict, try(r.FiredAs("t", a.ArmedSeq)), "current", "fired", "seq", d.Seen)
	eq(t, "left for the worker", len(p.Fire(t)), 0)
	b := d.ArmIn("t", 0) // due at once, and in the batch that arms it
	d.Append(r.FiredAs("t", b.ArmedSeq), r.TimedIn("v", 0), r.FiredAs("v", d.Seen+2))
	r.WantTimers()
	d.Append(r.TimedIn("t", 0))
	d.Append(r.CancelledAs("t", d.Seen))
	r.refuses("cancelled", rendezvous.CodeConflict, try(r.FiredAs("t", d.Seen-1)), "current", "cancelled", "seq", d.Seen)
	d.Release()
	c := r.ArmIn("t", 0)
	if err := r.tryFree(r.FiredAs("t", c.ArmedSeq)); err == nil {
		t.Fatal("a fire was appended by nobody's driver")
	}
	r.WantArmed("t", c)
	p.Fire(t)
	r.WantFired("t", a, b, c)
}

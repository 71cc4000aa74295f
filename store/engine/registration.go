package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// registration is one wait on its way in. Its caller has judged shape, run, seal and lease, and f is locked.
type registration struct {
	f     *flow
	wait  rendezvous.Wait // checked
	epoch int64           // good, or 0
	claim bool            // false: Subscribe, which takes no event
	// seq is the WaitRegistered record that the caller, an append, wrote in this unit after judging legal order; 0: register judges and writes it.
	seq int64

	// Set by register.
	out     store.Registered   // its Answer, if there is one, stands behind every record that was there before
	err     error              // this registration fails alone; nothing was written for it
	row     *backend.Wait      // the wait that stays
	look    bool               // it took nothing: it wants the second look
	closing rendezvous.Closing // how the wait ended, if it did

	first *registration      // the one of this batch that it repeats: it is told what that one is told
	stand standing           // in the history, before this unit
	node  *waitNode          // an open wait that claims
	event *backend.Event     // what answers it
	late  bool               // what answers it is over what the unit hands out: its wait is parked, or stays so
	due   time.Time          // its deadline as recorded; zero for none
	poll  bool               // the deadline was over when it was registered: what is there answers, or nothing does (TM-40)
	over  bool               // a poll that nothing answers: it is timed out in this unit
	took  *rendezvous.Record // an answer given earlier, payload whole
}

func (r *registration) key() backend.WaitKey {
	return backend.WaitKey{Tenant: r.f.Tenant, RunID: r.wait.RunID, Effect: r.wait.Effect}
}

// fresh reports whether the wait's record is still to be written.
func (r *registration) fresh() bool { return r.seq == 0 && r.stand.opened == nil }

// register judges what the history says of each registration, records those that are new, and gives each that claims its oldest event unless that is
// contested (O3). Reads and writes are set-based. Answers come in the order of regs; room is how many bytes of payload they may have.
func (u *unit) register(ctx context.Context, regs []*registration, room int) error {
	if len(regs) == 0 {
		return nil
	}
	if err := u.judgeRegistrations(ctx, regs); err != nil {
		return err
	}
	if err := u.findRows(ctx, regs); err != nil {
		return err
	}
	if err := u.takeEvents(ctx, regs); err != nil {
		return err
	}
	if err := u.readAnswers(ctx, regs, room); err != nil {
		return err
	}
	for _, r := range regs {
		if r.err == nil && r.first == nil {
			u.settleRegistration(r)
		}
	}
	return nil
}

// judgeRegistrations asks the index of effects whether each wait is new, known or closed, and refuses what may not be registered (EV-19, EV-26, G6..G8).
func (u *unit) judgeRegistrations(ctx context.Context, regs []*registration) error {
	var keys []backend.WaitKey
	for _, r := range regs {
		if r.seq == 0 {
			keys = append(keys, r.key())
		}
	}
	var effects map[backend.WaitKey][]rendezvous.Record
	if len(keys) > 0 {
		var err error
		if effects, err = u.tx.Effects(ctx, keys); err != nil {
			return err
		}
	}
	seen := make(map[backend.WaitKey]*registration, len(regs))
	for _, r := range regs {
		if first := seen[r.key()]; first != nil && first.seq == 0 {
			if r.err = r.sameAs(first.wait); r.err == nil {
				r.first = first
			}
			continue
		}
		if r.seq == 0 {
			r.err = r.judge(effects[r.key()])
		}
		if r.err == nil && r.fresh() {
			r.due, r.err = r.resolve(u.stamp(r.f))
		}
		if r.err == nil {
			seen[r.key()] = r
		}
	}
	return nil
}

// judge reads how the wait stands in the history.
func (r *registration) judge(records []rendezvous.Record) error {
	opening := rendezvous.Record{RunID: r.wait.RunID, Kind: rendezvous.WaitRegistered, Effect: r.wait.Effect, Attempt: r.wait.Attempt}
	if s := standingOf(records); s.opened != nil && max(s.opened.Attempt, 1) == r.wait.Attempt { // again
		var d rendezvous.WaitRegisteredData
		if err := rendezvous.DecodeData(*s.opened, &d); err != nil {
			return err
		}
		if s.closed == nil && s.opened.Seq < r.f.Reopened { // G8, G9: it does not return
			return duplicate(opening, s.opened.Seq, "attempt %d of %q was left open by a conclusion that was reopened; register attempt %d", opening.Attempt,
				opening.Effect, opening.Attempt+1)
		}
		r.stand = s
		if d.Deadline != "" {
			due, err := rendezvous.ParseInstant("deadline", d.Deadline)
			if err != nil {
				return corruptInstant(*s.opened, err)
			}
			r.due = due
		}
		return r.sameAs(rendezvous.Wait{Attempt: r.wait.Attempt, Type: d.Type, Keys: d.Keys, From: d.From, Deadline: r.due})
	}
	facts := orderFacts{
		run: r.f.RunID, status: r.f.Status, pausing: r.f.Pause != nil, head: r.f.Head, reopened: r.f.Reopened,
		effects: map[string][]rendezvous.Record{r.wait.Effect: records},
	}
	return checkOrder(facts, []rendezvous.Record{opening})
}

// resolve is the instant of the wait's deadline, zero for none: a duration counts from its record.
func (r *registration) resolve(recorded time.Time) (time.Time, error) {
	if r.wait.DeadlineAfter == nil {
		return r.wait.Deadline, nil
	}
	due := recorded.Add(time.Duration(rendezvous.Micros(*r.wait.DeadlineAfter)) * time.Microsecond)
	return due, rendezvous.CheckInstant("deadline_after", due)
}

// sameAs is conflict if the wait was registered with other values (EV-19).
func (r *registration) sameAs(o rendezvous.Wait) error {
	what := r.wait.SameAs(o)
	if what == "" && r.wait.Attempt != o.Attempt {
		what = "attempt"
	}
	if what == "" {
		return nil
	}
	return conflict(what, what, "wait %q of run %q was registered with other values (%s); choose another effect key", r.wait.Effect, r.wait.RunID, what).
		With("effect", r.wait.Effect)
}

func tooManyWaits(n int) error {
	return rendezvous.OverLimit("waits", rendezvous.MaxWaitsPerRun, n)
}

// findRows finds the rows of waits that are known, and makes those of waits that are new or whose row was lost (EV-22).
func (u *unit) findRows(ctx context.Context, regs []*registration) error {
	var known []backend.WaitKey
	for _, r := range regs {
		if r.err == nil && r.first == nil && r.stand.opened != nil && r.stand.closed == nil {
			known = append(known, r.key())
		}
	}
	rows := map[backend.WaitKey]*backend.Wait{}
	if len(known) > 0 {
		var err error
		if rows, err = u.tx.Waits(ctx, known); err != nil {
			return err
		}
	}
	var missing []*registration
	for _, r := range regs {
		if r.err != nil || r.first != nil || r.stand.closed != nil {
			continue
		}
		if row := rows[r.key()]; row == nil {
			missing = append(missing, r)
		} else if r.row = row; row.Corrupt != nil {
			r.err = row.Corrupt
		}
	}
	if len(missing) == 0 {
		return nil
	}
	numbers, err := u.tx.NewWaitNumbers(ctx, len(missing))
	if err != nil {
		return err
	}
	for i, r := range missing {
		r.row = u.newWait(r, numbers[i])
	}
	return nil
}

func (u *unit) newWait(r *registration, number int64) *backend.Wait {
	w := &backend.Wait{
		Number: number, Tenant: r.f.Tenant, RunID: r.wait.RunID, Effect: r.wait.Effect, WorkflowID: r.f.ID, Shard: r.f.Shard,
		Attempt: r.wait.Attempt, Type: r.wait.Type, Keys: r.wait.Keys, From: r.wait.From, Trace: r.wait.Trace,
		RegisteredAt: u.at, OpenSince: u.now,
	}
	if r.stand.opened != nil {
		w.RegisteredAt = r.stand.opened.RecordedAt
	}
	w.Deadline = r.due
	if r.poll = r.stand.opened == nil && !r.due.IsZero() && !r.due.After(u.at); r.poll {
		w.Deadline = pollDeadline(u.at)
	}
	return w
}

// pollDeadline is the deadline in the row of a wait whose deadline was over when it was registered: what was received until then answers (M5). Its timer and
// its record keep the deadline itself.
func pollDeadline(registered time.Time) time.Time { return registered.Add(time.Microsecond) }

func corruptInstant(r rendezvous.Record, err error) error {
	return rendezvous.Errorf(rendezvous.CodeCorrupt, "the instant of record %d does not decode", r.Seq).With("seq", r.Seq).Because(err)
}

// takeEvents lets the registrations in, one by one. Each new wait needs room among those of its run, and leaves it to the next when it is answered at
// once (EV-87). Each open one is given its oldest event, if no older open wait meets that event too; those of this unit count. A wait that is parked is
// answered with what it holds.
func (u *unit) takeEvents(ctx context.Context, regs []*registration) error {
	p := &plan{x: newIndex(u.tx, u.at), try: u.try}
	var in []*registration
	for _, r := range regs {
		if r.err != nil || r.row == nil {
			continue
		}
		in = append(in, r)
		switch {
		case !r.claim || !r.row.Open():
		case r.row.Version == 0:
			r.node = p.x.add(r.row)
		default:
			r.node = p.x.wait(r.row)
		}
	}
	var taken []*eventNode
	var over []int
	var contested []bool
	err := p.complete(ctx, func(p *plan) { taken, over, contested = p.admit(in) })
	if err != nil {
		return err
	}
	for i, r := range in {
		switch {
		case over[i] > 0:
			r.err = tooManyWaits(over[i])
		case taken[i] != nil:
			r.event = taken[i].Event
		default:
			r.look = r.node != nil
			r.over = r.poll && r.look && !contested[i]
		}
	}
	return nil
}

// admit answers which event each registration takes, and how many waits its run would have where that is over the limit: such a one stands in nobody's way.
// One that is claimed for and answered late leaves its room as well: the run's next collect closes it. contested are those of which an event is the oldest that
// an older wait meets too.
func (p *plan) admit(regs []*registration) (taken []*eventNode, over []int, contested []bool) {
	taken, over, contested = make([]*eventNode, len(regs)), make([]int, len(regs)), make([]bool, len(regs))
	open := map[*flow]int{}
	for _, r := range regs {
		if _, known := open[r.f]; !known {
			open[r.f] = r.f.OpenWaits
		}
		if r.seq != 0 {
			open[r.f]-- // its record is written, and counted
		}
	}
	for i, r := range regs {
		added := r.seq != 0 || r.fresh()
		if added && open[r.f] >= rendezvous.MaxWaitsPerRun {
			over[i] = open[r.f] + 1
			if r.node != nil {
				p.x.leave(r.node)
			}
			continue
		}
		if r.node != nil {
			if taken[i] = p.claim(r.node); taken[i] == nil && r.poll {
				contested[i] = p.contested(r.node)
			}
		}
		if added && taken[i] == nil {
			open[r.f]++
		}
	}
	return taken, over, contested
}

// contested reports whether an event is there for a wait that could not claim it: an older wait meets it too (O3).
func (p *plan) contested(w *waitNode) bool {
	e, known := p.x.oldestEvent(w, nil)
	return !known || e != nil
}

// settleRegistration records what is new of one registration and completes its answer.
func (u *unit) settleRegistration(r *registration) {
	r.out.Workflow = r.f.ID
	if r.stand.closed != nil {
		r.close(r.stand.closed.Seq, r.stand.closing(), r.took)
		return
	}
	if r.seq == 0 {
		r.seq = u.recordRegistration(r)
	}
	switch {
	case r.event != nil && r.late:
		u.claim(r.row, r.event)
	case r.event != nil:
		row := u.answer(r.f, r.row, r.event)
		row.Payload, row.ContentType = r.event.Payload, r.event.ContentType
		r.row, r.look = nil, false
		r.out.EventTrace = r.event.Trace
		r.close(row.Seq, rendezvous.ClosedAnswered, &row.Record)
		return
	}
	if r.over {
		row := u.timeOut(r.f, r.row, r.due)
		r.row, r.look = nil, false
		r.close(row.Seq, rendezvous.ClosedTimedOut, nil)
		return
	}
	if r.row.Version == 0 {
		u.ch.NewWaits = append(u.ch.NewWaits, r.row)
		u.armWait(r)
	}
	r.out.Outcome, r.out.Number, r.out.Seq, r.out.Parked = store.RegisterWaiting, r.row.Number, r.seq, !r.row.Open()
}

func (u *unit) recordRegistration(r *registration) int64 {
	if r.stand.opened != nil {
		return r.stand.opened.Seq
	}
	keys := r.wait.Keys
	if keys == nil {
		keys = []rendezvous.Key{}
	}
	d := rendezvous.WaitRegisteredData{Type: r.wait.Type, Keys: keys, From: r.wait.From}
	if !r.due.IsZero() {
		d.Deadline = rendezvous.FormatInstant(r.due)
	}
	return u.record(r.f, rendezvous.Record{
		RunID: r.wait.RunID, Kind: rendezvous.WaitRegistered, Effect: r.wait.Effect, Attempt: r.wait.Attempt, Data: rendezvous.EncodeData(d),
	}).Seq
}

// armWait arms the deadline of a wait that stays. That of a wait whose row was lost is live in the history and counted.
func (u *unit) armWait(r *registration) {
	if r.due.IsZero() {
		return
	}
	t := backend.Timer{
		TimerID: rendezvous.WaitTimerID(r.wait.RunID, r.wait.Effect), Class: rendezvous.TimerWait, Effect: r.wait.Effect, FireAt: r.due, ArmedSeq: r.seq, Trace: r.wait.Trace,
	}
	if r.stand.opened == nil {
		u.arm(r.f, t, false)
	} else {
		u.writeTimer(r.f, t)
	}
}

// timeOut records that a wait's deadline came before its answer (M5): due is that deadline, however late it is. A free run is woken.
func (u *unit) timeOut(f *flow, w *backend.Wait, due time.Time) *backend.Record {
	row := u.record(f, rendezvous.Record{
		RunID: w.RunID, Kind: rendezvous.WaitTimedOut, Effect: w.Effect, Attempt: w.Attempt,
		Data: rendezvous.EncodeData(rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(due)}),
	})
	u.dropWait(w)
	u.wake(f, rendezvous.CauseTimedOut, row.Seq, w.Trace)
	return row
}

// close answers how the wait ended, now or earlier.
func (r *registration) close(seq int64, how rendezvous.Closing, answer *rendezvous.Record) {
	r.closing = how
	r.out.Seq, r.out.Answer = seq, answer
	switch how {
	case rendezvous.ClosedAnswered:
		r.out.Outcome = store.RegisterAnswered
	case rendezvous.ClosedTimedOut:
		r.out.Outcome = store.RegisterTimedOut
	default:
		r.out.Outcome = store.RegisterWithdrawn
	}
}

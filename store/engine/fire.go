package engine

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// firing is due timers on their way into histories. Their workflows are locked; one that does not exist is not among u.flows.
type firing struct {
	*unit
	record func(f *flow) bool        // what comes due of f goes into its history now: it is free, or its driver asks
	room   func(f *flow, n int) bool // whether a record of f with n bytes of payload may still be written; nil: any number of any size
	fires  []store.Fire
	of     map[*backend.Timer]*dueWait
	pairs  pairing
	closed map[backend.WaitKey]standing // read by a later try alone
}

// dueWait is the wait of a due deadline.
type dueWait struct {
	wait      *backend.Wait // nil: it is gone
	event     *backend.Event
	contested bool
}

// fire records what is due, each run's in the order of (fire_at, armed_seq, timer id), deadlines of runs last (timers.md section 4). It answers one
// outcome per row, in that order.
func (f *firing) fire(ctx context.Context, rows []*backend.Timer) ([]store.Fire, error) {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b *backend.Timer) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.WorkflowID, b.WorkflowID), a.FireAt.Compare(b.FireAt),
			cmp.Compare(a.ArmedSeq, b.ArmedSeq), cmp.Compare(a.TimerID, b.TimerID))
	})
	if err := f.readWaits(ctx, rows); err != nil {
		return nil, err
	}
	for _, t := range rows {
		if _, gone := f.timers.gone[t.Key()]; gone { // with a wait that was answered, or a run that was sealed, in this unit
			continue
		}
		out := store.Fire{Timer: storeTimer(t)}
		if err := f.one(ctx, t, &out); err != nil {
			return nil, err
		}
		f.fires = append(f.fires, out)
	}
	return f.fires, nil
}

func rank(t *backend.Timer) int {
	if t.Class == rendezvous.TimerRun {
		return 1
	}
	return 0
}

// looks reports whether t is a deadline whose wait takes a last look: that of a run that is over, left by a restore, takes nothing from others.
func (f *firing) looks(t *backend.Timer) bool {
	w := f.flows[backend.WorkflowKey{Tenant: t.Tenant, ID: t.WorkflowID}]
	return t.Class == rendezvous.TimerWait && t.Corrupt == nil && w != nil && w.Corrupt == nil && w.RunID == t.RunID && !w.Status.Terminal()
}

// readWaits reads the waits of due deadlines, what they hold, and for those that are open which event came in time (M5).
func (f *firing) readWaits(ctx context.Context, rows []*backend.Timer) error {
	f.of = map[*backend.Timer]*dueWait{}
	var keys []backend.WaitKey
	for _, t := range rows {
		if f.looks(t) {
			keys = append(keys, backend.WaitKey{Tenant: t.Tenant, RunID: t.RunID, Effect: t.Effect})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	waits, err := f.tx.Waits(ctx, keys)
	if err != nil {
		return err
	}
	for _, w := range f.ch.Waits { // as this unit leaves them
		if _, asked := waits[w.Key()]; asked {
			waits[w.Key()] = w
		}
	}
	if f.try > 0 {
		if err := f.readClosed(ctx, keys); err != nil {
			return err
		}
	}
	p := &plan{x: newIndex(f.tx, f.at), try: f.try}
	var held []*backend.Wait
	var nodes []*waitNode
	var looking []*dueWait
	for _, t := range rows {
		if !f.looks(t) {
			continue
		}
		d := &dueWait{wait: waits[backend.WaitKey{Tenant: t.Tenant, RunID: t.RunID, Effect: t.Effect}]}
		f.of[t] = d
		switch {
		case d.wait == nil || d.wait.Corrupt != nil:
		case d.wait.Held != nil:
			held = append(held, d.wait)
		case f.closed[d.wait.Key()].closed == nil:
			nodes, looking = append(nodes, p.x.wait(d.wait)), append(looking, d)
		}
	}
	if f.pairs, err = f.unit.pairs(ctx, held); err != nil || len(nodes) == 0 {
		return err
	}
	taken, contested, err := p.claimAll(ctx, nodes)
	for i, d := range looking {
		if d.contested = contested[i]; taken[i] != nil {
			d.event = f.pending(taken[i].Event)
		}
	}
	return err
}

// readClosed reads how the waits stand in the history: a row left over by a restore is met only by the constraint that closes an effect once, so this is asked
// when a first try did not go through.
func (f *firing) readClosed(ctx context.Context, keys []backend.WaitKey) error {
	effects, err := f.tx.Effects(ctx, keys)
	f.closed = make(map[backend.WaitKey]standing, len(effects))
	for k, records := range effects {
		f.closed[k] = standingOf(records)
	}
	return err
}

// one decides one due timer.
func (f *firing) one(ctx context.Context, t *backend.Timer, out *store.Fire) error {
	w := f.flows[backend.WorkflowKey{Tenant: t.Tenant, ID: t.WorkflowID}]
	switch {
	case t.Corrupt != nil:
		f.fail(t, out, t.Corrupt)
	case w == nil, w.Corrupt == nil && (w.RunID != t.RunID || w.Status.Terminal()):
		f.drop(t, out)
	case w.Corrupt != nil:
		f.fail(t, out, w.Corrupt)
	case w.Head == rendezvous.MaxSeq:
		f.fail(t, out, rendezvous.OverLimit("seq", rendezvous.MaxSeq, rendezvous.MaxSeq))
	case t.Class == rendezvous.TimerAuthor:
		out.Queue = w.Queue
		f.author(w, t, out)
	case t.Class == rendezvous.TimerWait:
		out.Queue = w.Queue
		return f.deadline(w, t, out)
	case t.Class == rendezvous.TimerRun:
		return f.runDeadline(ctx, w, t, out)
	default:
		f.fail(t, out, rendezvous.Errorf(rendezvous.CodeCorrupt, "timer %q has the unknown class %q", t.TimerID, t.Class))
	}
	return nil
}

func (f *firing) author(w *flow, t *backend.Timer, out *store.Fire) {
	if !f.record(w) {
		f.park(w, t, out)
		return
	}
	if f.room != nil && !f.room(w, 0) {
		f.leave(t, out)
		return
	}
	row := f.unit.record(w, rendezvous.Record{
		RunID: t.RunID, Kind: rendezvous.TimerFired,
		Data: rendezvous.EncodeData(rendezvous.TimerFiredData{TimerID: t.TimerID, FireAt: rendezvous.FormatInstant(t.FireAt), ArmedSeq: t.ArmedSeq}),
	})
	f.disarm(w, t.Key())
	f.wake(w, rendezvous.CauseTimer, row.Seq, t.Trace)
	out.Outcome, out.Seq = store.FireFired, row.Seq
}

// deadline is the last look of a wait whose deadline came: an event that came in time is the answer, else the time-out is.
func (f *firing) deadline(w *flow, t *backend.Timer, out *store.Fire) error {
	d := f.of[t]
	switch {
	case d.wait == nil:
		f.drop(t, out)
		return nil
	case d.wait.Corrupt != nil:
		f.fail(t, out, d.wait.Corrupt)
		return nil
	case f.closed[d.wait.Key()].closed != nil:
		if _, err := f.settle(d.wait, f.pairs.held, f.closed[d.wait.Key()], rendezvous.DeadWaitWithdrawn); err != nil {
			f.fail(t, out, err)
			return nil
		}
		out.Outcome = store.FireDropped
		return nil
	case d.contested && f.room != nil: // the end of a lease leaves it due
		f.leave(t, out)
		return nil
	case d.contested:
		f.postpone(t, f.now.Add(contestedRetry))
		out.Outcome = store.FireContested
		return nil
	case !d.wait.QuarantinedAt.IsZero(): // its claim stands until an operator says otherwise
		f.park(w, t, out)
		return nil
	}
	e := d.event
	if d.wait.Held != nil {
		var err error
		if e, err = f.pairs.judge(d.wait); err != nil {
			f.fail(t, out, err)
			return nil
		}
	}
	size := 0
	if e != nil {
		size = e.PayloadSize
	}
	switch {
	case !f.record(w):
		if e != nil && d.wait.Held == nil {
			f.claim(d.wait, e)
		}
		f.park(w, t, out)
	case f.room != nil && !f.room(w, size):
		f.leave(t, out)
	case e != nil:
		out.Outcome, out.Seq = store.FireAnswered, f.answer(w, d.wait, e).Seq
	default:
		out.Outcome, out.Seq = store.FireFired, f.timeOut(w, d.wait, t.FireAt).Seq
	}
	return nil
}

// runDeadline ends the run whoever drives it, and also while it is paused (TM-42): the first terminal wins.
func (f *firing) runDeadline(ctx context.Context, w *flow, t *backend.Timer, out *store.Fire) error {
	key := backend.RunKey{Tenant: t.Tenant, ID: t.RunID}
	runs, err := f.tx.Runs(ctx, []backend.RunKey{key})
	if err != nil {
		return err
	}
	if runs[key] == nil {
		return backend.ErrStale
	}
	if w.LeaseOwner != "" {
		w.LeaseEpoch++
		f.freeLease(w, rendezvous.LeaseRevoked)
	}
	ended, err := f.conclude(ctx, w, runs[key], rendezvous.Record{
		RunID: t.RunID, Kind: rendezvous.RunTimedOut, Data: rendezvous.EncodeData(rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(t.FireAt)}),
	})
	if err != nil {
		return err
	}
	f.dropTimer(t.Key())
	out.Outcome, out.Seq, out.Retired = store.FireFired, ended.seq, &ended.retired
	return nil
}

// contestedRetry is when a contested deadline is looked at again: the worker offers the wait meanwhile.
const contestedRetry = 25 * time.Millisecond

// Pauses of a timer whose run is leased, and of one that failed.
const (
	firstPark  = 25 * time.Millisecond
	doublings  = 5 // 25 to 800 ms; then lastPark each time
	lastPark   = 5 * time.Second
	firstFail  = time.Second
	mostFail   = 5 * time.Minute
	stuckTimer = 16 // failures in a row from which on a timer is reported
)

func (f *firing) park(w *flow, t *backend.Timer, out *store.Fire) {
	pause := lastPark
	if t.Parks <= doublings {
		pause = firstPark << t.Parks
	}
	t.Parks++
	f.postpone(t, f.now.Add(pause))
	out.Outcome, out.Remaining = store.FireParked, max(0, w.LeaseExpires.Sub(f.now))
}

// leave makes a timer due now that found no room: the next call takes it.
func (f *firing) leave(t *backend.Timer, out *store.Fire) {
	f.postpone(t, f.now)
	out.Outcome = store.FireParked
}

// fail counts a failure of this row alone. It is never deleted.
func (f *firing) fail(t *backend.Timer, out *store.Fire, err error) {
	t.Attempts++
	t.LastError = clip(err.Error())
	f.postpone(t, f.now.Add(max(contestedRetry, rand.N(doubled(firstFail, t.Attempts-1, mostFail)))))
	out.Outcome, out.Err, out.Stuck = store.FireFailed, err, t.Attempts >= stuckTimer
}

// drop makes a row go that no live arming stands behind. Nothing is recorded, so what the history says is live stays counted.
func (f *firing) drop(t *backend.Timer, out *store.Fire) {
	f.dropTimer(t.Key())
	out.Outcome = store.FireDropped
}

// postpone makes a timer due later; its instant stays what it is. A hold ends with it.
func (f *firing) postpone(t *backend.Timer, at time.Time) {
	t.DueAt = rendezvous.DueInstant(at)
	t.ReadyAt, t.Token, t.Holder, t.HoldEpoch, t.HeldUntil = t.DueAt, 0, "", 0, time.Time{}
	f.changeTimer(t)
}

package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Unsubscribe implements [store.Waits].
func (t *tenant) Unsubscribe(ctx context.Context, id rendezvous.WaitID, epoch int64, reason string, at time.Time) (store.Withdrawn, error) {
	if err := checkWaitID(id); err != nil {
		return store.Withdrawn{}, err
	}
	if err := rendezvous.CheckReason("reason", reason); err != nil {
		return store.Withdrawn{}, err
	}
	key := backend.WaitKey{Tenant: t.name, RunID: id.RunID, Effect: id.Effect}
	var done store.Withdrawn
	notices, err := t.update(ctx, "unsubscribe", at, func(ctx context.Context, u *unit) (err error) {
		done, err = u.unsubscribe(ctx, key, epoch, reason)
		return err
	})
	if err != nil {
		return store.Withdrawn{}, err
	}
	done.Notices = notices
	return done, nil
}

// unsubscribe withdraws one wait, or says from the history how it ended (EV-71, EV-72). That comes before the lease is asked for: it is the answer to a
// retry, also to one whose lease is gone.
func (u *unit) unsubscribe(ctx context.Context, key backend.WaitKey, epoch int64, reason string) (store.Withdrawn, error) {
	f, run, err := u.lockRun(ctx, key.Tenant, key.RunID)
	if f == nil {
		return store.Withdrawn{}, err
	}
	w, s, err := u.waitAndStanding(ctx, key)
	if err != nil {
		return store.Withdrawn{}, err
	}
	if !current(f, run) || s.closed != nil || s.opened == nil || s.opened.Seq < f.Reopened {
		return u.unsubscribed(ctx, run, w, s)
	}
	if err := u.checkLease(f, epoch); err != nil {
		return store.Withdrawn{}, err
	}
	if w == nil {
		if w, err = u.lostWait(ctx, key, s); err != nil {
			return store.Withdrawn{}, err
		}
	}
	row, loose, err := u.withdraw(ctx, f, w, reason)
	if err != nil {
		return store.Withdrawn{}, err
	}
	if epoch == 0 {
		u.wake(f, rendezvous.CauseWithdrawn, row.Seq, w.Trace)
	}
	return withLoose(store.Withdrawn{Outcome: store.WithdrawWithdrawn, Seq: row.Seq}, loose), nil
}

// lostWait stands for a wait that is registered and has no row (EV-22): closing it closes its history, and lets go of an event that still names it.
func (u *unit) lostWait(ctx context.Context, key backend.WaitKey, s standing) (*backend.Wait, error) {
	w := &backend.Wait{Tenant: key.Tenant, RunID: key.RunID, Effect: key.Effect, Attempt: s.opened.Attempt}
	claims, err := u.tx.ClaimedEvents(ctx, []backend.WaitKey{key})
	if e := claims[key]; e != nil {
		w.Held = &backend.HeldEvent{Number: e.Number, Source: e.Source, ID: e.ID}
	}
	return w, err
}

func (u *unit) waitAndStanding(ctx context.Context, key backend.WaitKey) (*backend.Wait, standing, error) {
	rows, err := u.tx.Waits(ctx, []backend.WaitKey{key})
	if err != nil {
		return nil, standing{}, err
	}
	effects, err := u.tx.Effects(ctx, []backend.WaitKey{key})
	if err != nil {
		return nil, standing{}, err
	}
	if w := rows[key]; w != nil && w.Corrupt != nil {
		return nil, standing{}, w.Corrupt
	}
	return rows[key], standingOf(effects[key]), nil
}

// unsubscribed answers how a wait ended that is not open any more. A row left over, possible only after a restore, goes.
func (u *unit) unsubscribed(ctx context.Context, run *backend.Run, w *backend.Wait, s standing) (store.Withdrawn, error) {
	out := store.Withdrawn{Outcome: store.WithdrawNothing}
	switch {
	case s.closed != nil:
		out.Outcome, out.Seq = store.WithdrawOutcome(s.closing()), s.closed.Seq
	case s.opened != nil:
		out.Outcome, out.Seq = store.WithdrawEnded, run.LastSeq
	}
	if w == nil {
		return out, nil
	}
	held, err := u.heldBy(ctx, []*backend.Wait{w})
	if err != nil {
		return store.Withdrawn{}, err
	}
	loose, err := u.settle(w, held, s, rendezvous.DeadAddresseeConcluded)
	return withLoose(out, loose), err
}

// withLoose names the event that a wait let go of.
func withLoose(out store.Withdrawn, e *backend.Event) store.Withdrawn {
	if e == nil {
		return out
	}
	id := rendezvous.EventID{Source: e.Source, ID: e.ID}
	switch e.State {
	case rendezvous.EventLive:
		out.Released = &id
	case rendezvous.EventDead:
		out.Dead = &id
	}
	return out
}

// withdraw records WaitWithdrawn for an open wait of f, whose row goes; an event it holds is live again, or dead when it was targeted, and is answered.
// A wait without a row (version 0, not new in this unit) is closed in the history alone. It wakes nobody.
func (u *unit) withdraw(ctx context.Context, f *flow, w *backend.Wait, reason string) (*backend.Record, *backend.Event, error) {
	held, err := u.heldBy(ctx, []*backend.Wait{w})
	if err != nil {
		return nil, nil, err
	}
	return u.withdrawHeld(f, w, held, reason)
}

// withdrawHeld is withdraw for one of many waits, whose events were read before.
func (u *unit) withdrawHeld(f *flow, w *backend.Wait, held map[int64]*backend.Event, reason string) (*backend.Record, *backend.Event, error) {
	loose, err := u.settle(w, held, standing{}, rendezvous.DeadWaitWithdrawn)
	if err != nil {
		return nil, nil, err
	}
	return u.record(f, rendezvous.Record{
		RunID: w.RunID, Kind: rendezvous.WaitWithdrawn, Effect: w.Effect, Attempt: w.Attempt,
		Data: rendezvous.EncodeData(rendezvous.ReasonData{Reason: reason}),
	}), loose, nil
}

// settle makes a wait's row go and gives the event it held its place: consumed when the history has it as the wait's answer, which then sheds it, else
// released, or dead of reason when it was targeted. It answers the event that was let go, nil when there is none. It can never drop an event nobody
// journaled: an event that does not decode keeps the wait.
func (u *unit) settle(w *backend.Wait, held map[int64]*backend.Event, s standing, reason rendezvous.DeadReason) (*backend.Event, error) {
	var e *backend.Event
	if w.Held != nil {
		e = held[w.Held.Number]
	}
	if e != nil && e.Corrupt != nil {
		return nil, e.Corrupt
	}
	answered := false
	if holds(w, e) {
		var err error
		if answered, err = s.answeredBy(e); err != nil {
			return nil, err
		}
	}
	u.dropWait(w)
	switch {
	case !holds(w, e):
		return nil, nil
	case answered:
		unclaim(e)
		e.State, e.Shed = rendezvous.EventConsumed, true
		e.Run, e.Effect, e.Seq, e.Workflow = w.RunID, w.Effect, s.closed.Seq, w.WorkflowID
		u.saveEvent(e)
		return nil, nil
	}
	u.release(e, reason)
	return e, nil
}

// UnsubscribeRun implements [store.Waits].
func (t *tenant) UnsubscribeRun(ctx context.Context, run string, epoch int64, unanswered []string, at time.Time) (store.Retired, store.Notices, error) {
	if err := rendezvous.CheckID("run_id", run); err != nil {
		return store.Retired{}, store.Notices{}, err
	}
	if len(unanswered) > rendezvous.MaxWaitsPerRun {
		return store.Retired{}, store.Notices{}, rendezvous.OverLimit("unanswered", rendezvous.MaxWaitsPerRun, len(unanswered))
	}
	for _, effect := range unanswered {
		if err := rendezvous.CheckID("unanswered", effect); err != nil {
			return store.Retired{}, store.Notices{}, err
		}
	}
	var out store.Retired
	notices, err := t.update(ctx, "unsubscribe_run", at, func(ctx context.Context, u *unit) (err error) {
		out, err = u.unsubscribeRun(ctx, backend.RunKey{Tenant: t.name, ID: run}, epoch, unanswered)
		return err
	})
	if err != nil {
		return store.Retired{}, store.Notices{}, err
	}
	return out, notices, nil
}

func (u *unit) unsubscribeRun(ctx context.Context, key backend.RunKey, epoch int64, unanswered []string) (store.Retired, error) {
	f, run, err := u.lockRun(ctx, key.Tenant, key.ID)
	if f == nil {
		return store.Retired{}, err
	}
	if !current(f, run) { // the summary its conclusion kept
		return keptRetired(run)
	}
	if err := u.checkLease(f, epoch); err != nil {
		return store.Retired{}, err
	}
	r, err := u.retiring(ctx, []backend.RunKey{key}, unanswered...)
	if err != nil {
		return store.Retired{}, err
	}
	out := store.Retired{Corrected: r.corrected(key, unanswered)}
	for _, w := range r.waits {
		var loose *backend.Event
		if s := r.stand[w.Key()]; s.closed != nil { // left over
			loose, err = u.settle(w, r.held, s, rendezvous.DeadWaitWithdrawn)
		} else {
			_, loose, err = u.withdrawHeld(f, w, r.held, "")
		}
		if err != nil {
			return store.Retired{}, err
		}
		out.Waits++
		addLoose(&out, loose)
	}
	if out.Waits > 0 && epoch == 0 {
		u.wake(f, rendezvous.CauseWithdrawn, f.Head)
	}
	return out, nil
}

// keptRetired is what a run's conclusion retired (RN-43).
func keptRetired(run *backend.Run) (store.Retired, error) {
	var out store.Retired
	if len(run.Retired) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(run.Retired, &out); err != nil {
		return store.Retired{}, rendezvous.Errorf(rendezvous.CodeCorrupt, "what run %q retired does not decode", run.ID).With("run", run.ID).Because(err)
	}
	return out, nil
}

// retiring is the waits of runs with what they hold, read set-based.
type retiring struct {
	waits []*backend.Wait
	held  map[int64]*backend.Event
	stand map[backend.WaitKey]standing // of the waits that hold something, and of the effects named besides
}

// retiring reads the waits of runs that are to go. A wait or event that does not decode stops it: neither is ever dropped unseen (R9).
func (u *unit) retiring(ctx context.Context, runs []backend.RunKey, effects ...string) (retiring, error) {
	var r retiring
	var err error
	if r.waits, err = u.waitsOf(ctx, runs); err != nil {
		return r, err
	}
	for _, w := range r.waits {
		if w.Corrupt != nil {
			return r, w.Corrupt
		}
	}
	var more []backend.WaitKey
	for _, effect := range effects {
		more = append(more, backend.WaitKey{Tenant: runs[0].Tenant, RunID: runs[0].ID, Effect: effect})
	}
	if r.stand, err = u.standings(ctx, r.waits, more...); err != nil {
		return r, err
	}
	r.held, err = u.heldBy(ctx, r.waits)
	return r, err
}

// corrected names the effects of which the caller's belief was wrong (EV-75): named though answered, or left out though an event waits to be answered.
func (r retiring) corrected(run backend.RunKey, unanswered []string) []string {
	var wrong []string
	for _, effect := range unanswered {
		if r.stand[backend.WaitKey{Tenant: run.Tenant, RunID: run.ID, Effect: effect}].closing() == rendezvous.ClosedAnswered {
			wrong = append(wrong, effect)
		}
	}
	for _, w := range r.waits {
		if w.Held != nil && r.stand[w.Key()].closed == nil && !slices.Contains(unanswered, w.Effect) {
			wrong = append(wrong, w.Effect)
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

func addLoose(out *store.Retired, e *backend.Event) {
	if e == nil {
		return
	}
	id := rendezvous.EventID{Source: e.Source, ID: e.ID}
	if e.State == rendezvous.EventDead {
		out.Dead = append(out.Dead, id)
		return
	}
	out.Released = append(out.Released, id)
}

// retireRun is step 3 of a conclusion (runs.md section 5): every wait of the run goes, counted once each, without a record; the events they hold are
// shed where the history has them as the answer, else live again, or dead when targeted; kept events die (EV-52, EV-74, RN-43).
func (u *unit) retireRun(ctx context.Context, run *backend.Run) (store.Retired, error) {
	r, err := u.retiring(ctx, []backend.RunKey{run.Key()})
	if err != nil {
		return store.Retired{}, err
	}
	var out store.Retired
	for _, w := range r.waits {
		loose, err := u.settle(w, r.held, r.stand[w.Key()], rendezvous.DeadAddresseeConcluded)
		if err != nil {
			return store.Retired{}, err
		}
		out.Waits++
		addLoose(&out, loose)
	}
	kept, err := u.tx.KeptEvents(ctx, []backend.RunKey{run.Key()})
	if err != nil {
		return store.Retired{}, err
	}
	for _, e := range kept {
		if e = u.pending(e); e.State != rendezvous.EventLive {
			continue // this unit gave it to one of the run's waits
		}
		u.kill(e, rendezvous.DeadAddresseeConcluded, "")
		addLoose(&out, e)
	}
	return out, nil
}

// pending is the row of e that this unit has among its changes already, or else e.
func (u *unit) pending(e *backend.Event) *backend.Event {
	for _, c := range u.ch.Events {
		if c.Number == e.Number {
			return c
		}
	}
	return e
}

func checkWaitID(id rendezvous.WaitID) error {
	if err := rendezvous.CheckID("run_id", id.RunID); err != nil {
		return err
	}
	return rendezvous.CheckID("effect", id.Effect)
}

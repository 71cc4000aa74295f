package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// unit is one verb's work in one transaction: what it locked and what it will change.
type unit struct {
	engine  *Engine
	tx      backend.Tx
	now     time.Time // the store's now
	at      time.Time // the instant of the call (R2)
	try     int       // 0 for the first try of the verb; a later one may look where the first took for granted
	flows   map[backend.WorkflowKey]*flow
	ch      backend.Changes
	saved   map[any]struct{} // rows among the changes already, by pointer
	claims  []*backend.Wait  // those that claimed in this unit, in their order
	timers  arming
	woken   []*flow         // of ch.Wakes
	fresh   []*backend.Push // new registrations
	notices store.Notices
}

// flow is a workflow under lock, as this unit is about to leave it.
type flow struct {
	*backend.Workflow
	free   bool // unsealed and under no live lease when it was locked
	driven bool // the verb is its driver's, under a good epoch
	// watched: it counted push registrations when it was locked, so that its records may wake some.
	watched bool
	woken   *backend.Woken
	notify  bool // its mark is noticed right after the commit
}

func newUnit(e *Engine, tx backend.Tx, at time.Time) *unit {
	now := tx.Now()
	if at.IsZero() {
		at = now
	}
	return &unit{
		engine: e, tx: tx, now: now, at: rendezvous.Instant(at),
		flows: map[backend.WorkflowKey]*flow{}, saved: map[any]struct{}{},
	}
}

// lock locks workflows; once in a unit. Those that do not exist are absent from u.flows.
func (u *unit) lock(ctx context.Context, keys []backend.WorkflowKey) error {
	if len(keys) == 0 {
		return nil
	}
	rows, err := u.tx.LockWorkflows(ctx, keys)
	if err != nil {
		return err
	}
	u.hold(rows)
	return nil
}

// hold makes locked rows this unit's flows.
func (u *unit) hold(rows map[backend.WorkflowKey]*backend.Workflow) {
	for k, w := range rows {
		u.flows[k] = &flow{Workflow: w, free: !w.Status.Terminal() && !leased(w, u.now), watched: w.Registrations > 0}
	}
}

// lockRun locks the workflow of one run and judges that the run is its current, unsealed one: not_found, else sealed with the outcome and the current
// run. The row of the run is answered in both cases where it exists.
func (u *unit) lockRun(ctx context.Context, tenant, runID string) (*flow, *backend.Run, error) {
	key := backend.RunKey{Tenant: tenant, ID: runID}
	runs, err := u.tx.Runs(ctx, []backend.RunKey{key})
	if err != nil {
		return nil, nil, err
	}
	run := runs[key]
	if run == nil {
		return nil, nil, runNotFound(runID)
	}
	if err := u.lock(ctx, []backend.WorkflowKey{{Tenant: tenant, ID: run.WorkflowID}}); err != nil {
		return nil, nil, err
	}
	f := u.flows[backend.WorkflowKey{Tenant: tenant, ID: run.WorkflowID}]
	if f == nil {
		return nil, nil, backend.ErrStale
	}
	if f.Corrupt != nil {
		return nil, nil, f.Corrupt
	}
	if f.RunID == runID && !f.Status.Terminal() {
		return f, run, nil
	}
	// It may have ended between the read of its row and the lock: what it kept is read again.
	if runs, err = u.tx.Runs(ctx, []backend.RunKey{key}); err != nil {
		return nil, nil, err
	}
	if run = runs[key]; run == nil {
		return nil, nil, backend.ErrStale
	}
	return f, run, sealed(f.Workflow, run)
}

// leased reports whether a live lease is on the workflow: only the store's now decides (I16).
func leased(w *backend.Workflow, now time.Time) bool {
	return w.LeaseOwner != "" && w.LeaseExpires.After(now)
}

// checkLease is check 5 of runs.md section 2: no epoch on a live lease is lease_held, an epoch that is not good is fenced. epoch 0 is none.
func (u *unit) checkLease(f *flow, epoch int64) error {
	switch {
	case epoch == 0 && leased(f.Workflow, u.now):
		return leaseHeld(f.Workflow, u.now)
	case epoch != 0 && (f.LeaseOwner == "" || f.LeaseEpoch != epoch):
		return fenced(f.LeaseEpoch)
	}
	f.driven = f.driven || epoch != 0
	return nil
}

// first reports whether row joins the changes now, and not before in this unit.
func (u *unit) first(row any) bool {
	_, before := u.saved[row]
	u.saved[row] = struct{}{}
	return !before
}

// saveFlow puts the workflow row among the changes. A new workflow's row is among them from the start: the caller marked it so with first.
func (u *unit) saveFlow(f *flow) {
	if u.first(f.Workflow) {
		u.ch.Workflows = append(u.ch.Workflows, f.Workflow)
	}
}

// saveRun puts the run row among the changes. A new run's row is among them from the start: the caller marked it so with first.
func (u *unit) saveRun(r *backend.Run) {
	if u.first(r) {
		u.ch.Runs = append(u.ch.Runs, r)
	}
}

// saveEvent puts a stored event among the changes; a new one (version 0) is in NewEvents by its pointer.
func (u *unit) saveEvent(e *backend.Event) {
	if e.Version != 0 && u.first(e) {
		u.ch.Events = append(u.ch.Events, e)
	}
}

// saveWait puts a stored wait among the changes; a new one (version 0) is in NewWaits by its pointer.
func (u *unit) saveWait(w *backend.Wait) {
	if w.Version != 0 && u.first(w) {
		u.ch.Waits = append(u.ch.Waits, w)
	}
}

// dropWait makes the wait's row go, whether it is stored, changed or new in this unit, and the timer of its deadline.
func (u *unit) dropWait(w *backend.Wait) {
	u.dropDeadline(w)
	same := func(o *backend.Wait) bool { return o == w }
	if w.Version == 0 {
		u.ch.NewWaits = slices.DeleteFunc(u.ch.NewWaits, same)
		return
	}
	if !u.first(w) {
		u.ch.Waits = slices.DeleteFunc(u.ch.Waits, same)
	}
	u.ch.GoneWaits = append(u.ch.GoneWaits, w)
}

// record appends r to f's history at its head: seq, instant, counts and, for lifecycle kinds, the row (HI-2, HI-40). Legal order is the caller's to
// judge before. The record answered may still be completed (PayloadOf).
func (u *unit) record(f *flow, r rendezvous.Record) *backend.Record {
	f.Head++
	r.Seq, r.V = f.Head, rendezvous.KindVersion
	r.RecordedAt = u.now
	if f.UpdatedAt.After(r.RecordedAt) {
		r.RecordedAt = f.UpdatedAt
	}
	if r.Kind.Phase() != rendezvous.PhaseNone {
		r.Attempt = max(r.Attempt, 1)
		f.count(r)
	}
	if len(r.Data) == 0 {
		r.Data = []byte("{}")
	}
	f.UpdatedAt = r.RecordedAt
	if f.driven {
		f.Reclaims = 0 // RN-38: a driver moved the head
	}
	if s := r.Kind.Status(); s != "" {
		f.Status = s
		f.ClosedAt = time.Time{}
		if s.Terminal() {
			f.ClosedAt = r.RecordedAt
		}
	}
	row := &backend.Record{Tenant: f.Tenant, WorkflowID: f.ID, Record: r}
	u.ch.Records = append(u.ch.Records, row)
	u.saveFlow(f)
	return row
}

// count keeps open_effects and open_waits of the workflow row.
func (f *flow) count(r rendezvous.Record) {
	n := 1
	if r.Kind.Phase() == rendezvous.PhaseClose {
		n = -1
	}
	if r.Kind.IsWait() {
		f.OpenWaits += n
	} else {
		f.OpenEffects += n
	}
}

// answer records that e answers w, whose workflow f is locked: the record copies the payload inside the store, the wait goes, the event is consumed and
// sheds its payload, all in this unit (I6, EV-55). A free run is woken.
func (u *unit) answer(f *flow, w *backend.Wait, e *backend.Event) *backend.Record {
	data := rendezvous.WaitAnsweredData{EventSource: e.Source, EventID: e.ID, EventType: e.Type, ReceivedAt: rendezvous.FormatInstant(e.ReceivedAt)}
	if key, ok := rendezvous.SharedKey(w.Keys, e.Keys); ok { // O5
		data.Key = &key
	} else {
		data.Targeted = true
	}
	row := u.record(f, rendezvous.Record{
		RunID: w.RunID, Kind: rendezvous.WaitAnswered, Effect: w.Effect, Attempt: w.Attempt, Source: e.Source, Data: rendezvous.EncodeData(data),
	})
	row.PayloadOf = e.Number
	u.dropWait(w)
	unclaim(e)
	e.State, e.Shed = rendezvous.EventConsumed, true
	e.Workflow, e.Run, e.Effect, e.Seq = f.ID, w.RunID, w.Effect, row.Seq
	u.saveEvent(e)
	u.wake(f, rendezvous.CauseAnswered, row.Seq, e.Trace, w.Trace)
	return row
}

// claimRetry is how soon a claim's answer is looked at again by the store's passes.
const claimRetry = 2 * time.Second

// claim ties e to w and parks w in the same write (I5, EV-39). A wait being inserted by this unit (version 0) goes in parked.
func (u *unit) claim(w *backend.Wait, e *backend.Event) {
	e.State, e.ClaimRun, e.ClaimEffect, e.ClaimedAt = rendezvous.EventClaimed, w.RunID, w.Effect, u.now
	settleOffer(e)
	u.saveEvent(e)
	w.Held = &backend.HeldEvent{Number: e.Number, Source: e.Source, ID: e.ID}
	u.claims = append(u.claims, w)
	w.ParkedAt, w.NextAttemptAt = u.now, u.now.Add(claimRetry)
	w.Attempts, w.LastError, w.Take, w.TakeUntil, w.TakeSettled, w.QuarantinedAt = 0, "", 0, time.Time{}, false, time.Time{}
	u.saveWait(w)
}

// reopen makes a parked wait open again, with its old number (EV-79).
func (u *unit) reopen(w *backend.Wait) {
	w.Held, w.OpenSince = nil, u.now
	w.ParkedAt, w.NextAttemptAt, w.Attempts, w.LastError = time.Time{}, time.Time{}, 0, ""
	w.Take, w.TakeUntil, w.TakeSettled, w.QuarantinedAt = 0, time.Time{}, false, time.Time{}
	u.saveWait(w)
	u.notices.Waits = append(u.notices.Waits, waitRef(w))
}

// release takes a standing claim away: an untargeted event is live again, first in line by its old number; a targeted one dies of reason (I8).
// It reports whether the event lives.
func (u *unit) release(e *backend.Event, reason rendezvous.DeadReason) bool {
	unclaim(e)
	if e.Target != "" {
		u.kill(e, reason, "")
		return false
	}
	u.revive(e)
	return true
}

// revive makes e live as from now, first in line by its old number, and has it offered.
func (u *unit) revive(e *backend.Event) {
	e.State, e.LiveSince = rendezvous.EventLive, u.at
	u.saveEvent(e)
	u.notices.Events = append(u.notices.Events, eventRef(e))
}

// kill makes e a dead letter.
func (u *unit) kill(e *backend.Event, reason rendezvous.DeadReason, detail string) {
	unclaim(e)
	e.State, e.DeadReason, e.DeadDetail, e.DeadAt = rendezvous.EventDead, reason, detail, u.at
	u.saveEvent(e)
}

func unclaim(e *backend.Event) {
	e.ClaimRun, e.ClaimEffect, e.ClaimedAt = "", "", time.Time{}
	settleOffer(e)
}

// settleOffer ends the event's offer take and forgets its failures.
func settleOffer(e *backend.Event) {
	e.OfferFailures, e.TakeUntil, e.TakeOpen, e.Takes = 0, time.Time{}, false, 0
}

// resumeRetry is when a RESUME notice is repeated for the first time.
const resumeRetry = 10 * time.Second

// wake marks a free run as having news and asks for its notice, one per run and unit; a paused run is marked and gets none (runs.md section 6).
// A run somebody drives is not marked: its driver is told in its answers. A caller that ends the lease in this unit sets f.free first.
func (u *unit) wake(f *flow, cause rendezvous.Cause, seq int64, links ...rendezvous.Trace) {
	if f.free {
		f.notify = true
		u.mark(f, cause, seq, resumeRetry, links...)
	}
}

// mark sets woken with its next notice due in that time, and notices nobody.
func (u *unit) mark(f *flow, cause rendezvous.Cause, seq int64, next time.Duration, links ...rendezvous.Trace) {
	if f.woken == nil {
		f.woken = &backend.Woken{Tenant: f.Tenant, WorkflowID: f.ID, Since: u.now}
		u.ch.Woken = append(u.ch.Woken, f.woken)
	}
	f.woken.RunID, f.woken.Queue = f.RunID, f.Queue
	f.woken.Cause, f.woken.Seq, f.woken.NextNoticeAt = cause, seq, u.now.Add(next)
	for _, l := range links {
		if l.Parent != "" && len(f.woken.Links) < maxLinks {
			f.woken.Links = append(f.woken.Links, l)
		}
	}
}

// unwake clears the mark: a driver took the run, or it ended.
func (u *unit) unwake(f *flow) {
	if f.woken != nil {
		u.ch.Woken = slices.DeleteFunc(u.ch.Woken, func(m *backend.Woken) bool { return m == f.woken })
		f.woken = nil
	}
	f.notify = false
	u.ch.Unwoken = append(u.ch.Unwoken, f.Key())
}

// maxLinks bounds the trace contexts a mark carries.
const maxLinks = 16

// resumes lists the notices of the runs this unit woke that are not paused or ended now.
func (u *unit) resumes() {
	for _, m := range u.ch.Woken {
		f := u.flows[m.Key()]
		if !f.notify || f.Status == rendezvous.StatusPaused || f.Status.Terminal() {
			continue
		}
		u.notices.Resume = append(u.notices.Resume, store.ResumeRef{
			Tenant: m.Tenant, Queue: m.Queue, WorkflowID: m.WorkflowID, RunID: m.RunID, Seq: m.Seq, Cause: m.Cause, Links: m.Links,
		})
	}
}

// numberClaims draws the numbers by which the claims of a run are ordered: no clock does that (I9). A unit that parks nothing draws none.
func (u *unit) numberClaims(ctx context.Context) error {
	if len(u.claims) == 0 {
		return nil
	}
	numbers, err := u.tx.NewWaitNumbers(ctx, len(u.claims))
	if err != nil {
		return err
	}
	for i, w := range u.claims {
		if w.Held != nil {
			w.Held.Claim = numbers[i]
		}
	}
	return nil
}

// apply hands the changes over. Nothing to change is no round trip.
func (u *unit) apply(ctx context.Context) error {
	u.resumes()
	u.notices.Timers = earliest(u.notices.Timers)
	u.wakes()
	if u.ch.Empty() {
		return nil
	}
	if err := u.numberClaims(ctx); err != nil {
		return err
	}
	if err := u.numberPushes(ctx); err != nil {
		return err
	}
	if err := u.tx.Apply(ctx, &u.ch); err != nil {
		return err
	}
	u.noticeWoken()
	return nil
}

func waitRef(w *backend.Wait) store.WaitRef {
	return store.WaitRef{Tenant: w.Tenant, WaitID: rendezvous.WaitID{RunID: w.RunID, Effect: w.Effect}, Keys: w.Keys, Trace: w.Trace}
}

func eventRef(e *backend.Event) store.EventRef {
	return store.EventRef{Tenant: e.Tenant, EventID: rendezvous.EventID{Source: e.Source, ID: e.ID}, Keys: e.Keys, Trace: e.Trace}
}

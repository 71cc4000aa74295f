package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// ArmTimer implements [store.Timers].
func (t *tenant) ArmTimer(ctx context.Context, a store.Arm, at time.Time) (store.Armed, error) {
	b, err := newArm(t.name, a)
	if err != nil {
		return store.Armed{}, err
	}
	o, notices, err := t.append(ctx, "arm_timer", at, b)
	if err != nil {
		return store.Armed{}, err
	}
	return store.Armed{Arming: store.Arming{FireAt: o.FireAt, ArmedSeq: o.First}, Again: o.again, Notices: notices}, nil
}

// newArm judges an arming by its shape and makes its record.
func newArm(tenant string, a store.Arm) (*batch, error) {
	if err := rendezvous.CheckTimerID("timer_id", a.TimerID); err != nil {
		return nil, err
	}
	if _, err := rendezvous.CheckDeadline(a.FireAt, nil); err != nil {
		return nil, err
	}
	d := rendezvous.TimerStartedData{TimerID: a.TimerID}
	d.FireAt, d.After = deadlineData(a.FireAt, a.After)
	if _, err := rendezvous.Resolve("fire_at", d.FireAt, "after", d.After, time.Time{}); err != nil {
		return nil, err
	}
	b, err := timerBatch(tenant, a.RunID, a.Epoch, a.BatchID)
	if err != nil {
		return nil, err
	}
	r, err := rendezvous.Record{RunID: a.RunID, Kind: rendezvous.TimerStarted, Data: rendezvous.EncodeData(d)}.CheckAppended()
	r.Batch = b.id
	b.records, b.trace = []rendezvous.Record{r}, a.Trace.Kept()
	sum := newDigest("arm_timer")
	sum.record(r)
	b.digest = sum.sum()
	return b, err
}

// timerBatch is a batch of one record about a timer, written at whatever head it finds.
func timerBatch(tenant, run string, epoch int64, id string) (*batch, error) {
	b := &batch{tenant: tenant, run: run, id: id, epoch: epoch, anyHead: true}
	if err := b.check(); err != nil {
		return nil, err
	}
	if epoch < 0 {
		return nil, checkEpoch(epoch)
	}
	return b, nil
}

// CancelTimer implements [store.Timers].
func (t *tenant) CancelTimer(
	ctx context.Context, run string, epoch int64, timerID, batchID, reason string, at time.Time,
) (store.CancelledTimer, error) {
	if err := rendezvous.CheckTimerID("timer_id", timerID); err != nil {
		return store.CancelledTimer{}, err
	}
	if err := rendezvous.CheckReason("reason", reason); err != nil {
		return store.CancelledTimer{}, err
	}
	b, err := timerBatch(t.name, run, epoch, batchID)
	if err != nil {
		return store.CancelledTimer{}, err
	}
	sum := newDigest("cancel_timer")
	sum.text(run, timerID, reason)
	b.digest = sum.sum()
	b.build = func(ctx context.Context, u *unit, f *flow) ([]rendezvous.Record, error) {
		rows, err := u.tx.Timers(ctx, []backend.TimerKey{f.timerKey(timerID)})
		if err != nil {
			return nil, err
		}
		live := rows[f.timerKey(timerID)]
		switch {
		case live != nil && live.Corrupt != nil:
			return nil, live.Corrupt
		case live == nil || live.RunID != f.RunID:
			last, err := u.lastOfTimer(ctx, f, timerID)
			if err != nil {
				return nil, err
			}
			return nil, timerOver(timerID, last)
		}
		r, err := rendezvous.Record{RunID: run, Kind: rendezvous.TimerCancelled, Data: rendezvous.EncodeData(rendezvous.TimerCancelledData{
			TimerID: timerID, ArmedSeq: live.ArmedSeq, Reason: reason,
		})}.CheckAppended()
		r.Batch = batchID
		return []rendezvous.Record{r}, err
	}
	o, _, err := t.append(ctx, "cancel_timer", at, b)
	if err != nil {
		return cancelledBefore(err)
	}
	return store.CancelledTimer{Outcome: store.TimerCancelled, Seq: o.First, Again: o.again}, nil
}

// cancelledBefore turns the conflict of a timer without a live arming into CancelTimer's answer (TM-16).
func cancelledBefore(err error) (store.CancelledTimer, error) {
	e := rendezvous.AsError(err)
	if e.Code != rendezvous.CodeConflict || e.Details["what"] != "timer" {
		return store.CancelledTimer{}, err
	}
	seq, _ := e.Details["seq"].(int64)
	switch e.Details["current"] {
	case "fired":
		return store.CancelledTimer{Outcome: store.TimerFired, Seq: seq}, nil
	case "cancelled":
		return store.CancelledTimer{Outcome: store.TimerCancelled, Seq: seq, Again: true}, nil
	}
	return store.CancelledTimer{Outcome: store.TimerNotArmed}, nil
}

// ListTimers implements [store.Timers].
func (t *tenant) ListTimers(ctx context.Context, ref store.WorkflowRef, class rendezvous.TimerClass, limit int, cursor string) (store.TimerPage, error) {
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.TimerPage{}, err
	}
	if class != "" && !class.Known() {
		return store.TimerPage{}, rendezvous.InvalidField("class", "%q is none of %s, %s, %s", class, rendezvous.TimerAuthor, rendezvous.TimerWait, rendezvous.TimerRun)
	}
	if err := checkRef(ref); err != nil {
		return store.TimerPage{}, err
	}
	var at timerPlace
	if err := decodeCursor(cursor, "timers", t.name, []any{ref, class}, &at); err != nil {
		return store.TimerPage{}, err
	}
	var page store.TimerPage
	err = t.view(ctx, "list_timers", func(ctx context.Context, r backend.Reader) error {
		page = store.TimerPage{}
		key := backend.WorkflowKey{Tenant: t.name, ID: ref.WorkflowID}
		if ref.WorkflowID == "" {
			runs, err := r.Runs(ctx, []backend.RunKey{{Tenant: t.name, ID: ref.RunID}})
			run := runs[backend.RunKey{Tenant: t.name, ID: ref.RunID}]
			if run == nil {
				return err
			}
			key.ID = run.WorkflowID
		}
		after := backend.TimerPosition{Set: cursor != "", FireAt: at.FireAt, Key: backend.TimerKey{Tenant: t.name, WorkflowID: key.ID, TimerID: at.TimerID}}
		rows, err := r.ListTimers(ctx, key, class, after, limit+1)
		if err != nil {
			return err
		}
		if len(rows) > limit {
			rows = rows[:limit]
			last := rows[limit-1]
			page.NextCursor = encodeCursor("timers", t.name, []any{ref, class}, timerPlace{last.FireAt, last.TimerID})
		}
		rows = slices.DeleteFunc(rows, func(row *backend.Timer) bool { return ref.RunID != "" && row.RunID != ref.RunID })
		page.Timers, err = listedTimers(ctx, r, rows)
		return err
	})
	return page, err
}

// timerPlace is where a list of timers goes on.
type timerPlace struct {
	FireAt  time.Time
	TimerID string
}

func (p *timerPlace) sound() bool {
	return soundAt(p.FireAt) && rendezvous.CheckID("cursor", p.TimerID) == nil
}

// CountTimers implements [store.Timers].
func (t *tenant) CountTimers(ctx context.Context) (map[rendezvous.TimerClass]store.TimerCounts, error) {
	var out map[rendezvous.TimerClass]store.TimerCounts
	err := t.view(ctx, "count_timers", func(ctx context.Context, r backend.Reader) error {
		counts, err := r.CountTimers(ctx, t.name)
		out = make(map[rendezvous.TimerClass]store.TimerCounts, len(counts))
		for class, n := range counts {
			out[class] = store.TimerCounts(n)
		}
		return err
	})
	return out, err
}

// ScheduleTimer implements [store.Timers].
func (t *tenant) ScheduleTimer(ctx context.Context, workflowID, timerID string, a store.Arming) (store.ScheduleOutcome, error) {
	if err := checkArming(workflowID, timerID, &a); err != nil {
		return "", err
	}
	if a.ArmedSeq == 0 {
		return "", rendezvous.NotBuilt("armed_seq 0 (a tick)")
	}
	var out store.ScheduleOutcome
	_, err := t.update(ctx, "schedule_timer", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		out, err = u.schedule(ctx, backend.WorkflowKey{Tenant: t.name, ID: workflowID}, timerID, a)
		return err
	})
	return out, err
}

// schedule writes the row of an arming that the history holds and that nothing ended since (TM-9).
func (u *unit) schedule(ctx context.Context, key backend.WorkflowKey, timerID string, a store.Arming) (store.ScheduleOutcome, error) {
	if err := u.lock(ctx, []backend.WorkflowKey{key}); err != nil {
		return "", err
	}
	f := u.flows[key]
	switch {
	case f == nil:
		return "", rendezvous.Errorf(rendezvous.CodeNotFound, "workflow %q is not known in this tenant", key.ID).With("workflow", key.ID)
	case f.Corrupt != nil:
		return "", f.Corrupt
	case f.Status.Terminal():
		return "", rendezvous.Errorf(rendezvous.CodeSealed, "run %q ended as %s; nothing is armed for it", f.RunID, f.Status).
			With("run", f.RunID).With("outcome", string(f.Status)).With("current_run", f.RunID)
	}
	live, err := u.armedBy(ctx, f, timerID, a)
	if err != nil {
		return "", err
	}
	if live == nil {
		return store.ScheduleSuperseded, nil
	}
	rows, err := u.tx.Timers(ctx, []backend.TimerKey{f.timerKey(timerID)})
	if err != nil {
		return "", err
	}
	if row := rows[f.timerKey(timerID)]; row != nil && row.Corrupt == nil && row.ArmedSeq == a.ArmedSeq && row.FireAt.Equal(a.FireAt) {
		return store.ScheduleUnchanged, nil
	}
	u.writeTimer(f, *live)
	return store.ScheduleArmed, nil
}

// RetireTimer implements [store.Timers].
func (t *tenant) RetireTimer(ctx context.Context, workflowID, timerID string, a store.Arming) (store.ScheduleOutcome, error) {
	if err := checkArming(workflowID, timerID, &a); err != nil {
		return "", err
	}
	key := backend.WorkflowKey{Tenant: t.name, ID: workflowID}
	timer := backend.TimerKey{Tenant: t.name, WorkflowID: workflowID, TimerID: timerID}
	out := store.ScheduleRetired
	_, err := t.update(ctx, "retire_timer", time.Time{}, func(ctx context.Context, u *unit) error {
		out = store.ScheduleRetired
		if err := u.lock(ctx, []backend.WorkflowKey{key}); err != nil {
			return err
		}
		rows, err := u.tx.Timers(ctx, []backend.TimerKey{timer})
		if err != nil {
			return err
		}
		switch row := rows[timer]; {
		case row == nil:
		case row.Corrupt != nil:
			return row.Corrupt
		case row.ArmedSeq != a.ArmedSeq || !row.FireAt.Equal(a.FireAt):
			out = store.ScheduleSuperseded
		default:
			u.dropTimer(timer)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return out, nil
}

func checkArming(workflowID, timerID string, a *store.Arming) error {
	if err := rendezvous.CheckID("workflow_id", workflowID); err != nil {
		return err
	}
	if err := rendezvous.CheckID("timer_id", timerID); err != nil {
		return err
	}
	if a.ArmedSeq < 0 {
		return rendezvous.InvalidField("armed_seq", "%d is negative; give the seq of the record that armed the timer", a.ArmedSeq)
	}
	if a.FireAt.IsZero() {
		return rendezvous.InvalidField("fire_at", "is missing")
	}
	a.FireAt = rendezvous.DueInstant(a.FireAt)
	return rendezvous.CheckInstant("fire_at", a.FireAt)
}

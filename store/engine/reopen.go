package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// ReopenRun implements [store.Runs].
func (t *tenant) ReopenRun(ctx context.Context, r store.Reopening, at time.Time) (store.Reopened, error) {
	if err := checkAsk(r.RunID, r.Operator, r.Reason); err != nil {
		return store.Reopened{}, err
	}
	b := &batch{tenant: t.name, run: r.RunID, id: r.BatchID}
	if err := b.check(); err != nil {
		return store.Reopened{}, err
	}
	sum := newDigest("reopen_run")
	sum.text(r.RunID, r.Reason)
	b.digest = sum.sum()
	var o *outcome
	notices, err := t.land(ctx, "reopen_run", at, b, func(ctx context.Context, u *unit) error {
		got, err := u.reopenRun(ctx, b, r)
		o = got
		return err
	})
	if err != nil {
		return store.Reopened{}, err
	}
	return store.Reopened{Seq: o.First, Timers: o.Timers, Again: o.again, Notices: notices}, nil
}

// mostSuperseded bounds the data of a RunReopened, in bytes (history.md section 2).
const mostSuperseded = 1 << 20

// reopenRun lifts the seal of a workflow's last run in one transaction (runs.md section 5).
func (u *unit) reopenRun(ctx context.Context, b *batch, r store.Reopening) (*outcome, error) {
	f, run, err := u.lockRun(ctx, b.tenant, b.run)
	if run == nil {
		return nil, err
	}
	before, knownErr := u.known(ctx, b)
	if before != nil || knownErr != nil {
		return before, knownErr
	}
	if err == nil { // unsealed
		return nil, notReopened(run.ID, f.Status)
	}
	if rendezvous.CodeOf(err) != rendezvous.CodeSealed {
		return nil, err
	}
	if run.Status != rendezvous.StatusFailed && run.Status != rendezvous.StatusCancelled || f.RunID != run.ID {
		return nil, notReopened(run.ID, run.Status)
	}
	if f.Head > rendezvous.MaxSeq-1-rendezvous.MaxTimersPerRun {
		return nil, rendezvous.OverLimit("seq", rendezvous.MaxSeq, rendezvous.MaxSeq).With("head", f.Head)
	}
	d := rendezvous.RunReopenedData{Reason: r.Reason, Superseded: []string{}}
	if run.Status == rendezvous.StatusFailed { // HI-21: a cancelled run has none
		failed, err := u.tx.FinalFailures(ctx, run.Key())
		if err != nil {
			return nil, err
		}
		d.Superseded = append(d.Superseded, failed...)
	}
	data := rendezvous.EncodeData(d)
	if len(data) > mostSuperseded {
		return nil, rendezvous.OverLimit("superseded", mostSuperseded, len(data))
	}
	outstanding, err := u.tx.OutstandingTimers(ctx, run.Key(), rendezvous.MaxTimersPerRun)
	if err != nil {
		return nil, err
	}
	deadline, err := u.deadlineOf(ctx, f, run)
	if err != nil {
		return nil, err
	}
	open, err := u.tx.OpenEffects(ctx, run.Key(), rendezvous.MaxFullHistory)
	if err != nil {
		return nil, err
	}
	row := u.record(f, rendezvous.Record{RunID: run.ID, Kind: rendezvous.RunReopened, Operator: r.Operator, Data: data, Batch: b.id})
	u.lift(f, run, row)
	f.OpenEffects = len(open) // those that the conclusion left open are open again (G9)
	o := &outcome{First: row.Seq}
	for _, r := range outstanding {
		if err := u.armAgain(f, r, b.id); err != nil {
			return nil, err
		}
		o.Timers++
	}
	if !deadline.IsZero() {
		u.armRun(f, deadline, row.Seq)
		o.Timers++
	}
	if err := u.watchAgain(ctx, f, row.Seq); err != nil {
		return nil, err
	}
	u.wake(f, rendezvous.CauseResumed, row.Seq)
	if f.woken != nil {
		f.woken.Anew = true
	}
	o.Head = f.Head
	return o, u.keep(b, row.Seq, f.Head, *o)
}

// lift takes the seal off the run's row and the failure view off its workflow's.
func (u *unit) lift(f *flow, run *backend.Run, reopened *backend.Record) {
	f.FailureCode, f.FailureReason, f.FailedEffect = "", "", ""
	f.Reopened, f.Reclaims, f.free = reopened.Seq, 0, true
	f.OpenWaits, f.LiveTimers = 0, 0
	run.Status, run.Outcome, run.LastSeq = rendezvous.StatusRunning, "", 0
	run.ClosedAt, run.SealedAt, run.Retired = time.Time{}, time.Time{}, nil
	u.saveRun(run)
}

// armAgain arms a timer that was outstanding at the conclusion, at its original instant (TM-21).
func (u *unit) armAgain(f *flow, started rendezvous.Record, batch string) error {
	var d rendezvous.TimerStartedData
	if err := rendezvous.DecodeData(started, &d); err != nil {
		return err
	}
	at, err := rendezvous.ParseInstant("fire_at", d.FireAt)
	if err != nil {
		return corruptInstant(started, err)
	}
	row := u.record(f, rendezvous.Record{RunID: f.RunID, Kind: rendezvous.TimerStarted, Data: started.Data, Batch: batch})
	u.arm(f, backend.Timer{TimerID: d.TimerID, Class: rendezvous.TimerAuthor, FireAt: at, ArmedSeq: row.Seq}, false)
	return nil
}

// deadlineOf is the deadline that a run's RunStarted declares, zero for none.
func (u *unit) deadlineOf(ctx context.Context, f *flow, run *backend.Run) (time.Time, error) {
	key := backend.RecordKey{Tenant: f.Tenant, WorkflowID: f.ID, Seq: run.FirstSeq}
	records, err := u.tx.RecordsAt(ctx, []backend.RecordKey{key})
	if err != nil {
		return time.Time{}, err
	}
	started, ok := records[key]
	var d rendezvous.RunStartedData
	if !ok || started.Kind != rendezvous.RunStarted {
		return time.Time{}, rendezvous.Errorf(rendezvous.CodeCorrupt, "record %d of workflow %q does not start run %q", run.FirstSeq, f.ID, run.ID).
			With("workflow", f.ID).With("seq", run.FirstSeq)
	}
	if err := rendezvous.DecodeData(started, &d); err != nil || d.Deadline == "" {
		return time.Time{}, err
	}
	at, err := rendezvous.ParseInstant("deadline", d.Deadline)
	if err != nil {
		return at, corruptInstant(started, err)
	}
	return at, nil
}

// superseded is what the run's last RunReopened lets be tried again (G8).
func (u *unit) superseded(ctx context.Context, f *flow) (map[string]struct{}, error) {
	key := backend.RecordKey{Tenant: f.Tenant, WorkflowID: f.ID, Seq: f.Reopened}
	records, err := u.tx.RecordsAt(ctx, []backend.RecordKey{key})
	if err != nil {
		return nil, err
	}
	var d rendezvous.RunReopenedData
	if err := rendezvous.DecodeData(records[key], &d); err != nil {
		return nil, err
	}
	set := make(map[string]struct{}, len(d.Superseded))
	for effect := range slices.Values(d.Superseded) {
		set[effect] = struct{}{}
	}
	return set, nil
}

func notReopened(run string, status rendezvous.Status) error {
	return conflict("status", string(status), "run %q is %s; only a workflow's last run is reopened, and only from failed or cancelled", run, status).With("run", run)
}

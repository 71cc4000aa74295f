package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// PauseRun implements [store.Runs].
func (t *tenant) PauseRun(ctx context.Context, run string, operator *rendezvous.Operator, reason string, at time.Time) (store.Paused, error) {
	if err := checkAsk(run, operator, reason); err != nil {
		return store.Paused{}, err
	}
	var answer store.Paused
	notices, err := t.update(ctx, "pause_run", at, func(ctx context.Context, u *unit) error {
		f, _, err := u.lockRun(ctx, t.name, run)
		if err != nil {
			return err
		}
		answer = u.askPause(f, operator, reason)
		return nil
	})
	if err != nil {
		return store.Paused{}, err
	}
	answer.Notices = notices
	return answer, nil
}

// askPause pauses a free run and asks it of a leased one. A request that stands is applied by its own asker's words: the first one counts.
func (u *unit) askPause(f *flow, operator *rendezvous.Operator, reason string) store.Paused {
	if f.Status == rendezvous.StatusPaused {
		return store.Paused{Outcome: store.PauseAlreadyPaused, Operator: f.PausedBy, Since: f.PausedAt}
	}
	if f.Pause == nil {
		f.Pause = &rendezvous.Request{Kind: rendezvous.RequestPause, Operator: operator, Reason: reason, At: u.at}
		u.saveFlow(f)
	}
	if leased(f.Workflow, u.now) {
		return store.Paused{Outcome: store.PauseRequested, Operator: f.Pause.Operator}
	}
	row := u.pause(f, f.Pause.Operator, f.Pause.Reason)
	return store.Paused{Outcome: store.PausePaused, Seq: row.Seq}
}

// pause records RunPaused and empties the owner: a paused run has no lease (RN-57). The caller knows that the run is running and may end the lease.
func (u *unit) pause(f *flow, operator *rendezvous.Operator, reason string) *backend.Record {
	row := u.record(f, rendezvous.Record{
		RunID: f.RunID, Kind: rendezvous.RunPaused, Operator: operator, Data: rendezvous.EncodeData(rendezvous.ReasonData{Reason: reason}),
	})
	u.settlePause(f, row)
	return row
}

// settlePause does what a RunPaused does besides its record, whoever wrote it: the request is applied, the lease ends.
func (u *unit) settlePause(f *flow, row *backend.Record) {
	f.PausedBy, f.PausedAt = row.Operator, row.RecordedAt
	if f.PausedBy == nil && f.Pause != nil {
		f.PausedBy = f.Pause.Operator // the driver wrote what somebody had asked for
	}
	f.Pause = nil
	if f.LeaseOwner != "" {
		u.freeLease(f, rendezvous.LeasePaused)
	}
}

// ResumeRun implements [store.Runs].
func (t *tenant) ResumeRun(ctx context.Context, run string, operator *rendezvous.Operator, reason string, at time.Time) (store.Paused, error) {
	if err := checkAsk(run, operator, reason); err != nil {
		return store.Paused{}, err
	}
	var answer store.Paused
	notices, err := t.update(ctx, "resume_run", at, func(ctx context.Context, u *unit) error {
		f, _, err := u.lockRun(ctx, t.name, run)
		if err != nil {
			return err
		}
		answer = u.resume(f, operator, reason)
		return nil
	})
	if err != nil {
		return store.Paused{}, err
	}
	answer.Notices = notices
	return answer, nil
}

// resume ends a pause, or takes a requested one back.
func (u *unit) resume(f *flow, operator *rendezvous.Operator, reason string) store.Paused {
	switch {
	case f.Status == rendezvous.StatusPaused:
		row := u.record(f, rendezvous.Record{
			RunID: f.RunID, Kind: rendezvous.RunResumed, Operator: operator, Data: rendezvous.EncodeData(rendezvous.ReasonData{Reason: reason}),
		})
		u.settleResume(f, row)
		return store.Paused{Outcome: store.PauseResumed, Seq: row.Seq}
	case f.Pause != nil:
		f.Pause = nil
		u.saveFlow(f)
		return store.Paused{Outcome: store.PauseTakenBack}
	}
	return store.Paused{Outcome: store.PauseNotPaused}
}

// settleResume does what a RunResumed does besides its record. The run's notices begin anew: those due while it was paused were not sent (RN-51).
func (u *unit) settleResume(f *flow, row *backend.Record) {
	f.PausedBy, f.PausedAt = nil, time.Time{}
	u.wake(f, rendezvous.CauseResumed, row.Seq)
	if f.woken != nil {
		f.woken.Anew = true
	}
}

// checkAsk judges the shape of what an operator asks of a run.
func checkAsk(run string, operator *rendezvous.Operator, reason string) error {
	if err := rendezvous.CheckID("run_id", run); err != nil {
		return err
	}
	if err := operator.Check("operator"); err != nil {
		return err
	}
	return rendezvous.CheckReason("reason", reason)
}

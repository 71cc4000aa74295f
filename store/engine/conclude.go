package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// concluded is what a conclusion came to.
type concluded struct {
	seq     int64 // of the terminal record
	retired store.Retired
}

// conclude ends f's current run with that terminal, in the order of runs.md section 5: record, seal, waits and their events, lease. The caller has
// judged that the run may end and by whom; the effects left open get no record (G9).
func (u *unit) conclude(ctx context.Context, f *flow, run *backend.Run, terminal rendezvous.Record) (concluded, error) {
	if err := u.viewFailure(ctx, f, terminal); err != nil {
		return concluded{}, err
	}
	row := u.record(f, terminal)
	retired, err := u.retireRun(ctx, f, run)
	if err != nil {
		return concluded{}, err
	}
	if err := u.seal(f, run, row, retired); err != nil {
		return concluded{}, err
	}
	f.Pause, f.Cancel = nil, nil
	f.PausedBy, f.PausedAt = nil, time.Time{}
	if f.LeaseOwner != "" {
		u.freeLease(f, rendezvous.LeaseReleased)
	}
	f.free = false
	u.unwake(f)
	return concluded{seq: row.Seq, retired: retired}, nil
}

// seal closes the run's row behind its terminal. What was retired is kept there for whoever asks again (RN-42).
func (u *unit) seal(f *flow, run *backend.Run, terminal *backend.Record, retired store.Retired) error {
	kept, err := json.Marshal(retired)
	if err != nil {
		return err
	}
	run.Status, run.Outcome, run.LastSeq = f.Status, terminal.Kind, terminal.Seq
	run.ClosedAt, run.SealedAt, run.Retired = terminal.RecordedAt, terminal.RecordedAt, kept
	f.OpenEffects, f.OpenWaits = 0, 0 // the terminal ends them all (G9)
	u.saveRun(run)
	return nil
}

// viewFailure makes the workflow row's failure view what the terminal says: only a failed run has one (history.md section 5). The effect to blame is
// the one named; otherwise it is looked up by index, once in a run's life, so that nothing needs keeping while the run goes on.
func (u *unit) viewFailure(ctx context.Context, f *flow, terminal rendezvous.Record) error {
	f.FailureCode, f.FailureReason, f.FailedEffect = "", "", ""
	if terminal.Kind != rendezvous.RunFailed {
		return nil
	}
	var d rendezvous.RunFailedData
	if err := rendezvous.DecodeData(terminal, &d); err != nil {
		return err
	}
	f.FailureCode, f.FailureReason, f.FailedEffect = d.Code, d.Reason, d.FailedEffect
	if f.FailedEffect != "" {
		return nil
	}
	effect, err := u.lastFailure(ctx, f)
	f.FailedEffect = effect
	return err
}

// lastFailure is the effect the run failed by last. What this unit is about to record comes before what is stored; an effect that failed for good is
// done later only behind a reopening, which starts a unit of its own.
func (u *unit) lastFailure(ctx context.Context, f *flow) (string, error) {
	for i := len(u.ch.Records) - 1; i >= 0; i-- {
		r := u.ch.Records[i]
		if r.Tenant != f.Tenant || r.RunID != f.RunID || r.Kind != rendezvous.EffectFailed {
			continue
		}
		var d rendezvous.EffectFailedData
		if err := rendezvous.DecodeData(r.Record, &d); err != nil {
			return "", err
		}
		if !d.Retryable {
			return r.Effect, nil
		}
	}
	return u.tx.LastFailure(ctx, backend.RunKey{Tenant: f.Tenant, ID: f.RunID})
}

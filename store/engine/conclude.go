package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Conclude implements [store.Runs].
func (t *tenant) Conclude(ctx context.Context, c store.Conclusion, at time.Time) (store.Concluded, error) {
	b, err := newConclusion(t.name, c)
	if err != nil {
		return store.Concluded{}, err
	}
	o, notices, err := t.append(ctx, "conclude", at, b)
	if err != nil {
		return store.Concluded{}, err
	}
	answer := store.Concluded{Seq: o.Seq, Again: o.again, Notices: notices}
	if o.Retired != nil {
		answer.Retired = *o.Retired
	}
	return answer, nil
}

// newConclusion judges a conclusion by its shape and makes its terminal record. Its batch is minted where none is named: such a call has no retry.
func newConclusion(tenant string, c store.Conclusion) (*batch, error) {
	if c.BatchID == "" {
		id, err := mintID()
		if err != nil {
			return nil, err
		}
		c.BatchID = id
	}
	b := &batch{tenant: tenant, run: c.RunID, id: c.BatchID, epoch: c.Epoch, expected: c.ExpectedSeq}
	if err := b.check(); err != nil {
		return nil, err
	}
	r, err := terminal(c)
	if err != nil {
		return nil, err
	}
	if r, err = r.CheckAppended(); err != nil {
		return nil, err
	}
	r.Batch = c.BatchID
	b.records = []rendezvous.Record{r}
	sum := newDigest("conclude")
	sum.number(c.ExpectedSeq)
	sum.record(r)
	b.digest = sum.sum()
	return b, nil
}

// terminal is the record of a conclusion. What its outcome has no room for is refused, not dropped.
func terminal(c store.Conclusion) (rendezvous.Record, error) {
	r := rendezvous.Record{RunID: c.RunID, Payload: c.Result, ContentType: c.ContentType, Operator: c.Operator}
	if len(c.Result) > rendezvous.MaxPayload {
		return r, rendezvous.OverLimit("result", rendezvous.MaxPayload, len(c.Result))
	}
	if err := rendezvous.CheckReason("reason", c.Reason); err != nil {
		return r, err
	}
	if c.Code != "" && c.Outcome != rendezvous.StatusFailed {
		return r, rendezvous.InvalidField("code", "goes with the outcome failed, not with %s", c.Outcome)
	}
	switch c.Outcome {
	case rendezvous.StatusCompleted:
		if c.Reason != "" {
			return r, rendezvous.InvalidField("reason", "goes with the outcomes failed and cancelled, not with %s", c.Outcome)
		}
		r.Kind = rendezvous.RunCompleted
	case rendezvous.StatusFailed:
		if err := rendezvous.CheckID("code", c.Code); err != nil {
			return r, err
		}
		r.Kind, r.Data = rendezvous.RunFailed, rendezvous.EncodeData(rendezvous.RunFailedData{Code: c.Code, Reason: c.Reason})
	case rendezvous.StatusCancelled:
		if c.Result != nil {
			return r, rendezvous.InvalidField("result", "goes with the outcomes completed and failed, not with %s", c.Outcome)
		}
		r.Kind, r.Data = rendezvous.RunCancelled, rendezvous.EncodeData(rendezvous.ReasonData{Reason: c.Reason})
	case rendezvous.StatusTimedOut: // from its deadline on
		if c.Result != nil {
			return r, rendezvous.InvalidField("result", "goes with the outcomes completed and failed, not with %s", c.Outcome)
		}
		if c.Reason != "" {
			return r, rendezvous.InvalidField("reason", "goes with the outcomes failed and cancelled, not with %s", c.Outcome)
		}
		r.Kind = rendezvous.RunTimedOut
	default:
		return r, rendezvous.InvalidField("outcome", "%q is none of completed, failed, cancelled, timed_out", c.Outcome)
	}
	return r, nil
}

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
	timers, err := u.retireTimers(ctx, f)
	if err != nil {
		return concluded{}, err
	}
	row := u.record(f, terminal)
	retired, err := u.retireRun(ctx, run)
	if err != nil {
		return concluded{}, err
	}
	retired.Timers = timers
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
	f.OpenEffects, f.OpenWaits, f.LiveTimers, f.Reopened = 0, 0, 0, 0 // the terminal ends them all (G9)
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

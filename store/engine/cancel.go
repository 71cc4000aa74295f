package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// CancelRun implements [store.Runs].
func (t *tenant) CancelRun(
	ctx context.Context, run string, operator *rendezvous.Operator, reason string, now bool, at time.Time,
) (store.Cancelled, error) {
	if err := checkAsk(run, operator, reason); err != nil {
		return store.Cancelled{}, err
	}
	batch, err := mintID()
	if err != nil {
		return store.Cancelled{}, err
	}
	var answer store.Cancelled
	notices, err := t.update(ctx, "cancel_run", at, func(ctx context.Context, u *unit) error {
		f, row, err := u.lockRun(ctx, t.name, run)
		switch {
		case row != nil && rendezvous.CodeOf(err) == rendezvous.CodeSealed: // by whatever road: no error (RN-55)
			answer = store.Cancelled{Outcome: store.CancelClosed, Status: row.Status}
			return nil
		case err != nil:
			return err
		case now:
			answer, err = u.cancelNow(ctx, f, row, operator, reason, batch)
			return err
		}
		answer = u.askCancel(f, operator, reason)
		return nil
	})
	if err != nil {
		return store.Cancelled{}, err
	}
	answer.Notices = notices
	return answer, nil
}

// askCancel leaves the request for a driver, and wakes a run that has none. The first asker stays on record (RN-54).
func (u *unit) askCancel(f *flow, operator *rendezvous.Operator, reason string) store.Cancelled {
	if f.Cancel == nil {
		f.Cancel = &rendezvous.Request{Kind: rendezvous.RequestCancel, Operator: operator, Reason: reason, At: u.at}
		u.saveFlow(f)
		u.wake(f, rendezvous.CauseCancelled, f.Head)
	}
	asked := *f.Cancel
	return store.Cancelled{Outcome: store.CancelRequested, Request: &asked}
}

// cancelNow revokes the lease and concludes, leased or not, paused or not (RN-56).
func (u *unit) cancelNow(
	ctx context.Context, f *flow, run *backend.Run, operator *rendezvous.Operator, reason, batchID string,
) (store.Cancelled, error) {
	if f.LeaseOwner != "" {
		f.LeaseEpoch++
		u.freeLease(f, rendezvous.LeaseRevoked)
	}
	r := rendezvous.Record{
		RunID: run.ID, Kind: rendezvous.RunCancelled, Operator: operator, Data: rendezvous.EncodeData(rendezvous.ReasonData{Reason: reason}), Batch: batchID,
	}
	ended, err := u.conclude(ctx, f, run, r)
	if err != nil {
		return store.Cancelled{}, err
	}
	sum := newDigest("cancel_run")
	sum.record(r)
	b := &batch{tenant: f.Tenant, run: run.ID, id: batchID, digest: sum.sum()}
	if err := u.keep(b, ended.seq, ended.seq, outcome{First: ended.seq, Head: ended.seq, Seq: ended.seq, Retired: &ended.retired}); err != nil {
		return store.Cancelled{}, err
	}
	return store.Cancelled{Outcome: store.CancelCancelled, Seq: ended.seq, Retired: ended.retired}, nil
}

package client

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// The verbs, with the wire's own requests and replies. Where a request has a token that makes its repetition safe (run ids, batch_id, acquire_id, op) and the
// caller leaves it empty, it is minted here, before the first try. A caller that may itself call again after an error names it.

// StartRun starts a run. Workflow and run id are minted when empty (RN-13).
func (c *Client) StartRun(ctx context.Context, r wire.StartRun) (wire.Started, error) {
	return call[wire.Started](ctx, c, "runs.start", r)
}

// GetRun reads a workflow's row by its id or by one of its runs'. Errors: not_found.
func (c *Client) GetRun(ctx context.Context, ref wire.WorkflowRef) (wire.Workflow, error) {
	return call[wire.Workflow](ctx, c, "runs.get", ref)
}

// ListRuns reads a page of workflows, newest start first. A page looks at 10,000 rows: where few pass the filter it may be short, even empty, and NextCursor alone
// says whether there is more.
func (c *Client) ListRuns(ctx context.Context, r wire.ListRuns) (wire.RunList, error) {
	return call[wire.RunList](ctx, c, "runs.list", r)
}

// CountRuns counts workflows.
func (c *Client) CountRuns(ctx context.Context, r wire.CountRuns) (wire.RunCount, error) {
	return call[wire.RunCount](ctx, c, "runs.count", r)
}

// RunChain reads a page of a workflow's runs.
func (c *Client) RunChain(ctx context.Context, ref wire.WorkflowRef) (wire.Chain, error) {
	return call[wire.Chain](ctx, c, "runs.chain", ref)
}

// HistoryPage reads a page of records; WaitMS lets it wait for new ones, so much longer than [Options].Timeout.
func (c *Client) HistoryPage(ctx context.Context, r wire.ReadHistory) (wire.History, error) {
	return call[wire.History](ctx, c, "runs.history", r)
}

// History reads all records of a workflow from a seq on, page by page.
func (c *Client) History(ctx context.Context, workflowID string, fromSeq int64) ([]rendezvous.Record, error) {
	var all []rendezvous.Record
	for {
		page, err := c.HistoryPage(ctx, wire.ReadHistory{WorkflowID: workflowID, FromSeq: fromSeq})
		if err != nil {
			return nil, err
		}
		records, err := recordsOf(page.Records)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
		if !page.More || len(records) == 0 {
			return all, nil
		}
		fromSeq = records[len(records)-1].Seq + 1
	}
}

// AcquireLease takes a free run. The acquire id is minted when empty. Errors: lease_held, conflict (paused), sealed.
func (c *Client) AcquireLease(ctx context.Context, r wire.AcquireLease) (wire.Lease, error) {
	return call[wire.Lease](ctx, c, "runs.acquire", r)
}

// RenewLease extends a live lease of that owner and epoch. Errors: fenced.
func (c *Client) RenewLease(ctx context.Context, r wire.AcquireLease) (wire.Lease, error) {
	return call[wire.Lease](ctx, c, "runs.renew", r)
}

// Suspend gives the lease up unless there is something after seenSeq: suspended, paused or continue.
func (c *Client) Suspend(ctx context.Context, runID string, epoch, seenSeq int64, knowsCancel bool) (wire.Released, error) {
	return call[wire.Released](ctx, c, "runs.release", wire.ReleaseLease{RunID: runID, Epoch: epoch, SeenSeq: &seenSeq, KnowsCancel: knowsCancel})
}

// ReleaseLease gives the lease up whatever is left to do, and wakes the run for another driver: released or not_held.
func (c *Client) ReleaseLease(ctx context.Context, runID string, epoch int64) (wire.Released, error) {
	return call[wire.Released](ctx, c, "runs.release", wire.ReleaseLease{RunID: runID, Epoch: epoch})
}

// Collect records the run's parked answers under its lease.
func (c *Client) Collect(ctx context.Context, runID string, epoch int64) (wire.Collected, error) {
	return call[wire.Collected](ctx, c, "runs.collect", wire.Collect{RunID: runID, Epoch: epoch})
}

// Append writes records at the expected seq. The batch id is minted when empty. More in its answer: not all answers had room, the others are in the
// history. Errors: conflict, fenced, lease_held, sealed, duplicate.
func (c *Client) Append(ctx context.Context, r wire.Append) (wire.Appended, error) {
	return call[wire.Appended](ctx, c, "runs.append", r)
}

// RegisterWait registers a wait, or says how it stands; the same verb as runs.await.
func (c *Client) RegisterWait(ctx context.Context, r wire.RegisterWait) (wire.Registered, error) {
	return call[wire.Registered](ctx, c, "waits.register", r)
}

// Conclude ends a run; with outcome continued_as_new it also begins the next, whose id is minted when empty. So is the batch id.
func (c *Client) Conclude(ctx context.Context, r wire.Conclude) (wire.Concluded, error) {
	return call[wire.Concluded](ctx, c, "runs.conclude", r)
}

// CancelRun asks for a cancel, or with Now does it.
func (c *Client) CancelRun(ctx context.Context, r wire.ActOnRun) (wire.Acted, error) {
	return call[wire.Acted](ctx, c, "runs.cancel", r)
}

// PauseRun pauses a free run, or asks it of the driver of a leased one.
func (c *Client) PauseRun(ctx context.Context, r wire.ActOnRun) (wire.Acted, error) {
	return call[wire.Acted](ctx, c, "runs.pause", r)
}

// ResumeRun ends a pause, or takes the request back.
func (c *Client) ResumeRun(ctx context.Context, r wire.ActOnRun) (wire.Acted, error) {
	return call[wire.Acted](ctx, c, "runs.resume", r)
}

// ReopenRun lifts the seal of a workflow's last run that failed or was cancelled: its timers and its deadline are back at their instants, its waits are
// registered again by its driver. The batch id is minted when empty. Errors: conflict with the status.
func (c *Client) ReopenRun(ctx context.Context, r wire.ReopenRun) (wire.Reopened, error) {
	return call[wire.Reopened](ctx, c, "runs.reopen", r)
}

// ArmTimer arms a timer of a run, over one of its name that is live, fired or cancelled. The batch id is minted when empty; a caller that may call again names
// it. Inside a handler, see [Run.Sleep].
func (c *Client) ArmTimer(ctx context.Context, r wire.ArmTimer) (wire.Armed, error) {
	return call[wire.Armed](ctx, c, "timers.arm", r)
}

// CancelTimer cancels a timer of a run, or says why there is nothing to cancel. The batch id is minted when empty.
func (c *Client) CancelTimer(ctx context.Context, r wire.CancelTimer) (wire.CancelledTimer, error) {
	return call[wire.CancelledTimer](ctx, c, "timers.cancel", r)
}

// ListTimers reads a page of live armings, soonest first; of a run among its workflow's it may be short, even empty, and not the last.
func (c *Client) ListTimers(ctx context.Context, r wire.ListTimers) (wire.TimerList, error) {
	return call[wire.TimerList](ctx, c, "timers.list", r)
}

// ListShards says who owns which shard.
func (c *Client) ListShards(ctx context.Context, r wire.ListShards) (wire.ShardList, error) {
	return call[wire.ShardList](ctx, c, "shards.list", r)
}

// ListWaits reads a page of waits. It may be short, even empty, and not the last, as one of [Client.ListRuns].
func (c *Client) ListWaits(ctx context.Context, r wire.ListWaits) (wire.WaitList, error) {
	return call[wire.WaitList](ctx, c, "waits.list", r)
}

// WithdrawWait takes a wait back, or says how it ended.
func (c *Client) WithdrawWait(ctx context.Context, r wire.WithdrawWait) (wire.Withdrawn, error) {
	return call[wire.Withdrawn](ctx, c, "waits.withdraw", r)
}

// RetryWait makes a quarantined wait due again: retried or not_quarantined.
func (c *Client) RetryWait(ctx context.Context, r wire.RetryWait) (wire.Retried, error) {
	return call[wire.Retried](ctx, c, "waits.retry", r)
}

// ListLetters reads a page of dead letters, newest number first.
func (c *Client) ListLetters(ctx context.Context, r wire.ListLetters) (wire.Letters, error) {
	return call[wire.Letters](ctx, c, "deadletters.list", r)
}

// CountLetters counts dead letters.
func (c *Client) CountLetters(ctx context.Context, r wire.CountLetters) (wire.LetterCount, error) {
	return call[wire.LetterCount](ctx, c, "deadletters.count", r)
}

// RequeueLetters makes dead letters live again, each with its old number. The op is minted when empty; a caller that may call again names it.
func (c *Client) RequeueLetters(ctx context.Context, r wire.RequeueLetters) (wire.LetterResults, error) {
	return call[wire.LetterResults](ctx, c, "deadletters.requeue", r)
}

// PurgeLetters drops the payloads and keys of dead letters for ever; identities stay. The op is minted when empty.
func (c *Client) PurgeLetters(ctx context.Context, r wire.PurgeLetters) (wire.LetterResults, error) {
	return call[wire.LetterResults](ctx, c, "deadletters.purge", r)
}

// Info says what the plane is.
func (c *Client) Info(ctx context.Context) (wire.Info, error) {
	return call[wire.Info](ctx, c, "system.info", struct{}{})
}

// Check says how the plane is: ok, degraded or failing, with reasons.
func (c *Client) Check(ctx context.Context) (wire.Check, error) {
	return call[wire.Check](ctx, c, "system.check", struct{}{})
}

// withTokens is a request with the tokens that make its repetition safe. They are minted here, before the first try.
func withTokens(verb string, request any) any {
	switch r := request.(type) {
	case wire.StartRun:
		r.WorkflowID, r.RunID = minted(r.WorkflowID), minted(r.RunID)
		return r
	case wire.AcquireLease:
		if verb == "runs.acquire" {
			r.AcquireID = minted(r.AcquireID)
		}
		return r
	case wire.Append:
		r.BatchID = minted(r.BatchID)
		return r
	case wire.ReopenRun:
		r.BatchID = minted(r.BatchID)
		return r
	case wire.ArmTimer:
		r.BatchID = minted(r.BatchID)
		return r
	case wire.CancelTimer:
		r.BatchID = minted(r.BatchID)
		return r
	case wire.UnparkPush:
		r.Op = minted(r.Op)
		return r
	case wire.RotatePush:
		r.Op = minted(r.Op)
		return r
	case wire.RequeueLetters:
		r.Op = minted(r.Op)
		return r
	case wire.PurgeLetters:
		r.Op = minted(r.Op)
		return r
	case wire.Conclude:
		r.BatchID = minted(r.BatchID)
		if r.Outcome == rendezvous.StatusContinued {
			next := wire.StartRun{}
			if r.Next != nil {
				next = *r.Next
			}
			next.RunID = minted(next.RunID)
			r.Next = &next
		}
		return r
	}
	return request
}

func recordsOf(list []wire.Record) ([]rendezvous.Record, error) {
	out := make([]rendezvous.Record, len(list))
	for i, w := range list {
		r, err := w.Domain()
		if w.Omitted {
			return nil, err
		}
		if err != nil {
			return nil, rendezvous.Errorf(rendezvous.CodeCorrupt, "record %d of the reply does not decode", w.Seq).With("seq", w.Seq).Because(err)
		}
		out[i] = r
	}
	return out, nil
}

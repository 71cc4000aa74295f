package api

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

func registerWait(ctx context.Context, c call, req wire.RegisterWait) (wire.Registered, error) {
	deadline, after, err := dueOf("deadline", req.Deadline, "deadline_after_ms", req.DeadlineAfterMS)
	if err != nil {
		return wire.Registered{}, err
	}
	got, err := c.waits.Do(ctx, store.RegisterItem{Tenant: c.tenant.Name(), Registration: store.Registration{
		Wait: rendezvous.Wait{
			WaitID: rendezvous.WaitID{RunID: req.RunID, Effect: req.Effect}, Attempt: req.Attempt, Type: req.Type, Keys: req.Keys, From: req.From,
			Deadline: deadline, DeadlineAfter: after, Trace: traceOf(ctx),
		},
		Epoch: req.Epoch,
	}})
	if err == nil {
		err = got.Err
	}
	if err != nil {
		return wire.Registered{}, err
	}
	out := wire.Registered{Seq: got.Seq}
	switch got.Outcome {
	case store.RegisterAnswered:
		r := wire.RecordOf(*got.Answer)
		out.Answered = &r
		c.traceAnswer(ctx, req, got)
	case store.RegisterTimedOut:
		out.TimedOut = true
	case store.RegisterWithdrawn:
		out.Withdrawn = true
	default:
		out.Waiting, out.Parked, out.Number = true, got.Parked, got.Number
	}
	return out, nil
}

func listWaits(ctx context.Context, c call, req wire.ListWaits) (wire.WaitList, error) {
	f := store.WaitFilter{RunID: req.RunID, Type: req.Filter.Type, Key: req.Filter.Key, State: req.Filter.State}
	page := store.WaitPage{}
	var err error
	if req.Parked {
		var parked store.ParkedPage
		parked, err = c.tenant.ParkedWaits(ctx, f, req.Limit, req.Cursor)
		page = parked.WaitPage
		c.try(ctx, parked.Notices)
	} else {
		page, err = c.tenant.Waiting(ctx, f, req.Limit, req.Cursor)
	}
	out := wire.WaitList{Waits: make([]wire.Wait, len(page.Waits)), NextCursor: page.NextCursor}
	for i, w := range page.Waits {
		out.Waits[i] = wire.Wait{
			RunID: w.RunID, WorkflowID: w.WorkflowID, Effect: w.Effect, Attempt: w.Attempt, Type: w.Type, Keys: orEmpty(w.Keys), From: w.From,
			Deadline: wire.At(w.Deadline), State: w.State, Attempts: w.Attempts, NextAttemptAt: wire.At(w.NextAttemptAt), LastError: w.LastError, Event: w.Held, Number: w.Number,
			RegisteredAt: wire.At(w.RegisteredAt), Corrupt: w.Corrupt != nil,
		}
	}
	return out, err
}

func withdrawWait(ctx context.Context, c call, req wire.WithdrawWait) (wire.Withdrawn, error) {
	got, err := c.tenant.Unsubscribe(ctx, rendezvous.WaitID{RunID: req.RunID, Effect: req.Effect}, req.Epoch, req.Reason, time.Time{})
	if err != nil {
		return wire.Withdrawn{}, err
	}
	c.try(ctx, got.Notices)
	return wire.Withdrawn{Outcome: string(got.Outcome), Seq: got.Seq, Released: got.Released, Dead: got.Dead}, nil
}

// retryWait makes a quarantined wait due again (EV-62).
func retryWait(ctx context.Context, c call, req wire.RetryWait) (wire.Retried, error) {
	again, err := c.tenant.RetryWait(ctx, rendezvous.WaitID{RunID: req.RunID, Effect: req.Effect}, c.caller.operator(req.Operator))
	if err != nil || !again {
		return wire.Retried{Outcome: wire.NotQuarantined}, err
	}
	return wire.Retried{Outcome: wire.RetriedNow}, nil
}

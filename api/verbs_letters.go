package api

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

func listLetters(ctx context.Context, c call, req wire.ListLetters) (wire.Letters, error) {
	page, err := c.tenant.DeadLetters(ctx, deadFilter(req.Filter), req.Limit, req.Cursor, req.IncludeData)
	out := wire.Letters{Letters: make([]wire.Letter, len(page.Letters)), NextCursor: page.NextCursor}
	for i, l := range page.Letters {
		out.Letters[i] = letterOf(l)
	}
	return out, err
}

func letterOf(l store.DeadLetter) wire.Letter {
	w := wire.Letter{
		Source: l.Source, ID: l.ID, Number: l.Number, Type: l.Type, Keys: orEmpty(l.Keys), Target: l.Target, Reason: l.Reason, Detail: l.Detail,
		ReceivedAt: wire.At(l.ReceivedAt), DeadAt: wire.At(l.DeadAt), ExpiresAt: wire.At(l.ExpiresAt), Requeues: l.Requeues, Erased: l.Erased,
		Corrupt: l.Corrupt != nil,
	}
	if l.HasPayload && l.Payload != nil {
		w.Payload = wire.PayloadOf(l.Payload, l.ContentType)
	}
	return w
}

func countLetters(ctx context.Context, c call, req wire.CountLetters) (wire.LetterCount, error) {
	n, err := c.tenant.CountDeadLetters(ctx, deadFilter(req.Filter), req.Cap, req.ByReason)
	return wire.LetterCount{Count: n.Count, Capped: n.Capped, ByReason: n.ByReason}, err
}

// requeueLetters makes dead letters live again, and offers them after the commit.
func requeueLetters(ctx context.Context, c call, req wire.RequeueLetters) (wire.LetterResults, error) {
	done, err := c.tenant.RequeueDeadLetters(ctx, selection(req.Selection), store.Requeue{To: req.To, ExpiresAt: req.ExpiresAt.Time},
		*c.caller.operator(req.Operator), req.Op, time.Time{})
	return c.lettersDone(ctx, done, err)
}

// purgeLetters drops payloads and keys for ever.
func purgeLetters(ctx context.Context, c call, req wire.PurgeLetters) (wire.LetterResults, error) {
	done, err := c.tenant.PurgeDeadLetters(ctx, selection(req.Selection), *c.caller.operator(req.Operator), req.Op, time.Time{})
	return c.lettersDone(ctx, done, err)
}

func (c call) lettersDone(ctx context.Context, done store.Requeuing, err error) (wire.LetterResults, error) {
	if err != nil {
		return wire.LetterResults{}, err
	}
	c.try(ctx, done.Notices)
	out := wire.LetterResults{Results: make([]wire.LetterResult, len(done.Items)), More: done.More, NextCursor: done.NextCursor}
	for i, r := range done.Items {
		out.Results[i] = c.letterResult(ctx, r)
	}
	return out, nil
}

// letterResult is one letter's fate on the wire. One that failed alone says why and fails no other.
func (c call) letterResult(ctx context.Context, r store.Requeued) wire.LetterResult {
	w := wire.LetterResult{
		Source: r.Source, ID: r.ID, Outcome: string(r.Outcome), Number: r.Number, State: r.State, WorkflowID: r.WorkflowID, RunID: r.RunID, Effect: r.Effect,
		Seq: r.Seq, CurrentRun: r.CurrentRun,
	}
	if r.Err != nil {
		w.Outcome, w.Error = wire.LetterFailed, wire.ErrorOf(c.closed(ctx, "deadletters", r.Err))
	}
	return w
}

func selection(s wire.Selection) store.Selection {
	out := store.Selection{Events: s.Events, Bound: s.Bound, Cursor: s.Cursor}
	if s.Filter != nil {
		f := deadFilter(*s.Filter)
		out.Filter = &f
	}
	return out
}

func deadFilter(f wire.LetterFilter) store.DeadFilter {
	return store.DeadFilter{
		Reason: f.Reason, Type: f.Type, Source: f.Source, Key: f.Key, ReceivedAfter: f.ReceivedAfter.Time, ReceivedBefore: f.ReceivedBefore.Time,
		DeadAfter: f.DeadAfter.Time, DeadBefore: f.DeadBefore.Time,
	}
}

// withoutPayloads leaves the payloads of a page of letters out: events.get has each.
func withoutPayloads(r wire.Letters) (wire.Letters, bool) {
	less, any := wire.Letters{NextCursor: r.NextCursor, Letters: make([]wire.Letter, len(r.Letters))}, false
	for i, l := range r.Letters {
		if l.Payload != nil {
			l.Payload, l.Omitted, any = nil, true, true
		}
		less.Letters[i] = l
	}
	return less, any
}

// fewerResults leaves the later half of results out and says how many are missing.
func fewerResults(r wire.LetterResults) (wire.LetterResults, bool) {
	half, ok := firstHalf(r.Results)
	r.Omitted += len(r.Results) - len(half)
	r.Results = half
	return r, ok
}

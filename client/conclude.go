package client

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Complete ends the run with a result. The handler then returns: return run.Complete(ctx, …). ErrStale says that there is news the handler has not seen;
// it returns that, and decides again.
func (r *Run) Complete(ctx context.Context, result Payload) error {
	if err := result.check(); err != nil {
		return err
	}
	return r.conclude(ctx, wire.Conclude{Outcome: rendezvous.StatusCompleted, Result: result.Wire()})
}

// Fail ends the run as failed, for good: code is a word for programs, reason is for people (at most 512 bytes, no payloads).
func (r *Run) Fail(ctx context.Context, code, reason string) error {
	return r.conclude(ctx, wire.Conclude{Outcome: rendezvous.StatusFailed, Code: code, Reason: reason})
}

// Cancel ends the run as cancelled, in the name of whoever asked for it. A handler that returns ErrCancelled need not call it.
func (r *Run) Cancel(ctx context.Context) error {
	c := wire.Conclude{Outcome: rendezvous.StatusCancelled}
	if q := r.CancelRequested(); q != nil {
		c.Reason, c.Operator = q.Reason, q.Operator
	}
	return r.conclude(ctx, c)
}

// ContinueOption says more of the run that a run continues as.
type ContinueOption func(*wire.StartRun)

// NextWithin gives the next run a deadline of its own, that long from its start.
func NextWithin(d time.Duration) ContinueOption {
	return func(s *wire.StartRun) { s.DeadlineAfterMS = new(wire.AfterMS(d)) }
}

// NextUntil is [NextWithin] with an instant.
func NextUntil(at time.Time) ContinueOption {
	return func(s *wire.StartRun) { s.Deadline = wire.DueAt(at) }
}

// ContinueAsNew ends the run and begins the workflow's next one with that input and an empty history; the handler returns, and is called for the next
// run. Waits, timers and the deadline of this one end; effects must be done.
func (r *Run) ContinueAsNew(ctx context.Context, input Payload, opts ...ContinueOption) error {
	if err := input.check(); err != nil {
		return err
	}
	next := wire.StartRun{RunID: NewID(), Input: input.Wire()}
	for _, o := range opts {
		o(&next)
	}
	return r.conclude(ctx, wire.Conclude{Outcome: rendezvous.StatusContinued, Next: &next})
}

func (r *Run) conclude(ctx context.Context, c wire.Conclude) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.usable(); err != nil {
		return err
	}
	r.concludes(true)
	defer r.concludes(false)
	c.RunID, c.Epoch, c.ExpectedSeq = r.id, r.lease.epoch, r.seen()
	got, err := r.client.Conclude(ctx, c)
	if isHeadConflict(err) {
		if err := r.sync(ctx); err != nil {
			return err
		}
		return ErrStale // an end is a decision: it is made anew, knowing all
	}
	if err != nil {
		return r.refused(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished, r.next, r.nextSeq = true, got.NextRun, got.Seq
	return nil
}

// ended says whether the handler has ended the run, and which run it goes on as, from which seq on.
func (r *Run) ended() (finished bool, next string, first int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished, r.next, r.nextSeq
}

// concludes marks that a conclusion is under way: the lease's renewal may then learn of the seal before the conclusion's own answer is here.
func (r *Run) concludes(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.concluding = yes
}

func (r *Run) ending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.concluding || r.finished
}

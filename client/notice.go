package client

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

// notice takes the run's lease and leaves the driving to a goroutine: the notice is acknowledged as soon as the lease is held, since the store
// remembers from then on. Without a free slot it goes back to the queue.
func (e *Executor) notice(ctx context.Context, n messaging.ResumeNotice) messaging.Outcome {
	if !e.takeSlot(ctx) {
		return messaging.Release()
	}
	ctx, span := e.resume(n)
	sent := e.client.opts.Clock.Now()
	got, err := e.acquire(ctx, n.RunID)
	if err != nil {
		<-e.slots
		defer span.End()
		span.SetAttributes(attribute.String("rendezvous.outcome", "dropped"))
		return e.notAcquired(n, span, err)
	}
	d := &drive{e: e, notice: n, slot: true}
	d.lease = &lease{
		client: e.client, workflow: got.WorkflowID, owner: e.owner, epoch: got.Epoch, ttl: e.opts.Lease, until: sent.Add(e.opts.Lease),
	}
	e.drives.Go(func() {
		defer span.End()
		d.run(ctx, got)
		span.SetAttributes(attribute.String("rendezvous.outcome", d.result.Outcome))
		if d.result.Err != nil {
			span.SetStatus(codes.Error, d.result.Outcome)
		}
	})
	return messaging.Ack()
}

// takeSlot waits for a free slot, for no longer than the notice may be kept.
func (e *Executor) takeSlot(ctx context.Context) bool {
	if e.soft.Err() != nil {
		return false
	}
	select {
	case e.slots <- struct{}{}:
		return true
	default:
	}
	t := e.client.opts.Clock.NewTimer(e.opts.AckWait / 3)
	defer t.Stop()
	select {
	case e.slots <- struct{}{}:
		return true
	case <-e.soft.Done():
	case <-ctx.Done():
	case <-t.C():
	}
	return false
}

// resume starts the span of a drive: it goes on with the trace that the notice carries, and is linked to it.
func (e *Executor) resume(n messaging.ResumeNotice) (context.Context, trace.Span) {
	ctx := messaging.WithTrace(e.hard, n.Trace)
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", "resume"), attribute.String("rendezvous.tenant", n.Tenant),
		attribute.String("rendezvous.queue", n.Queue), attribute.String("rendezvous.workflow_id", n.WorkflowID),
		attribute.String("rendezvous.run_id", n.RunID), attribute.String("rendezvous.cause", string(n.Cause)),
	)}
	if from := trace.SpanContextFromContext(ctx); from.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: from}))
	}
	return e.client.opts.Tracer.Start(ctx, "resume", opts...)
}

// acquire takes the lease. An acquisition whose answer is lost leaves its id to the run's next notice, which then gets the same epoch (RN-20); no two
// notices ever use one id at once, or both would drive.
func (e *Executor) acquire(ctx context.Context, run string) (wire.Lease, error) {
	e.mu.Lock()
	id := minted(e.asked[run])
	delete(e.asked, run)
	e.mu.Unlock()
	ctx, cancel := clock.WithTimeout(ctx, e.client.opts.Clock, e.opts.AckWait/2)
	defer cancel()
	got, err := e.client.AcquireLease(ctx, wire.AcquireLease{RunID: run, Owner: e.owner, TTLMS: new(e.opts.Lease.Milliseconds()), AcquireID: id})
	if errors.Is(err, rendezvous.ErrCommitUnknown) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.asked) < runsKept {
			e.asked[run] = id
		}
	}
	return got, err
}

// notAcquired judges a notice whose run this executor will not drive: somebody else does, it is over, or the plane does not answer.
func (e *Executor) notAcquired(n messaging.ResumeNotice, span trace.Span, err error) messaging.Outcome {
	switch code := rendezvous.CodeOf(err); code {
	case rendezvous.CodeLeaseHeld, rendezvous.CodeSealed, rendezvous.CodeConflict, rendezvous.CodeNotFound:
		e.opts.Log.Debug("notice dropped", "run_id", n.RunID, "cause", n.Cause, "code", code)
		return messaging.Ack()
	case rendezvous.CodeUnavailable, rendezvous.CodeCommitUnknown, rendezvous.CodeRateLimited:
		span.SetStatus(codes.Error, string(code))
		return messaging.Retry(0)
	default:
		span.SetStatus(codes.Error, string(code))
		e.opts.Log.Warn("lease not acquired; the notice comes again", "run_id", n.RunID, "cause", n.Cause, "error", err)
		return messaging.Retry(e.opts.AckWait)
	}
}

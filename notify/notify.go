// Package notify sends what a verb's answer says is to be noticed. Whoever commits sends: doors, workers and passes alike, after the commit and never
// inside it. A notice that cannot be sent fails nothing: the store's passes find its row (messaging.md section 4).
package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
)

// Publisher sends notices and answers when all are acknowledged.
type Publisher interface {
	Publish(ctx context.Context, notices []messaging.Notice) error
	// HintTimers tells the owners of shards that an early instant was armed; nobody acknowledges a hint.
	HintTimers(shards []int) error
}

// Sender turns a verb's notices into messages. Safe for concurrent use.
type Sender struct {
	publisher Publisher
	log       *slog.Logger
	tracer    trace.Tracer
	group     *group.Group[[]messaging.Notice, error]
	sent      metric.Int64Counter
	failed    metric.Int64Counter
}

// Bounds of one publish. Two are under way at once: while the broker syncs the one, the next gathers.
const (
	maxSends   = 256
	maxNotices = 1000
	publishes  = 2
)

// New makes a sender; Stop ends it. Concurrent senders share publishes, as a broker that syncs has a price per publish. tracer and meter may be no-ops.
func New(p Publisher, log *slog.Logger, tracer trace.Tracer, meter metric.Meter) (*Sender, error) {
	sent, err := meter.Int64Counter("rendezvous.notices.sent", metric.WithDescription("Notices acknowledged by JetStream."), metric.WithUnit("{notice}"))
	if err != nil {
		return nil, err
	}
	failed, err := meter.Int64Counter("rendezvous.notices.failed",
		metric.WithDescription("Notices not known to be stored; the store's passes find their rows."), metric.WithUnit("{notice}"))
	if err != nil {
		return nil, err
	}
	sent.Add(context.Background(), 0) // counters begin at 0, or the first increase is invisible to whoever looks at rates
	failed.Add(context.Background(), 0)
	s := &Sender{publisher: p, log: log, tracer: tracer, sent: sent, failed: failed}
	s.group = group.New(group.Config{Items: maxSends, Bytes: maxNotices, Commits: publishes, Log: log}, func(n []messaging.Notice) int { return len(n) }, s.publish)
	return s, nil
}

// Stop publishes what waits and refuses what comes later. Idempotent.
func (s *Sender) Stop(ctx context.Context) { s.group.Stop(ctx) }

// publish sends several callers' notices at once and answers each caller whether all of its own are stored.
func (s *Sender) publish(ctx context.Context, sends [][]messaging.Notice) ([]error, error) {
	var all []messaging.Notice
	for _, n := range sends {
		all = append(all, n...)
	}
	errs := make([]error, len(sends))
	err := s.publisher.Publish(ctx, all)
	var some *messaging.PublishError
	switch {
	case err == nil:
	case errors.As(err, &some):
		blame(errs, sends, some)
	default:
		return nil, err
	}
	return errs, nil
}

// blame gives the error to the senders of the notices that failed.
func blame(errs []error, sends [][]messaging.Notice, err *messaging.PublishError) {
	owner, end := 0, 0
	failed := slices.Sorted(slices.Values(err.Failed))
	for i, n := range sends {
		end += len(n)
		for owner < len(failed) && failed[owner] < end {
			errs[i] = err
			owner++
		}
	}
}

// Send publishes all of n and answers when JetStream has acknowledged each. The error says that some may be lost; callers whose own message is still
// unacknowledged leave it so, all others go on.
func (s *Sender) Send(ctx context.Context, n store.Notices) error {
	if n.Empty() {
		return nil
	}
	s.hint(n.Timers)
	notices, spans := s.messages(ctx, n)
	if len(notices) == 0 {
		return nil
	}
	own, err := s.group.Do(ctx, notices)
	if err == nil {
		err = own
	}
	for _, span := range spans {
		span.End()
	}
	if err != nil {
		s.failed.Add(ctx, int64(len(notices)))
		return err
	}
	s.sent.Add(ctx, int64(len(notices)))
	return nil
}

// hint tells of early instants. One that is lost costs the timer-worker's next probe, so its failure is nobody's.
func (s *Sender) hint(timers []store.TimerRef) {
	if len(timers) == 0 {
		return
	}
	shards := make([]int, len(timers))
	for i, t := range timers {
		shards[i] = t.Shard
	}
	slices.Sort(shards)
	if err := s.publisher.HintTimers(slices.Compact(shards)); err != nil {
		s.log.Debug("hints of timers not sent; a probe finds them", "shards", len(shards), "error", err)
	}
}

// Try is Send for callers that have nothing to leave undone: a failure is logged and counted.
func (s *Sender) Try(ctx context.Context, n store.Notices) {
	if err := s.Send(ctx, n); err != nil {
		s.log.WarnContext(ctx, "notices not acknowledged; a pass finds their rows", "events", len(n.Events), "waits", len(n.Waits), "resumes", len(n.Resume),
			"pushes", len(n.Push), "error", err)
	}
}

func (s *Sender) messages(ctx context.Context, n store.Notices) ([]messaging.Notice, []trace.Span) {
	out := make([]messaging.Notice, 0, len(n.Events)+len(n.Waits)+len(n.Resume)+len(n.Push))
	for _, e := range n.Events {
		out = append(out, messaging.MatchNotice{
			Tenant: e.Tenant, Source: e.Source, ID: e.ID, Key: firstKey(e.Keys), Trace: e.Trace, Attempt: rand.Uint64(),
		})
	}
	for _, w := range n.Waits {
		out = append(out, messaging.MatchNotice{
			Tenant: w.Tenant, Run: w.RunID, Effect: w.Effect, Key: firstKey(w.Keys), Trace: w.Trace, Attempt: rand.Uint64(),
		})
	}
	var spans []trace.Span
	for _, r := range n.Resume {
		m := messaging.ResumeNotice{
			Tenant: r.Tenant, Queue: r.Queue, WorkflowID: r.WorkflowID, RunID: r.RunID, Seq: uint64(r.Seq), Cause: r.Cause, Attempt: rand.Uint64(),
		}
		if span := s.resume(ctx, r); span != nil {
			m.Trace = messaging.ContextTrace(trace.ContextWithSpan(ctx, span))
			spans = append(spans, span)
		}
		out = append(out, m)
	}
	for _, p := range n.Push {
		out = append(out, messaging.PushNotice{Tenant: p.Tenant, WorkflowID: p.WorkflowID, RunID: p.RunID, Head: p.Head, Attempt: rand.Uint64()})
	}
	return out, spans
}

func firstKey(keys []rendezvous.Key) rendezvous.Key {
	if len(keys) == 0 {
		return rendezvous.Key{}
	}
	return keys[0]
}

// resume starts the span of a resume notice in the first side's trace, linked to both sides (design section 8); none where nobody traces.
func (s *Sender) resume(ctx context.Context, r store.ResumeRef) trace.Span {
	var links []trace.Link
	for _, l := range r.Links {
		if c := spanOf(l); c.IsValid() {
			links = append(links, trace.Link{SpanContext: c})
		}
	}
	if len(links) == 0 {
		return nil
	}
	parent := trace.ContextWithRemoteSpanContext(ctx, links[0].SpanContext)
	_, span := s.tracer.Start(parent, "send resume", trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(links...), trace.WithAttributes(
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "send"), attribute.String("messaging.operation.name", "send"),
		attribute.String("messaging.destination.name", "resume"), attribute.String("rendezvous.tenant", r.Tenant),
		attribute.String("rendezvous.queue", r.Queue), attribute.String("rendezvous.workflow_id", r.WorkflowID),
		attribute.String("rendezvous.run_id", r.RunID), attribute.Int64("rendezvous.seq", r.Seq), attribute.String("rendezvous.cause", string(r.Cause)),
	))
	return span
}

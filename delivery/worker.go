package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/notify"
	"github.com/rendezvous-events/rendezvous/store"
)

// Store is what the worker needs of the store.
type Store interface {
	store.Matcher
	store.Redeliverer
}

// Stream is what the worker needs of the messaging.
type Stream interface {
	ConsumeMatch(opts messaging.ConsumeOptions, h func(ctx context.Context, batch []messaging.MatchNotice) []messaging.Outcome) (*messaging.Consumption, error)
}

// Sender sends notices after a commit.
type Sender interface {
	Send(ctx context.Context, n store.Notices) error
	Try(ctx context.Context, n store.Notices)
}

// Deps is what a worker is given.
type Deps struct {
	Sender Sender
	Clock  clock.Clock
	Log    *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
}

// Worker matches what MATCH names. Make it with [New].
type Worker struct {
	store   Store
	stream  Stream
	deps    Deps
	metrics *metrics
	retries *retries
	pull    *messaging.Consumption
}

// New makes a worker; Start begins to pull.
func New(s Store, stream Stream, d Deps) (*Worker, error) {
	m, err := newMetrics(d.Meter)
	if err != nil {
		return nil, err
	}
	w := &Worker{store: s, stream: stream, deps: d, metrics: m}
	w.retries = newRetries(d.Clock, w.guarded)
	return w, nil
}

// Start begins to pull and returns. gap is called when notices may have been lost; see [messaging.ConsumeOptions].
func (w *Worker) Start(gap func()) error {
	pull, err := w.stream.ConsumeMatch(messaging.ConsumeOptions{Batch: messaging.Batch{Concurrency: 3}, Gap: gap}, w.handle)
	if err != nil {
		return err
	}
	w.pull = pull
	w.retries.start() // what was parked meanwhile waits in its turns
	return nil
}

// Stop finishes the batches under way and forgets the retries: their waits are parked in the store. Idempotent.
func (w *Worker) Stop(ctx context.Context) error {
	var err error
	if w.pull != nil {
		err = w.pull.Stop(ctx)
	}
	w.retries.stop()
	return err
}

// handle works one batch of notices.
func (w *Worker) handle(ctx context.Context, batch []messaging.MatchNotice) []messaging.Outcome {
	items, of := collapse(batch)
	start := w.deps.Clock.Now()
	got, err := w.store.OfferBatch(ctx, items, time.Time{})
	w.metrics.batch(ctx, len(items), w.deps.Clock.Now().Sub(start), err)
	if err != nil {
		w.deps.Log.WarnContext(ctx, "offer failed as a whole; its notices come again", "items", len(items), "code", rendezvous.AsError(err).Code, "error", err)
		return every(len(batch), messaging.Retry(0))
	}
	w.observe(ctx, got)
	if err := w.deps.Sender.Send(ctx, w.followUps(got)); err != nil {
		return every(len(batch), messaging.Retry(0)) // acknowledged only after what follows from it
	}
	out := make([]messaging.Outcome, len(batch))
	for i := range batch {
		out[i] = messaging.Ack()
		if o := got.Items[of[i]]; o.Outcome == store.OfferFailed {
			out[i] = messaging.Retry(time.Second)
		}
	}
	return out
}

// followUps are the notices of a batch: what the store names, and what is to be looked at later once more.
func (w *Worker) followUps(got store.Offered) store.Notices {
	n := got.Notices
	for _, o := range got.Items {
		if o.Outcome != store.OfferLater {
			continue
		}
		if o.Event.ID != "" {
			n.Events = append(n.Events, store.EventRef{Tenant: o.Tenant, EventID: o.Event, Trace: o.EventTrace})
		} else {
			n.Waits = append(n.Waits, store.WaitRef{Tenant: o.Tenant, WaitID: o.Wait, Trace: o.WaitTrace})
		}
	}
	return n
}

// observe counts, traces and logs what an offer came to, and takes parked pairs into the retries.
func (w *Worker) observe(ctx context.Context, got store.Offered) {
	for _, list := range [...][]store.Offer{got.Items, got.Also} {
		for _, o := range list {
			w.metrics.offer(ctx, o)
			notify.TraceOffer(ctx, w.deps.Tracer, o)
			switch o.Outcome {
			case store.OfferParked:
				if !o.Quarantined {
					w.retries.add(waitKey{o.Tenant, o.Wait})
				}
			case store.OfferFailed:
				w.deps.Log.WarnContext(ctx, "offer failed", "tenant", o.Tenant, "source", o.Event.Source, "id", o.Event.ID, "run_id", o.Wait.RunID,
					"effect", o.Wait.Effect, "error", o.Err)
			case store.OfferDelivered:
				w.deps.Log.DebugContext(ctx, "delivered", "tenant", o.Tenant, "source", o.Event.Source, "id", o.Event.ID, "workflow_id", o.WorkflowID,
					"run_id", o.Wait.RunID, "effect", o.Wait.Effect, "seq", o.Seq)
			}
		}
	}
}

// guarded is deliverParked for the loop of the retries: a panic is that batch's failure alone, and the passes own its waits.
func (w *Worker) guarded(ctx context.Context, waits []waitKey) (still []waitKey, err error) {
	defer func() {
		if p := recover(); p != nil {
			w.deps.Log.ErrorContext(ctx, "retry panicked; the passes own its waits", "waits", len(waits), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			still, err = nil, rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the retry broke off inside")
		}
	}()
	return w.deliverParked(ctx, waits)
}

// deliverParked tries parked waits again and answers those that are still parked.
func (w *Worker) deliverParked(ctx context.Context, waits []waitKey) (still []waitKey, err error) {
	refs := make([]store.WaitRef, len(waits))
	for i, k := range waits {
		refs[i] = store.WaitRef{Tenant: k.tenant, WaitID: k.wait}
	}
	got, err := w.store.DeliverParked(ctx, refs, time.Time{})
	if err != nil {
		return nil, err
	}
	for i, o := range got.Items {
		w.metrics.retry(ctx, 1, o.Outcome)
		notify.TraceOffer(ctx, w.deps.Tracer, o)
		if o.Outcome == store.OfferParked && !o.Quarantined {
			still = append(still, waits[i])
		}
	}
	w.deps.Sender.Try(ctx, got.Notices)
	return still, nil
}

// collapse drops repeats: items in first-seen order, and for each notice the item it became.
func collapse(batch []messaging.MatchNotice) (items []store.OfferItem, of []int) {
	type key struct {
		tenant, a, b string
		event        bool
	}
	seen := make(map[key]int, len(batch))
	items, of = make([]store.OfferItem, 0, len(batch)), make([]int, len(batch))
	for i, n := range batch {
		k := key{n.Tenant, n.Source, n.ID, true}
		if !n.ForEvent() {
			k = key{n.Tenant, n.Run, n.Effect, false}
		}
		at, known := seen[k]
		if !known {
			at = len(items)
			seen[k] = at
			item := store.OfferItem{Tenant: n.Tenant}
			if k.event {
				item.Event = &rendezvous.EventID{Source: n.Source, ID: n.ID}
			} else {
				item.Wait = &rendezvous.WaitID{RunID: n.Run, Effect: n.Effect}
			}
			items = append(items, item)
		}
		of[i] = at
	}
	return items, of
}

func every(n int, o messaging.Outcome) []messaging.Outcome {
	out := make([]messaging.Outcome, n)
	for i := range out {
		out[i] = o
	}
	return out
}

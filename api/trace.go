package api

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/notify"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// traceOf is the caller's trace context as it is stored with a wait.
func traceOf(ctx context.Context) rendezvous.Trace { return messaging.ContextTrace(ctx) }

// traceAnswer adds match and answer to the trace of an event that was there before its wait.
func (c call) traceAnswer(ctx context.Context, req wire.RegisterWait, got store.Registered) {
	if got.EventTrace.Parent == "" {
		return
	}
	var d rendezvous.WaitAnsweredData
	if err := rendezvous.DecodeData(*got.Answer, &d); err != nil {
		return // the reply shows the record as it is
	}
	notify.TraceOffer(ctx, c.cfg.Tracer, store.Offer{
		Outcome: store.OfferDelivered, Tenant: c.tenant.Name(), Event: rendezvous.EventID{Source: d.EventSource, ID: d.EventID},
		Wait: rendezvous.WaitID{RunID: req.RunID, Effect: req.Effect}, WorkflowID: got.Workflow, Seq: got.Seq, EventTrace: got.EventTrace, WaitTrace: traceOf(ctx),
	})
}

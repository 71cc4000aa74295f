package api

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// traceOf is the caller's trace context as it is stored with a wait.
func traceOf(ctx context.Context) rendezvous.Trace { return messaging.ContextTrace(ctx) }

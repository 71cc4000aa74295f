package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// retireRun is step 3 of a conclusion.
func (u *unit) retireRun(ctx context.Context, f *flow, run *backend.Run) (store.Retired, error) {
	return store.Retired{}, unavailable("not yet")
}

// withdraw records WaitWithdrawn.
func (u *unit) withdraw(ctx context.Context, f *flow, w *backend.Wait, reason string) (*backend.Record, *backend.Event, error) {
	return nil, nil, unavailable("not yet")
}

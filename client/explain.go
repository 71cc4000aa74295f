package client

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// ExplainEvent says why an event stands as it does: a verdict, its facts, and, where nothing meets it, what nearly does. One that the plane does not know is
// the verdict unknown, no error.
func (c *Client) ExplainEvent(ctx context.Context, id rendezvous.EventID) (wire.Explanation, error) {
	return call[wire.Explanation](ctx, c, "events.explain", wire.ExplainEvent{Source: id.Source, ID: id.ID})
}

// ExplainWait says why a wait stands as it does. One that never was registered is the verdict unregistered, no error.
func (c *Client) ExplainWait(ctx context.Context, id rendezvous.WaitID) (wire.Explanation, error) {
	return call[wire.Explanation](ctx, c, "waits.explain", wire.ExplainWait{RunID: id.RunID, Effect: id.Effect})
}

// ExplainPair says how the event stands, and all that stands between it and the wait.
func (c *Client) ExplainPair(ctx context.Context, event rendezvous.EventID, wait rendezvous.WaitID) (wire.Explanation, error) {
	return call[wire.Explanation](ctx, c, "events.explain", wire.ExplainEvent{Source: event.Source, ID: event.ID, RunID: wait.RunID, Effect: wait.Effect})
}

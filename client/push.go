package client

import (
	"context"

	"github.com/rendezvous-events/rendezvous/wire"
)

// PutPush makes a registration, or replaces the one of its id; with fields it changes those alone. Its secrets are in no reply. Repeating it is harmless.
func (c *Client) PutPush(ctx context.Context, r wire.PutPush) (wire.PushPut, error) {
	return call[wire.PushPut](ctx, c, "push.put", r)
}

// GetPush reads a registration; not_found without one.
func (c *Client) GetPush(ctx context.Context, r wire.PushRef) (wire.Push, error) {
	return call[wire.Push](ctx, c, "push.get", r)
}

// ListPush reads all of a run's registrations.
func (c *Client) ListPush(ctx context.Context, run string) (wire.Pushes, error) {
	return call[wire.Pushes](ctx, c, "push.list", wire.ListPush{RunID: run})
}

// DeletePush ends a registration, which may be gone already. Nothing is in flight for it after the reply's quiet_at.
func (c *Client) DeletePush(ctx context.Context, r wire.PushRef) (wire.PushDeleted, error) {
	return call[wire.PushDeleted](ctx, c, "push.delete", r)
}

// ParkPush stops a registration until somebody unparks it. Its cursor stays.
func (c *Client) ParkPush(ctx context.Context, r wire.ParkPush) (wire.PushParked, error) {
	return call[wire.PushParked](ctx, c, "push.park", r)
}

// ParkedPushes reads a page of the tenant's parked registrations.
func (c *Client) ParkedPushes(ctx context.Context, r wire.ParkedPushes) (wire.Pushes, error) {
	return call[wire.Pushes](ctx, c, "push.parked", r)
}

// UnparkPush gives a parked registration another series of attempts, from where it stopped: false for one that is not parked. The op is minted when empty.
func (c *Client) UnparkPush(ctx context.Context, r wire.UnparkPush) (wire.PushUnparked, error) {
	return call[wire.PushUnparked](ctx, c, "push.unpark", r)
}

// UnparkPushes does so for many, the longest parked first. Called again it unparks the next ones.
func (c *Client) UnparkPushes(ctx context.Context, r wire.UnparkPushes) (wire.PushesUnparked, error) {
	return call[wire.PushesUnparked](ctx, c, "push.unpark_many", r)
}

// SkipPush takes a parked registration past the record at its cursor, which its receiver then never gets from it.
func (c *Client) SkipPush(ctx context.Context, r wire.SkipPush) (wire.PushSkipped, error) {
	return call[wire.PushSkipped](ctx, c, "push.skip", r)
}

// RotatePush puts a given or generated signing key before the others, which end after the grace. A generated one is in the reply, and shown nowhere else. The op
// is minted when empty; a caller that may call again names it.
func (c *Client) RotatePush(ctx context.Context, r wire.RotatePush) (wire.PushRotated, error) {
	return call[wire.PushRotated](ctx, c, "push.rotate", r)
}

// PushAttempts reads a page of a registration's attempt log, newest first.
func (c *Client) PushAttempts(ctx context.Context, r wire.PushAttempts) (wire.PushAttemptList, error) {
	return call[wire.PushAttemptList](ctx, c, "push.attempts", r)
}

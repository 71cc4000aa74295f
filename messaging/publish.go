package messaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

const (
	// publishRounds is how often one Publish sends what was not acknowledged: first, after a missing stream or a reconnect, once more.
	publishRounds = 3
	pollConnected = 20 * time.Millisecond
	stallLook     = 100 * time.Millisecond
)

// PublishError says which of a Publish are not known to be stored, by their place in the call. The others are. Sending them again is safe.
type PublishError struct {
	Failed []int
	Err    error // the first reason; a *rendezvous.Error of code unavailable, or invalid for a notice that can never be sent
}

func (e *PublishError) Error() string {
	return fmt.Sprintf("%d notices not acknowledged: %v", len(e.Failed), e.Err)
}

func (e *PublishError) Unwrap() error { return e.Err }

// outgoing is one message of a Publish.
type outgoing struct {
	at     int // place in the call
	stream string
	msg    *nats.Msg
}

// Publish sends notices and returns when JetStream has acknowledged every one of them. Call it after the commit, never inside the
// transaction. It fails at once while the broker is away; when the connection breaks meanwhile, or a stream is missing, it sends again what
// was not acknowledged. An error is a [PublishError]: those notices may or may not be stored, and a pass finds their rows anyway. Bounded by
// Config.PublishTimeout and ctx. Safe for concurrent use.
func (c *Conn) Publish(ctx context.Context, notices []Notice) error {
	var failed []int
	var first error
	out := make([]outgoing, 0, len(notices))
	for i, n := range notices {
		stream, m, err := n.message(ctx, c.names)
		if err != nil {
			failed = append(failed, i)
			first = cmp.Or(first, err)
			continue
		}
		out = append(out, outgoing{at: i, stream: stream, msg: m})
	}
	err := c.publish(ctx, out)
	var p *PublishError
	if errors.As(err, &p) {
		failed, first = append(failed, p.Failed...), cmp.Or(first, p.Err)
	}
	if len(failed) == 0 {
		return nil
	}
	return &PublishError{Failed: failed, Err: first}
}

// publish sends out until everything is acknowledged, rounds are used up or time is over.
func (c *Conn) publish(ctx context.Context, out []outgoing) error {
	ctx, cancel := clock.WithTimeout(ctx, c.deps.Clock, c.cfg.PublishTimeout)
	defer cancel()
	if len(out) == 0 {
		return nil
	}
	if !c.pub.IsConnected() {
		return notPublished(out, nats.ErrDisconnected)
	}
	var err error
	for round := range publishRounds {
		if round > 0 && c.recover(ctx, err) != nil {
			break
		}
		if out, err = c.sendEach(ctx, out); err == nil {
			return nil
		}
		if c.pub.IsClosed() || ctx.Err() != nil {
			break
		}
	}
	return notPublished(out, err)
}

func notPublished(out []outgoing, err error) error {
	failed := make([]int, len(out))
	for i, o := range out {
		failed[i] = o.at
	}
	return &PublishError{Failed: failed, Err: rendezvous.Errorf(rendezvous.CodeUnavailable,
		"NATS did not acknowledge; send again, or leave it to the pass that finds the row").Because(err)}
}

// recover prepares another round after err: it makes a missing stream, or waits for the connection.
func (c *Conn) recover(ctx context.Context, err error) error {
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return c.Provision(ctx)
	}
	for !c.pub.IsConnected() {
		if c.pub.IsClosed() {
			return nats.ErrConnectionClosed
		}
		if err := clock.Sleep(ctx, c.deps.Clock, pollConnected); err != nil {
			return err
		}
	}
	return nil
}

// sendEach publishes asynchronously, at most the window at once, and answers what is not acknowledged with the first reason.
func (c *Conn) sendEach(ctx context.Context, out []outgoing) ([]outgoing, error) {
	var left []outgoing
	var first error
	futures := make([]jetstream.PubAckFuture, len(out))
	for i, o := range out {
		f, err := c.sendOne(ctx, o.msg)
		if err != nil {
			first = cmp.Or(first, err)
		}
		futures[i] = f
	}
	for i, f := range futures {
		if f == nil {
			left = append(left, out[i])
			continue
		}
		if err := acknowledged(ctx, f); err != nil {
			left, first = append(left, out[i]), cmp.Or(first, err)
		}
	}
	return left, first
}

// sendOne publishes one message, waiting for room in the window until ctx ends. The library's own wait knows no context, so it is a short one.
func (c *Conn) sendOne(ctx context.Context, m *nats.Msg) (jetstream.PubAckFuture, error) {
	for ctx.Err() == nil {
		f, err := c.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0), jetstream.WithStallWait(stallLook))
		if !errors.Is(err, jetstream.ErrTooManyStalledMsgs) {
			return f, err
		}
	}
	return nil, context.Cause(ctx)
}

func acknowledged(ctx context.Context, f jetstream.PubAckFuture) error {
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

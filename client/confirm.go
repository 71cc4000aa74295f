package client

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

const (
	confirmFirst   = 20 * time.Millisecond // first look at what was published
	confirmMost    = time.Second           // longest pause between looks
	resendAfter    = 3 * time.Second       // unknown for so long: published again
	doorAfter      = 3                     // resendings after which the request door is asked for a verdict
	confirmAtOnce  = 16                    // looks and publishes at once
	confirmPerPass = 4096                  // events published before the first look
)

// PublishConfirmed publishes events and returns when the plane knows every one, publishing again what events.get does not know: the broker's
// acknowledgement alone does not survive the broker (I11 speaks of accepted events). What stays unknown after several resendings is put through the
// request door, whose refusal is the error. An identity that the plane holds with other content counts as known here; the request door tells (conflict).
// A broker or plane that is away is waited for until ctx ends. It needs a token that may call events.get.
func (c *Client) PublishConfirmed(ctx context.Context, events ...rendezvous.Event) error {
	for len(events) > 0 {
		n := min(len(events), confirmPerPass)
		if err := c.confirmPage(ctx, events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

func (c *Client) confirmPage(ctx context.Context, events []rendezvous.Event) error {
	unknown := events
	for round := 0; len(unknown) > 0; round++ {
		var err error
		if round > doorAfter {
			err = c.verdicts(ctx, unknown)
			if err == nil {
				return nil
			}
		} else {
			err = forEach(ctx, unknown, func(ctx context.Context, e rendezvous.Event) error { return c.Publish(ctx, e) })
		}
		if err == nil {
			unknown, err = c.awaitKnown(ctx, unknown)
		}
		if err != nil && (ctx.Err() != nil || !Retryable(err)) {
			return err
		}
	}
	return nil
}

// awaitKnown looks until all are known or the time for another sending has come, and answers those that are not.
func (c *Client) awaitKnown(ctx context.Context, events []rendezvous.Event) ([]rendezvous.Event, error) {
	until := c.opts.Clock.Now().Add(resendAfter)
	for pause := confirmFirst; ; pause = min(2*pause, confirmMost) {
		if err := clock.Sleep(ctx, c.opts.Clock, pause); err != nil {
			return events, interrupted(ctx)
		}
		unknown, err := c.unknownOf(ctx, events)
		if err != nil {
			return events, err
		}
		if events = unknown; len(events) == 0 {
			return nil, nil
		}
		if !c.opts.Clock.Now().Before(until) {
			return events, nil
		}
	}
}

func (c *Client) unknownOf(ctx context.Context, events []rendezvous.Event) ([]rendezvous.Event, error) {
	known := make([]bool, len(events))
	index := make([]int, len(events))
	for i := range index {
		index[i] = i
	}
	err := forEach(ctx, index, func(ctx context.Context, i int) error {
		_, err := c.GetEvent(ctx, events[i].EventID, false)
		if errors.Is(err, rendezvous.ErrNotFound) {
			return nil
		}
		known[i] = err == nil
		return err
	})
	if err != nil {
		return nil, err
	}
	var unknown []rendezvous.Event
	for i, e := range events {
		if !known[i] {
			unknown = append(unknown, e)
		}
	}
	return unknown, nil
}

// verdicts puts events through the request door and answers the first refusal.
func (c *Client) verdicts(ctx context.Context, events []rendezvous.Event) error {
	results, err := c.PutEvents(ctx, events...)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Error != nil {
			return rendezvous.AsError(r.Error.Domain()).With("source", r.Source).With("id", r.ID)
		}
	}
	return nil
}

func forEach[T any](ctx context.Context, items []T, do func(ctx context.Context, item T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(confirmAtOnce)
	for _, item := range items {
		g.Go(func() error { return do(ctx, item) })
	}
	return g.Wait()
}

package client_test

import (
	"context"
	"errors"
	"time"

	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// A reminder after a day, and an end after three: the run sleeps without a lease, and is driven wherever an executor of its queue is up.
func ExampleRun_Sleep() {
	invoice := func(ctx context.Context, run *client.Run) error {
		if err := run.Sleep(ctx, "first day", 24*time.Hour); err != nil {
			return err
		}
		if _, err := run.Do(ctx, "remind", "send a reminder", func(context.Context) (client.Payload, error) {
			return client.Payload{}, nil // a mail service would be handed run.IdempotencyKey("remind")
		}); err != nil {
			return err
		}
		paid, err := run.Await(ctx, "payment", "payment.received", client.OnKey("invoice", run.WorkflowID()), client.Within(48*time.Hour))
		switch {
		case errors.Is(err, client.ErrTimedOut):
			return run.Fail(ctx, "not_paid", "nobody paid within three days")
		case err != nil:
			return err
		}
		return run.Complete(ctx, paid.Payload)
	}
	_ = client.ExecutorOptions{Queue: "invoices", Handler: invoice}
}

// A run with a deadline ends as timed_out when it is over, whoever drives it.
func ExampleClient_StartRun() {
	start := func(ctx context.Context, c *client.Client) error {
		_, err := c.StartRun(ctx, wire.StartRun{WorkflowID: "invoice-17", Type: "invoice", Queue: "invoices", DeadlineAfterMS: new((30 * 24 * time.Hour).Milliseconds())})
		return err
	}
	_ = start
}

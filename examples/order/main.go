// Order is the program to start from: an order waits for its payment, first with the wait there before the event, then the other way round.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// handle does an order's work. It runs from the top whenever there is news; what it has done already it finds in the run's history.
func handle(ctx context.Context, run *client.Run) error {
	var goods string
	if err := run.Input().JSON(&goods); err != nil {
		return client.Failed("bad_input", "the order does not decode")
	}
	fmt.Println("  the handler runs for", run.WorkflowID())
	paid, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", run.WorkflowID()), client.Within(24*time.Hour))
	if err != nil {
		return err // not there yet: the run is suspended, and this function is called again with the payment; or after a day, and the order fails (ErrTimedOut)
	}
	parcel, err := run.Do(ctx, "ship", "ship the goods", func(context.Context) (client.Payload, error) {
		fmt.Printf("  paid with %s; the %s is shipped\n", paid.Data, goods)
		return client.JSON("parcel of " + goods), nil // a parcel service would be handed run.IdempotencyKey("ship")
	})
	if err != nil {
		return err
	}
	return run.Complete(ctx, parcel)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := play(ctx, client.Options{URL: client.DefaultURL, NATSURL: client.DefaultNATSURL}); err != nil {
		log.Fatal(err)
	}
}

func play(ctx context.Context, o client.Options) error {
	c, err := client.New(o)
	if err != nil {
		return err
	}
	defer c.Close()
	driven := make(chan client.Driven, 100)
	e, err := c.NewExecutor(client.ExecutorOptions{Queue: "orders", Handler: handle, Driven: func(d client.Driven) { driven <- d }})
	if err == nil {
		err = e.Start()
	}
	if err != nil {
		return err
	}
	defer func() { _ = e.Stop(context.WithoutCancel(ctx)) }()
	tea, cake := "order-"+client.NewID(), "order-"+client.NewID()
	for _, step := range []func() error{
		func() error { fmt.Println("The wait first, then the event:"); return order(ctx, c, tea, "tea") },
		func() error { return await(ctx, driven, tea, "suspended") },
		func() error { return pay(ctx, c, tea, 12) },
		func() error { return await(ctx, driven, tea, "concluded") },
		func() error { fmt.Println("The event first, then the wait:"); return pay(ctx, c, cake, 34) },
		func() error { return order(ctx, c, cake, "cake") },
		func() error { return await(ctx, driven, cake, "concluded") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println("What was recorded: rendezvous run history", tea)
	return nil
}

func order(ctx context.Context, c *client.Client, id, goods string) error {
	_, err := c.StartRun(ctx, wire.StartRun{WorkflowID: id, Type: "order", Queue: "orders", Input: client.JSON(goods).Wire()})
	return err
}

func pay(ctx context.Context, c *client.Client, id string, amount int) error {
	key := rendezvous.Key{Namespace: "order", Value: id}
	paid, err := client.NewEvent("urn:example:bank", "payment.received", client.JSON(amount), key)
	if err != nil {
		return err
	}
	_, err = c.PutEvents(ctx, paid)
	return err
}

// await waits until the order's run has been driven to that outcome.
func await(ctx context.Context, driven <-chan client.Driven, id, outcome string) error {
	for d := (client.Driven{}); d.WorkflowID != id || d.Outcome != outcome; {
		select {
		case d = <-driven:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

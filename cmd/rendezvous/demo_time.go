package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// The fourth part of the story: an order that nobody pays, what its run does about it, and one that is over whoever drives it.
const (
	patienceOfOrder = 700 * time.Millisecond // for its payment
	coolingOff      = 500 * time.Millisecond // before it gives up
)

// unpaid is what drives an order that is to be paid soon.
func unpaid(ctx context.Context, run *client.Run) error {
	paid, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", "1008"), client.Within(patienceOfOrder))
	if !errors.Is(err, client.ErrTimedOut) {
		if err != nil {
			return err
		}
		return run.Complete(ctx, paid.Payload)
	}
	if err := run.Sleep(ctx, "cooling off", coolingOff); err != nil {
		return err
	}
	return run.Fail(ctx, "not_paid", "nobody paid in time")
}

// timed shows a wait's deadline, a sleep, and the deadline of a whole run.
func (d *demo) timed(ctx context.Context) error {
	fmt.Printf("\n4. Time. Order 1008 waits %s for a payment that nobody makes, then sleeps %s, with no lease and no memory, and gives up. Order 1009 has %s in all, and nobody drives it:\n",
		patienceOfOrder, coolingOff, patienceOfOrder)
	executor, err := d.rdv.NewExecutor(client.ExecutorOptions{Queue: "dunning", Name: "demo", Handler: unpaid})
	if err != nil {
		return err
	}
	if err := executor.Start(); err != nil {
		return err
	}
	defer func() { _ = executor.Stop(context.WithoutCancel(ctx)) }()
	if _, err := d.rdv.StartRun(ctx, wire.StartRun{Type: "order", WorkflowID: "order-1008", Queue: "dunning"}); err != nil {
		return err
	}
	if _, err := d.rdv.StartRun(ctx, wire.StartRun{
		Type: "order", WorkflowID: "order-1009", Queue: "desk", DeadlineAfterMS: new(patienceOfOrder.Milliseconds()),
	}); err != nil {
		return err
	}
	for _, w := range []struct {
		id   string
		want []rendezvous.Kind
	}{
		{"order-1008", []rendezvous.Kind{rendezvous.WaitTimedOut, rendezvous.TimerFired, rendezvous.RunFailed}},
		{"order-1009", []rendezvous.Kind{rendezvous.RunTimedOut}},
	} {
		if err := d.ended(ctx, w.id, w.want); err != nil {
			return err
		}
	}
	return nil
}

// ended waits until a workflow is closed and shows what time did to it: each of those records once, and none before its instant.
func (d *demo) ended(ctx context.Context, id string, want []rendezvous.Kind) error {
	if err := d.until(ctx, id+" is over", func() (bool, error) {
		w, err := d.rdv.GetRun(ctx, wire.WorkflowRef{WorkflowID: id})
		return w.Status.Terminal(), err
	}); err != nil {
		return err
	}
	records, err := d.rdv.History(ctx, id, 1)
	if err != nil {
		return err
	}
	for _, r := range records {
		if len(want) == 0 || r.Kind != want[0] {
			continue
		}
		want = want[1:]
		due, err := dueInstant(r)
		if err != nil {
			return err
		}
		if due.IsZero() {
			fmt.Printf("   %s  %s\n", id, r.Kind)
			continue
		}
		if r.RecordedAt.Before(due) {
			return fmt.Errorf("%s: %s was recorded before its instant", id, r.Kind)
		}
		fmt.Printf("   %s  %s, %s after its instant\n", id, r.Kind, r.RecordedAt.Sub(due).Round(100*time.Microsecond))
	}
	if len(want) > 0 {
		return fmt.Errorf("%s: %s is not in its history", id, want[0])
	}
	return nil
}

// dueInstant is when a record was due, zero for one that time has nothing to do with.
func dueInstant(r rendezvous.Record) (time.Time, error) {
	var at string
	switch r.Kind {
	case rendezvous.TimerFired:
		var d rendezvous.TimerFiredData
		if err := rendezvous.DecodeData(r, &d); err != nil {
			return time.Time{}, err
		}
		at = d.FireAt
	case rendezvous.WaitTimedOut, rendezvous.RunTimedOut:
		var d rendezvous.DeadlineData
		if err := rendezvous.DecodeData(r, &d); err != nil {
			return time.Time{}, err
		}
		at = d.Deadline
	default:
		return time.Time{}, nil
	}
	return rendezvous.ParseInstant("due", at)
}

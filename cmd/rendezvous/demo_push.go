package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// The sixth part of the story: an order whose history goes out as signed webhooks, and a receiver that is broken for a while.
const (
	hookKey   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hookRun   = "run-of-order-1010"
	hookTries = 2
)

// hookTypes are what a receiver is to get, in this order.
var hookTypes = []string{"rendezvous.run.started", "rendezvous.wait.registered", "rendezvous.wait.answered", "rendezvous.run.completed"}

// desk is a receiver of the story.
type desk struct {
	hook
	name     string
	accepted []string // types, in order; behind mu
}

func openDesk(name string) (*desk, func() error, error) {
	d := &desk{name: name, hook: hook{status: http.StatusOK, fail: -1}}
	d.got = func(r received) { // hook.mu is held
		fmt.Printf("   %-10s %-28s attempt %s, signature %s: %d\n", d.name, r.Type, r.Attempt, r.Signature, r.Status)
		if r.Status == http.StatusOK && r.Signature == sigVerified {
			d.accepted = append(d.accepted, r.Type)
		}
	}
	if err := d.verifyWith([]string{hookKey}); err != nil {
		return nil, nil, err
	}
	stop, err := d.listen("127.0.0.1:0")
	return d, stop, err
}

// has reports whether the receiver accepted those, in that order and no others.
func (d *desk) has(types []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Equal(d.accepted, types)
}

func (d *desk) registration() wire.PutPush {
	return wire.PutPush{ID: d.name, URL: d.url + "/hooks", Signing: []wire.PushKey{{Key: wire.SecretOf(hookKey)}}, MaxAttempts: hookTries}
}

// pushed shows a signed webhook, a registration that is parked, and how it catches up.
func (d *demo) pushed(ctx context.Context) error {
	fmt.Printf("\n6. Webhooks. Order 1010 starts with two registrations, which follow its history; the accounting desk answers 500, and is given %d attempts:\n", hookTries)
	shop, stopShop, err := openDesk("shop")
	if err != nil {
		return err
	}
	defer func() { _ = stopShop() }()
	accounting, stopAccounting, err := openDesk("accounting")
	if err != nil {
		return err
	}
	defer func() { _ = stopAccounting() }()
	accounting.answers(http.StatusInternalServerError)
	if err := d.followed(ctx, shop.registration(), accounting.registration()); err != nil {
		return err
	}
	if err := d.until(ctx, "every webhook of the shop", func() (bool, error) { return shop.has(hookTypes), nil }); err != nil {
		return err
	}
	if err := d.parked(ctx, accounting.name); err != nil {
		return err
	}
	fmt.Println("   The desk is repaired, and an operator unparks the registration. It gets all that it missed, in order:")
	accounting.answers(http.StatusOK)
	r, err := d.rdv.UnparkPush(ctx, wire.UnparkPush{PushRef: wire.PushRef{RunID: hookRun, ID: accounting.name}, Operator: me(), Reason: "repaired"})
	if err != nil {
		return err
	}
	if !r.Unparked {
		return fmt.Errorf("registration %s was not parked", accounting.name)
	}
	if err := d.until(ctx, "every webhook of the accounting desk", func() (bool, error) { return accounting.has(hookTypes), nil }); err != nil {
		return err
	}
	if err := d.until(ctx, "no registration left", func() (bool, error) {
		list, err := d.rdv.ListPush(ctx, hookRun)
		return len(list.Registrations) == 0, err
	}); err != nil {
		return err
	}
	fmt.Println("   Both have the whole history, each message once; their registrations are complete and gone.")
	return nil
}

// followed is the run that is followed: it waits for a payment, which comes, and completes.
func (d *demo) followed(ctx context.Context, registrations ...wire.PutPush) error {
	if _, err := d.rdv.StartRun(ctx, wire.StartRun{Type: "order", WorkflowID: "order-1010", RunID: hookRun, Queue: "desk", Push: registrations}); err != nil {
		return err
	}
	key := rendezvous.Key{Namespace: "order", Value: "1010"}
	if _, err := d.rdv.RegisterWait(ctx, wire.RegisterWait{RunID: hookRun, Effect: "payment", Type: "payment.received", Keys: []rendezvous.Key{key}}); err != nil {
		return err
	}
	e, err := client.NewEvent("urn:demo:bank", "payment.received", client.JSON(map[string]int{"amount": 10}), key)
	if err != nil {
		return err
	}
	if _, err := d.rdv.PutEvents(ctx, e); err != nil {
		return err
	}
	if err := d.until(ctx, "order 1010 paid", func() (bool, error) {
		w, err := d.rdv.GetRun(ctx, wire.WorkflowRef{WorkflowID: "order-1010"})
		return w.HeadSeq == 3, err
	}); err != nil {
		return err
	}
	_, err = d.rdv.Conclude(ctx, wire.Conclude{RunID: hookRun, ExpectedSeq: 3, Outcome: rendezvous.StatusCompleted})
	return err
}

// parked waits until the registration is parked, and shows it.
func (d *demo) parked(ctx context.Context, id string) error {
	return d.until(ctx, id+" is parked", func() (bool, error) {
		list, err := d.rdv.ParkedPushes(ctx, wire.ParkedPushes{})
		if err != nil || len(list.Registrations) == 0 {
			return false, err
		}
		p := list.Registrations[0]
		fmt.Printf("   parked: %s, %s after %d attempts, at record %d (%s)\n", p.ID, p.Reason, p.Attempts, p.Cursor.NextSeq, p.Error)
		if p.ID != id || p.Reason != rendezvous.ParkExhausted || p.Cursor.NextSeq != 1 {
			return false, fmt.Errorf("the story did not end as it should")
		}
		return true, nil
	})
}

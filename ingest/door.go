package ingest

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/notify"
	"github.com/rendezvous-events/rendezvous/store"
)

// Store is what a door needs of the store.
type Store interface {
	store.Intake
	DeliverParked(ctx context.Context, waits []store.WaitRef, at time.Time) (store.Offered, error)
}

// Sender sends notices after a commit.
type Sender interface {
	Send(ctx context.Context, n store.Notices) error
	Try(ctx context.Context, n store.Notices)
}

// Door is the group commit that every way in shares. Safe for concurrent use.
type Door struct {
	store    Store
	sender   Sender
	events   *group.Group[store.BufferItem, buffered]
	targeted *group.Group[store.DeliverItem, delivered]
	sending  notify.Sendings
	metrics  *Metrics
	tracer   trace.Tracer
}

// buffered is the fate of one event, and when its notice is sent.
type buffered struct {
	store.Buffered
	noticed *notices
}

// delivered is the fate of one targeted event, and when its notices are sent.
type delivered struct {
	store.Delivery
	noticed *notices
}

// notices is the sending of one batch's notices.
type notices struct {
	done chan struct{}
	err  error
}

// Wait blocks until the batch's notices are acknowledged; the error says that they are not.
func (n *notices) Wait(ctx context.Context) error {
	if n == nil {
		return nil
	}
	select {
	case <-n.done:
		return n.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// NewDoor opens the door, which traces the events it takes in. Stop it before the store and the messaging go.
func NewDoor(s Store, sender Sender, cfg group.Config, tracer trace.Tracer, m *Metrics) *Door {
	d := &Door{store: s, sender: sender, metrics: m, tracer: tracer, sending: notify.Sendings{Log: cfg.Log}}
	d.events = group.New(cfg, func(i store.BufferItem) int { return eventBytes(i.Event) }, d.commitEvents)
	d.targeted = group.New(cfg, func(i store.DeliverItem) int { return eventBytes(i.Event) }, d.commitTargeted)
	return d
}

func eventBytes(e rendezvous.Event) int {
	return len(e.Payload) + len(e.Source) + len(e.ID) + len(e.Type) + 64*len(e.Keys)
}

// HandAll hands in events of one tenant and answers a function that waits for their commit; see [store.Intake]. They are numbered in their order. One fate
// and one error per event; the notices follow by themselves. Call the function once.
func (d *Door) HandAll(ctx context.Context, tenant string, events []rendezvous.Event) func() ([]store.Buffered, []error) {
	wait := d.handAll(ctx, tenant, events, byRequest)
	return func() ([]store.Buffered, []error) {
		got, errs := wait()
		out := make([]store.Buffered, len(got))
		for i, b := range got {
			out[i] = b.Buffered
		}
		return out, errs
	}
}

func (d *Door) handAll(ctx context.Context, tenant string, events []rendezvous.Event, w way) func() ([]buffered, []error) {
	items, ends := make([]store.BufferItem, len(events)), make([]func(string, error), len(events))
	for i, e := range events {
		items[i].Tenant = tenant
		items[i].Event, ends[i] = d.trace(ctx, tenant, e, w)
	}
	wait := d.events.HandAll(ctx, items)
	return func() ([]buffered, []error) {
		got, errs := wait()
		for i, b := range got {
			if errs[i] == nil {
				errs[i] = b.Err
			}
			ends[i](string(b.Outcome), errs[i])
		}
		return got, errs
	}
}

// HandTo hands in an event that goes to one run; see [store.Events.DeliverTo]. After Matched the answer is recorded at once if the run is free.
func (d *Door) HandTo(ctx context.Context, tenant, run string, e rendezvous.Event, keep bool) func() (store.Delivery, error) {
	wait := d.handTo(ctx, tenant, run, e, keep, byRequest)
	return func() (store.Delivery, error) { v, err := wait(); return v.Delivery, err }
}

func (d *Door) handTo(ctx context.Context, tenant, run string, e rendezvous.Event, keep bool, w way) func() (delivered, error) {
	e, end := d.trace(ctx, tenant, e, w)
	wait := d.targeted.Hand(ctx, store.DeliverItem{Tenant: tenant, RunID: run, Event: e, Keep: keep})
	return func() (delivered, error) {
		v, err := wait()
		if err == nil {
			err = v.Err
		}
		end(string(v.Outcome), err)
		return v, err
	}
}

// Stop refuses new events, commits what waits and sends its notices. When ctx ends first, commits and sendings are cancelled, and the error says what was
// left. Idempotent.
func (d *Door) Stop(ctx context.Context) error {
	d.events.Stop(ctx)
	d.targeted.Stop(ctx)
	return d.sending.Stop(ctx)
}

// commitEvents is the events' commit: one transaction, then one sending for all, which does not hold up the answers.
func (d *Door) commitEvents(ctx context.Context, items []store.BufferItem) ([]buffered, error) {
	got, err := d.store.BufferBatch(ctx, items, time.Time{})
	d.metrics.batch(ctx, kindBuffer, len(items), err)
	if err != nil {
		return nil, err
	}
	var all store.Notices
	for i := range got {
		all.Append(got[i].Notices)
		d.metrics.fate(ctx, items[i].Tenant, string(got[i].Outcome), got[i].Err)
	}
	sent := d.send(ctx, all)
	out := make([]buffered, len(got))
	for i, b := range got {
		out[i] = buffered{Buffered: b, noticed: sent}
	}
	return out, nil
}

// commitTargeted is the targeted events' commit; what was claimed for a free run is recorded right behind it.
func (d *Door) commitTargeted(ctx context.Context, items []store.DeliverItem) ([]delivered, error) {
	got, err := d.store.DeliverToBatch(ctx, items, time.Time{})
	d.metrics.batch(ctx, kindDeliver, len(items), err)
	if err != nil {
		return nil, err
	}
	var all store.Notices
	var claimed []store.WaitRef
	for i := range got {
		all.Append(got[i].Notices)
		d.metrics.fate(ctx, items[i].Tenant, string(got[i].Outcome), got[i].Err)
		if got[i].Outcome == store.DeliveryMatched {
			claimed = append(claimed, store.WaitRef{Tenant: items[i].Tenant, WaitID: rendezvous.WaitID{RunID: got[i].RunID, Effect: got[i].Effect}})
		}
	}
	if len(claimed) > 0 {
		// The claims stand whatever comes of this: the store's parked pass records what is left.
		if offered, err := d.store.DeliverParked(ctx, claimed, time.Time{}); err == nil {
			all.Append(offered.Notices)
			for _, o := range offered.Items {
				notify.TraceOffer(ctx, d.tracer, o)
			}
		}
	}
	sent := d.send(ctx, all)
	out := make([]delivered, len(got))
	for i, v := range got {
		out[i] = delivered{Delivery: v, noticed: sent}
	}
	return out, nil
}

// errNotSent is of a sending that broke off inside.
var errNotSent = errors.New("the notices are not known to be sent")

// send starts the sending of a batch's notices.
func (d *Door) send(ctx context.Context, all store.Notices) *notices {
	if all.Empty() {
		return nil
	}
	n := &notices{done: make(chan struct{}), err: errNotSent}
	d.sending.Go(ctx, func(ctx context.Context) {
		defer close(n.done)
		n.err = d.sender.Send(ctx, all)
	})
	return n
}

// Final reports whether an error of a door is about the event itself: sending it again as it is can never work. An error that is not of the closed set says
// nothing about the event.
func Final(err error) bool {
	switch rendezvous.CodeOf(err) {
	case "", rendezvous.CodeUnavailable, rendezvous.CodeCommitUnknown, rendezvous.CodeRateLimited:
		return false
	}
	return true
}

package difftest

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Event is an event of a step.
type Event struct {
	Source, ID, Type string
	Keys             []string // each "namespace=value"
	ContentType      string
	Payload          string        // "" is none, "empty" is empty
	Expires          time.Duration // behind Base; 0 is never
	Trace            string
	Minter           string
}

func (e Event) event() rendezvous.Event {
	return rendezvous.Event{
		EventID: e.id(), Type: e.Type, Keys: keys(e.Keys), ContentType: e.ContentType, Payload: bytesOf(e.Payload), ExpiresAt: at(e.Expires),
		Trace: rendezvous.Trace{Parent: e.Trace}, MintedBy: operator(e.Minter),
	}
}

func (e Event) id() rendezvous.EventID { return rendezvous.EventID{Source: e.Source, ID: e.ID} }

// Put is an item of BufferBatch.
type Put struct {
	Tenant string
	Event  Event
}

// BufferBatch is the verb.
type BufferBatch struct {
	Items []Put
	At    time.Duration
}

func (b BufferBatch) ask(s *side) (any, error) {
	items := make([]store.BufferItem, len(b.Items))
	for i, p := range b.Items {
		items[i] = store.BufferItem{Tenant: p.Tenant, Event: p.Event.event()}
	}
	return s.store.BufferBatch(ctx, items, at(b.At))
}

// Buffer is the verb.
type Buffer struct {
	Tenant string
	Event  Event
	At     time.Duration
}

func (b Buffer) ask(s *side) (any, error) {
	t, err := s.of(b.Tenant)
	if err != nil {
		return nil, err
	}
	return t.Buffer(ctx, b.Event.event(), at(b.At))
}

// DeliverTo is the verb.
type DeliverTo struct {
	Tenant, Run string
	Event       Event
	Keep        bool
	At          time.Duration
}

func (d DeliverTo) ask(s *side) (any, error) {
	t, err := s.of(d.Tenant)
	if err != nil {
		return nil, err
	}
	return t.DeliverTo(ctx, s.id(d.Run), d.Event.event(), d.Keep, at(d.At))
}

// Targeted is an item of DeliverToBatch.
type Targeted struct {
	Tenant, Run string
	Event       Event
	Keep        bool
}

// DeliverToBatch is the verb.
type DeliverToBatch struct {
	Items []Targeted
	At    time.Duration
}

func (d DeliverToBatch) ask(s *side) (any, error) {
	items := make([]store.DeliverItem, len(d.Items))
	for i, t := range d.Items {
		items[i] = store.DeliverItem{Tenant: t.Tenant, RunID: s.id(t.Run), Event: t.Event.event(), Keep: t.Keep}
	}
	return s.store.DeliverToBatch(ctx, items, at(d.At))
}

// LookupEvent is the verb.
type LookupEvent struct {
	Tenant, Source, ID string
	Payload            bool
}

func (l LookupEvent) ask(s *side) (any, error) {
	t, err := s.of(l.Tenant)
	if err != nil {
		return nil, err
	}
	return t.LookupEvent(ctx, rendezvous.EventID{Source: l.Source, ID: l.ID}, l.Payload)
}

// Minter is the verb.
type Minter struct{ Tenant, Source, ID string }

func (m Minter) ask(s *side) (any, error) {
	t, err := s.of(m.Tenant)
	if err != nil {
		return nil, err
	}
	return t.Minter(ctx, rendezvous.EventID{Source: m.Source, ID: m.ID})
}

// MatchWaiter is the verb.
type MatchWaiter struct {
	Tenant, Source, ID string
	At                 time.Duration
}

func (m MatchWaiter) ask(s *side) (any, error) {
	t, err := s.of(m.Tenant)
	if err != nil {
		return nil, err
	}
	return t.MatchWaiter(ctx, rendezvous.EventID{Source: m.Source, ID: m.ID}, at(m.At))
}

// ErasePayload is the verb.
type ErasePayload struct {
	Tenant, Source, ID, Operator string
	At                           time.Duration
}

func (e ErasePayload) ask(s *side) (any, error) {
	t, err := s.of(e.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ErasePayload(ctx, rendezvous.EventID{Source: e.Source, ID: e.ID}, operator(e.Operator), at(e.At))
}

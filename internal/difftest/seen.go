package difftest

import (
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// seen is what steps named so far.
type seen struct {
	events []Name
	leases []Hook          // of each send lease, in the order they were handed out
	taken  []Held          // of each take token, in the order they were handed out
	due    []time.Duration // instants at which something ends or falls due, behind Base
}

// at remembers an instant at which something ends: what is right a moment before is not right then, and each store has a comparison of its own for that.
func (k *seen) at(t time.Time) {
	if d := rendezvous.DueInstant(t).Sub(Base); !t.IsZero() && d > 0 && d < 2*time.Hour {
		k.due = append(k.due, d)
	}
}

// add remembers the events that a step names.
func (k *seen) add(s Step) {
	switch s := s.(type) {
	case Buffer:
		k.event(s.Tenant, s.Event)
	case BufferBatch:
		for _, p := range s.Items {
			k.event(p.Tenant, p.Event)
		}
	case DeliverTo:
		k.event(s.Tenant, s.Event)
	case DeliverToBatch:
		for _, t := range s.Items {
			k.event(t.Tenant, t.Event)
		}
	}
}

func (k *seen) event(tenant string, e Event) {
	name := Name{tenant, e.Source, e.ID}
	k.at(at(e.Expires))
	if e.Source != Long && e.ID != Long && !slices.Contains(k.events, name) {
		k.events = append(k.events, name)
	}
}

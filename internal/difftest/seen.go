package difftest

import "slices"

// seen is what steps named so far.
type seen struct {
	events []Name
	taken  []Held // of each take token, in the order they were handed out
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
	if e.Source != Long && e.ID != Long && !slices.Contains(k.events, name) {
		k.events = append(k.events, name)
	}
}

package difftest

import (
	"cmp"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Wait is a wait of a step.
type Wait struct {
	Run, Effect, Type string
	Keys              []string // each "namespace=value"
	From              string
	Attempt           int
	Trace             string
	Epoch             int64
}

func (w Wait) registration(s *side) store.Registration {
	return store.Registration{Epoch: w.Epoch, Wait: rendezvous.Wait{
		WaitID: rendezvous.WaitID{RunID: s.id(w.Run), Effect: w.Effect}, Attempt: w.Attempt, Type: w.Type, Keys: keys(w.Keys), From: w.From,
		Trace: rendezvous.Trace{Parent: w.Trace},
	}}
}

// RegisterWait is the verb.
type RegisterWait struct {
	Tenant string
	Wait   Wait
	At     time.Duration
}

func (r RegisterWait) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.RegisterWait(ctx, r.Wait.registration(s), at(r.At))
}

// Subscribe is the verb.
type Subscribe struct {
	Tenant string
	Wait   Wait
	At     time.Duration
}

func (r Subscribe) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.Subscribe(ctx, r.Wait.registration(s), at(r.At))
}

// Listen is an item of RegisterBatch.
type Listen struct {
	Tenant string
	Wait   Wait
}

// RegisterBatch is the verb.
type RegisterBatch struct {
	Items []Listen
	At    time.Duration
}

func (r RegisterBatch) ask(s *side) (any, error) {
	items := make([]store.RegisterItem, len(r.Items))
	for i, l := range r.Items {
		items[i] = store.RegisterItem{Tenant: l.Tenant, Registration: l.Wait.registration(s)}
	}
	return s.store.RegisterBatch(ctx, items, at(r.At))
}

// ClaimFor is the verb.
type ClaimFor struct {
	Tenant, Run, Effect string
	At                  time.Duration
}

func (c ClaimFor) ask(s *side) (any, error) {
	t, err := s.of(c.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ClaimFor(ctx, rendezvous.WaitID{RunID: s.id(c.Run), Effect: c.Effect}, at(c.At))
}

// Unsubscribe is the verb.
type Unsubscribe struct {
	Tenant, Run, Effect string
	Epoch               int64
	Reason              string
	At                  time.Duration
}

func (u Unsubscribe) ask(s *side) (any, error) {
	t, err := s.of(u.Tenant)
	if err != nil {
		return nil, err
	}
	return t.Unsubscribe(ctx, rendezvous.WaitID{RunID: s.id(u.Run), Effect: u.Effect}, u.Epoch, u.Reason, at(u.At))
}

// UnsubscribeRun is the verb.
type UnsubscribeRun struct {
	Tenant, Run string
	Epoch       int64
	Unanswered  []string
	At          time.Duration
}

func (u UnsubscribeRun) ask(s *side) (any, error) {
	t, err := s.of(u.Tenant)
	if err != nil {
		return nil, err
	}
	retired, notices, err := t.UnsubscribeRun(ctx, s.id(u.Run), u.Epoch, u.Unanswered, at(u.At))
	return []any{retired, notices}, err
}

// Offer is an item of OfferBatch: an event, or a wait.
type Offer struct{ Tenant, Source, ID, Run, Effect string }

// OfferBatch is the verb.
type OfferBatch struct {
	Items []Offer
	At    time.Duration
}

func (o OfferBatch) ask(s *side) (any, error) {
	items := make([]store.OfferItem, len(o.Items))
	for i, of := range o.Items {
		items[i].Tenant = of.Tenant
		if of.Source+of.ID != "" {
			items[i].Event = &rendezvous.EventID{Source: of.Source, ID: of.ID}
		}
		if of.Run+of.Effect != "" {
			items[i].Wait = &rendezvous.WaitID{RunID: s.id(of.Run), Effect: of.Effect}
		}
	}
	return s.store.OfferBatch(ctx, items, at(o.At))
}

// Held is an item of DeliverParked.
type Held struct{ Tenant, Run, Effect string }

// DeliverParked is the verb.
type DeliverParked struct {
	Items []Held
	At    time.Duration
}

func (d DeliverParked) ask(s *side) (any, error) {
	refs := make([]store.WaitRef, len(d.Items))
	for i, h := range d.Items {
		refs[i] = store.WaitRef{Tenant: h.Tenant, WaitID: rendezvous.WaitID{RunID: s.id(h.Run), Effect: h.Effect}}
	}
	return s.store.DeliverParked(ctx, refs, at(d.At))
}

// Park is an item of ParkWait. Take is the place of its token among all that were handed out, from 1.
type Park struct {
	Tenant, Run, Effect, Cause string
	RetryIn                    time.Duration
	Error                      string
	Take                       int
}

// ParkWait is the verb.
type ParkWait struct {
	Items []Park
	At    time.Duration
}

func (p ParkWait) ask(s *side) (any, error) {
	items := make([]store.ParkItem, len(p.Items))
	for i, k := range p.Items {
		items[i] = store.ParkItem{
			Tenant: k.Tenant, WaitID: rendezvous.WaitID{RunID: s.id(k.Run), Effect: k.Effect}, Cause: store.ParkCause(k.Cause), RetryIn: k.RetryIn,
			Error: k.Error, Take: s.take(k.Take),
		}
	}
	return s.store.ParkWait(ctx, items, at(p.At))
}

func (ParkWait) learn(w *World, got any) {
	for _, r := range got.([]store.ParkResult) {
		w.known.at(r.NextAttemptAt)
	}
}

// TakeParked is the verb.
type TakeParked struct {
	Limit int
	Hold  time.Duration
}

func (t TakeParked) ask(s *side) (any, error) {
	taken, err := s.store.TakeParked(ctx, t.Limit, t.Hold)
	for _, row := range taken.Rows {
		s.takes = append(s.takes, row.Take)
	}
	return taken, err
}

func (t TakeParked) learn(w *World, got any) {
	w.known.at(Base.Add(w.now + cmp.Or(t.Hold, 30*time.Second)))
	for _, row := range got.(store.Taken[store.TakenWait]).Rows {
		w.known.taken = append(w.known.taken, Held{row.Tenant, w.role(row.RunID), row.Effect})
	}
}

// RetryWait is the verb.
type RetryWait struct{ Tenant, Run, Effect, Operator string }

func (r RetryWait) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.RetryWait(ctx, rendezvous.WaitID{RunID: s.id(r.Run), Effect: r.Effect}, operator(r.Operator))
}

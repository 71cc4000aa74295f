package difftest

import (
	"github.com/rendezvous-events/rendezvous"
)

// ExplainEvent is the verb.
type ExplainEvent struct{ Tenant, Source, ID string }

func (e ExplainEvent) ask(s *side) (any, error) {
	t, err := s.of(e.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ExplainEvent(ctx, rendezvous.EventID{Source: e.Source, ID: e.ID})
}

// ExplainWait is the verb.
type ExplainWait struct{ Tenant, Run, Effect string }

func (e ExplainWait) ask(s *side) (any, error) {
	t, err := s.of(e.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ExplainWait(ctx, rendezvous.WaitID{RunID: s.id(e.Run), Effect: e.Effect})
}

// ExplainPair is the verb.
type ExplainPair struct{ Tenant, Source, ID, Run, Effect string }

func (e ExplainPair) ask(s *side) (any, error) {
	t, err := s.of(e.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ExplainPair(ctx, rendezvous.EventID{Source: e.Source, ID: e.ID}, rendezvous.WaitID{RunID: s.id(e.Run), Effect: e.Effect})
}

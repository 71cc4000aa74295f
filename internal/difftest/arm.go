package difftest

import (
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// Arm makes the next step fail, alike on every store (store/fault): at the same call of the same transaction. It is taken back after that step.
type Arm struct {
	Verb, Point       string
	Call, Skip, Times int
	Err               string // "stale" and "retry" are what a backend says when the verb is to be made anew
}

var armedErrors = map[string]error{"stale": backend.ErrStale, "retry": backend.ErrRetry}

func (a Arm) ask(s *side) (any, error) {
	s.armed = append(s.armed, s.faults.Arm(fault.Failure{
		Verb: a.Verb, Point: fault.Point(a.Point), Call: a.Call, Skip: a.Skip, Times: a.Times, Err: armedErrors[a.Err],
	}))
	return nil, nil
}

package rendezvous

import "time"

// WaitID names a wait in its tenant.
type WaitID struct {
	RunID  string `json:"run_id"`
	Effect string `json:"effect"`
}

// Wait is a run's registered interest: an effect that an event will answer.
type Wait struct {
	WaitID
	Attempt int // from 1; 0 means 1
	Type    string
	Keys    []Key
	From    string // only events of this source; empty: any
	Trace   Trace
	// Deadline or DeadlineAfter, at most one: until when an event may be received that answers it; the second counts from the registration's recorded_at.
	Deadline      time.Time
	DeadlineAfter *time.Duration
}

// Check judges a wait and answers it with its keys as a set and its attempt filled in (EV-19).
func (w Wait) Check() (Wait, error) {
	for _, f := range [...]struct{ name, value string }{{"run_id", w.RunID}, {"effect", w.Effect}, {"type", w.Type}} {
		if err := CheckID(f.name, f.value); err != nil {
			return w, err
		}
	}
	keys, err := CheckKeys(w.Keys)
	if err != nil {
		return w, err
	}
	if w.From != "" {
		if err := CheckID("from", w.From); err != nil {
			return w, err
		}
	}
	if w.Attempt < 0 {
		return w, InvalidField("attempt", "%d is below 1", w.Attempt)
	}
	if w.Deadline, err = CheckDeadline(w.Deadline, w.DeadlineAfter); err != nil {
		return w, err
	}
	w.Keys, w.Attempt, w.Trace = keys, max(w.Attempt, 1), w.Trace.Kept()
	return w, nil
}

// SameAs reports which of the values that a repeated registration must not change differ: type, keys, from or
// deadline; "" when none does (EV-19). A deadline given as a duration is not compared: it was resolved once.
func (w Wait) SameAs(o Wait) string {
	switch {
	case w.Type != o.Type:
		return "type"
	case !SameKeys(w.Keys, o.Keys):
		return "keys"
	case w.From != o.From:
		return "from"
	case w.DeadlineAfter == nil && o.DeadlineAfter == nil && !w.Deadline.Equal(o.Deadline):
		return "deadline"
	}
	return ""
}

// WaitState is where a wait is in its life.
type WaitState string

// The closed set of states of a wait's row; a closed wait has no row.
const (
	WaitOpen        WaitState = "open"
	WaitParked      WaitState = "parked"
	WaitQuarantined WaitState = "quarantined"
)

// Closing says how a wait ended.
type Closing string

// The closed set of endings of a wait.
const (
	ClosedAnswered  Closing = "answered"
	ClosedTimedOut  Closing = "timed_out"
	ClosedWithdrawn Closing = "withdrawn"
	ClosedEnded     Closing = "ended" // its run concluded with the wait open
)

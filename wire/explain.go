package wire

import "github.com/rendezvous-events/rendezvous"

// ExplainEvent is the request of events.explain. With a run and an effect it asks for the pair.
type ExplainEvent struct {
	Source string `json:"source"`
	ID     string `json:"id"`
	RunID  string `json:"run_id,omitempty"`
	Effect string `json:"effect,omitempty"`
}

// ExplainWait is the request of waits.explain. With a source and an id it asks for the pair.
type ExplainWait struct {
	RunID  string `json:"run_id"`
	Effect string `json:"effect"`
	Source string `json:"source,omitempty"`
	ID     string `json:"id,omitempty"`
}

// Explanation is the reply of both: why an event or a wait stands as it does. No payload is in it.
type Explanation struct {
	Verdict    rendezvous.Verdict `json:"verdict"`
	Facts      Facts              `json:"facts"`
	Reasons    []Reason           `json:"reasons"`
	Hints      []Hint             `json:"hints,omitempty"` // of the pair that was asked for
	NearMisses []NearMiss         `json:"near_misses"`
	Partial    bool               `json:"partial,omitempty"` // the search for near misses was cut
}

// Facts are what a verdict rests on: those that are there follow from it.
type Facts struct {
	Number        int64                 `json:"number,omitempty"`
	Type          string                `json:"type,omitempty"`
	Keys          []rendezvous.Key      `json:"keys,omitempty"`
	From          string                `json:"from,omitempty"`
	Target        string                `json:"target,omitempty"`
	RegisteredAt  Time                  `json:"registered_at,omitzero"`
	Deadline      Time                  `json:"deadline,omitzero"` // a wait's
	Other         *Wants                `json:"other,omitempty"`   // of a pair: the wait's side
	ReceivedAt    Time                  `json:"received_at,omitzero"`
	Event         *rendezvous.EventID   `json:"event,omitempty"`
	Wait          *rendezvous.WaitID    `json:"wait,omitempty"`
	WorkflowID    string                `json:"workflow_id,omitempty"`
	Seq           int64                 `json:"seq,omitempty"`
	Since         Time                  `json:"since,omitzero"`
	At            Time                  `json:"at,omitzero"`
	WaitedMS      int64                 `json:"waited_ms,omitempty"`
	Hold          *Hold                 `json:"hold,omitempty"`
	Reason        rendezvous.DeadReason `json:"reason,omitempty"`
	Detail        string                `json:"detail,omitempty"`
	Erased        bool                  `json:"erased,omitempty"`
	Purged        bool                  `json:"purged,omitempty"`
	Requeues      int                   `json:"requeues,omitempty"`
	OfferFailures int                   `json:"offer_failures,omitempty"`
	Run           *ExplainedRun         `json:"run,omitempty"`
	Similar       []string              `json:"similar,omitempty"` // effects of the run with a similar name
	Released      []rendezvous.EventID  `json:"released,omitempty"`
	Dead          []rendezvous.EventID  `json:"dead,omitempty"`
}

// Wants is what a wait waits for.
type Wants struct {
	Type     string           `json:"type"`
	Keys     []rendezvous.Key `json:"keys"`
	From     string           `json:"from,omitempty"`
	Deadline Time             `json:"deadline,omitzero"`
}

// Hold is what a standing claim, or a deadline that is over, waits for.
type Hold struct {
	State         rendezvous.HoldState `json:"state"`
	Owner         string               `json:"owner,omitempty"`
	RemainingMS   int64                `json:"remaining_ms,omitempty"`
	Attempts      int                  `json:"attempts"`
	NextAttemptAt Time                 `json:"next_attempt_at,omitzero"`
	LastError     string               `json:"last_error,omitempty"`
	QuarantinedAt Time                 `json:"quarantined_at,omitzero"`
}

// ExplainedRun is a run that a verdict is about.
type ExplainedRun struct {
	RunID      string              `json:"run_id"`
	State      rendezvous.RunState `json:"state"`
	WorkflowID string              `json:"workflow_id,omitempty"`
	Outcome    rendezvous.Kind     `json:"outcome,omitempty"`
	SealedAt   Time                `json:"sealed_at,omitzero"`
}

// Reason is one pair reason with what it names.
type Reason struct {
	Code    rendezvous.PairReason `json:"code"`
	Event   *rendezvous.EventID   `json:"event,omitempty"`
	Wait    *rendezvous.WaitID    `json:"wait,omitempty"`
	Seq     int64                 `json:"seq,omitempty"`
	Since   Time                  `json:"since,omitzero"`
	Dead    rendezvous.DeadReason `json:"dead,omitempty"`
	Closed  rendezvous.Closing    `json:"closed,omitempty"`
	Outcome rendezvous.Kind       `json:"outcome,omitempty"`
}

// Hint is what two sides nearly have in common, as each spells it.
type Hint struct {
	Kind  rendezvous.HintKind `json:"kind"`
	Event string              `json:"event"`
	Wait  string              `json:"wait"`
}

// NearMiss is a wait that an event nearly met, or an event that nearly met a wait.
type NearMiss struct {
	Event   *rendezvous.EventID `json:"event,omitempty"`
	Wait    *rendezvous.WaitID  `json:"wait,omitempty"`
	Number  int64               `json:"number"`
	Type    string              `json:"type"`
	Keys    []rendezvous.Key    `json:"keys"`
	From    string              `json:"from,omitempty"`
	Target  string              `json:"target,omitempty"`
	Reasons []Reason            `json:"reasons"`
	Hints   []Hint              `json:"hints"`
}

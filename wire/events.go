package wire

import (
	"encoding/json"

	"github.com/rendezvous-events/rendezvous"
)

// PutEvents is the request of events.put: CloudEvents in the JSON format, at most 500.
type PutEvents struct {
	Events []json.RawMessage `json:"events"`
}

// PutResults is the reply of events.put and of the events door, one result per event in input order.
type PutResults struct {
	Results []PutResult `json:"results"`
}

// PutResult says what became of one event: accepted, duplicate, conflict or rejected.
type PutResult struct {
	Source  string                `json:"source"`
	ID      string                `json:"id"`
	Outcome string                `json:"outcome"`
	State   rendezvous.EventState `json:"state,omitempty"`
	Error   *Error                `json:"error,omitempty"`
}

// Outcomes of events.put.
const (
	Accepted  = "accepted"
	Duplicate = "duplicate"
	Conflict  = "conflict"
	Rejected  = "rejected"
)

// DeliverEvent is the request of events.deliver.
type DeliverEvent struct {
	RunID string          `json:"run_id"`
	Event json.RawMessage `json:"event"`
}

// Delivered is the reply of events.deliver: matched, duplicate (the plane has it, State says where it stands) or not_waiting (nothing was stored).
type Delivered struct {
	Outcome string                `json:"outcome"`
	Effect  string                `json:"effect,omitempty"`
	Again   bool                  `json:"again,omitempty"`
	State   rendezvous.EventState `json:"state,omitempty"`
	RunID   string                `json:"run_id,omitempty"`
	Seq     int64                 `json:"seq,omitempty"`
	Why     string                `json:"why,omitempty"`
}

// GetEvent is the request of events.get.
type GetEvent struct {
	Source      string `json:"source"`
	ID          string `json:"id"`
	IncludeData bool   `json:"include_data,omitempty"`
}

// Event is the reply of events.get.
type Event struct {
	Source        string                `json:"source"`
	ID            string                `json:"id"`
	Type          string                `json:"type"`
	State         rendezvous.EventState `json:"state"`
	Number        int64                 `json:"number"`
	Keys          []rendezvous.Key      `json:"keys"`
	Target        string                `json:"target,omitempty"` // the run it is for
	WorkflowID    string                `json:"workflow_id,omitempty"`
	RunID         string                `json:"run_id,omitempty"`
	Effect        string                `json:"effect,omitempty"`
	Seq           int64                 `json:"seq,omitempty"`
	Reason        rendezvous.DeadReason `json:"reason,omitempty"`
	Detail        string                `json:"detail,omitempty"`
	Requeues      int                   `json:"requeues,omitempty"`
	MintedBy      *rendezvous.Operator  `json:"minted_by,omitempty"`
	OfferFailures int                   `json:"offer_failures,omitempty"`
	ReceivedAt    Time                  `json:"received_at"`
	LiveSince     Time                  `json:"live_since,omitzero"`
	ExpiresAt     Time                  `json:"expires_at,omitzero"`
	ClaimedAt     Time                  `json:"claimed_at,omitzero"`
	DeadAt        Time                  `json:"dead_at,omitzero"`
	Erased        bool                  `json:"erased"`
	Payload       *Payload              `json:"payload,omitempty"`
}

// EraseEvent is the request of events.erase.
type EraseEvent struct {
	Source   string               `json:"source"`
	ID       string               `json:"id"`
	Operator *rendezvous.Operator `json:"operator,omitempty"`
}

// Erased is the reply of events.erase.
type Erased struct {
	Existed   bool                  `json:"existed"`
	Was       rendezvous.EventState `json:"was,omitempty"`
	Reopened  *rendezvous.WaitID    `json:"reopened,omitempty"`
	Journaled *Journaled            `json:"journaled,omitempty"`
}

// Journaled names the record that holds a consumed event's payload.
type Journaled struct {
	WorkflowID string `json:"workflow_id"`
	Seq        int64  `json:"seq"`
}

package wire

import "github.com/rendezvous-events/rendezvous"

// RegisterWait is the request of waits.register, which is runs.await.
type RegisterWait struct {
	RunID   string           `json:"run_id"`
	Epoch   int64            `json:"epoch,omitempty"`
	Effect  string           `json:"effect"`
	Attempt int              `json:"attempt,omitempty"`
	Type    string           `json:"type"`
	Keys    []rendezvous.Key `json:"keys"`
	From    string           `json:"from,omitempty"`
	// Deadline or DeadlineAfterMS, at most one: an event answers that is received before it. One that is over asks for what is there, and ends at once.
	Deadline        *Due   `json:"deadline,omitempty"`
	DeadlineAfterMS *int64 `json:"deadline_after_ms,omitempty"`
}

// Registered is the reply of waits.register: exactly one of Answered, Waiting, TimedOut and Withdrawn is there.
type Registered struct {
	Answered  *Record `json:"answered,omitempty"`
	Waiting   bool    `json:"waiting,omitempty"`
	TimedOut  bool    `json:"timed_out,omitempty"`
	Withdrawn bool    `json:"withdrawn,omitempty"`
	Parked    bool    `json:"parked,omitempty"` // waiting: an event is claimed for it, the run's lease delays the answer
	Seq       int64   `json:"seq"`
	Number    int64   `json:"number,omitempty"`
}

// ListWaits is the request of waits.list.
type ListWaits struct {
	Parked bool       `json:"parked,omitempty"`
	RunID  string     `json:"run_id,omitempty"`
	Filter WaitFilter `json:"filter,omitzero"`
	Limit  int        `json:"limit,omitempty"`
	Cursor string     `json:"cursor,omitempty"`
}

// WaitFilter is the filter of waits.list.
type WaitFilter struct {
	Type  string               `json:"type,omitempty"`
	Key   *rendezvous.Key      `json:"key,omitempty"`
	State rendezvous.WaitState `json:"state,omitempty"`
}

// WaitList is the reply of waits.list.
type WaitList struct {
	Waits      []Wait `json:"waits"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// Wait is a row of waits.list.
type Wait struct {
	RunID         string               `json:"run_id"`
	WorkflowID    string               `json:"workflow_id"`
	Effect        string               `json:"effect"`
	Attempt       int                  `json:"attempt"`
	Type          string               `json:"type"`
	Keys          []rendezvous.Key     `json:"keys"`
	From          string               `json:"from,omitempty"`
	Deadline      Time                 `json:"deadline,omitzero"`
	State         rendezvous.WaitState `json:"state"`
	Attempts      int                  `json:"attempts"`
	NextAttemptAt Time                 `json:"next_attempt_at,omitzero"`
	LastError     string               `json:"last_error,omitempty"`
	Event         *rendezvous.EventID  `json:"event,omitempty"`
	Number        int64                `json:"number"`
	RegisteredAt  Time                 `json:"registered_at"`
	Corrupt       bool                 `json:"corrupt,omitempty"`
}

// WithdrawWait is the request of waits.withdraw.
type WithdrawWait struct {
	RunID  string `json:"run_id"`
	Effect string `json:"effect"`
	Epoch  int64  `json:"epoch,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Withdrawn is the reply of waits.withdraw.
type Withdrawn struct {
	Outcome  string              `json:"outcome"`
	Seq      int64               `json:"seq,omitempty"`
	Released *rendezvous.EventID `json:"released,omitempty"`
	Dead     *rendezvous.EventID `json:"dead,omitempty"`
}

// RetryWait is the request of waits.retry.
type RetryWait struct {
	RunID    string               `json:"run_id"`
	Effect   string               `json:"effect"`
	Operator *rendezvous.Operator `json:"operator,omitempty"`
}

// Retried is the reply of waits.retry.
type Retried struct {
	Outcome string `json:"outcome"`
}

// Outcomes of waits.retry.
const (
	RetriedNow     = "retried"
	NotQuarantined = "not_quarantined" // nothing to do: it goes on by itself, is closed, or never was
)

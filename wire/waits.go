package wire

import (
	"encoding/json"

	"github.com/rendezvous-events/rendezvous"
)

// RegisterWait is the request of waits.register, which is runs.await.
type RegisterWait struct {
	RunID           string           `json:"run_id"`
	Epoch           int64            `json:"epoch,omitempty"`
	Effect          string           `json:"effect"`
	Attempt         int              `json:"attempt,omitempty"`
	Type            string           `json:"type"`
	Keys            []rendezvous.Key `json:"keys"`
	From            string           `json:"from,omitempty"`
	Deadline        json.RawMessage  `json:"deadline,omitempty"`          // refused by name until deadlines are built
	DeadlineAfterMS json.RawMessage  `json:"deadline_after_ms,omitempty"` // refused by name until deadlines are built
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

// Info is the reply of system.info.
type Info struct {
	Version string  `json:"version"`
	Go      string  `json:"go"`
	Store   string  `json:"store"` // the kind of store: memory, sqlite, postgres
	Tenant  string  `json:"tenant"`
	Now     Time    `json:"now"`              // the store's now
	Depths  *Depths `json:"depths,omitempty"` // of all tenants: operators and admins only
}

// Depths counts what is live, plane-wide.
type Depths struct {
	LiveEvents       int  `json:"live_events"`
	OpenWaits        int  `json:"open_waits"`
	ParkedWaits      int  `json:"parked_waits"`
	QuarantinedWaits int  `json:"quarantined_waits"`
	Woken            int  `json:"woken"`
	OldestLiveEvent  Time `json:"oldest_live_event,omitzero"`
	OldestParked     Time `json:"oldest_parked,omitzero"`
	OldestWoken      Time `json:"oldest_woken,omitzero"`
	Capped           bool `json:"capped,omitempty"`
}

// Check is the reply of system.check: ok, degraded or failing, with reasons.
type Check struct {
	Verdict string   `json:"verdict"`
	Reasons []string `json:"reasons"`
}

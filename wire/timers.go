package wire

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Due is an instant at which something is due, as a request gives it: RFC 3339. Finer digits than microseconds are rounded up. Whoever reads it names its
// field in the error, which [Time] cannot.
type Due string

// DueAt is the wire form of t; nil, for none, of the zero time.
func DueAt(t time.Time) *Due {
	if t.IsZero() {
		return nil
	}
	return new(Due(rendezvous.FormatInstant(rendezvous.DueInstant(t))))
}

// Instant is the instant meant, the zero time for none.
func (d *Due) Instant(field string) (time.Time, error) {
	if d == nil {
		return time.Time{}, nil
	}
	t, err := rendezvous.ParseInstant(field, string(*d))
	if err != nil {
		return time.Time{}, err
	}
	t = rendezvous.DueInstant(t)
	return t, rendezvous.CheckInstant(field, t)
}

// Timer is a row of timers.list: a live arming.
type Timer struct {
	RunID      string                `json:"run_id"`
	WorkflowID string                `json:"workflow_id"`
	TimerID    string                `json:"timer_id"`
	Class      rendezvous.TimerClass `json:"class,omitempty"`
	Effect     string                `json:"effect,omitempty"` // class wait
	FireAt     Time                  `json:"fire_at"`
	ArmedSeq   int64                 `json:"armed_seq"`
	DueAt      Time                  `json:"due_at,omitzero"` // when it is tried next: later than fire_at once it met a leased run, or failed
	Parks      int                   `json:"parks,omitempty"` // how often it met a leased run
	Attempts   int                   `json:"attempts,omitempty"`
	LastError  string                `json:"last_error,omitempty"`
	Holder     string                `json:"holder,omitempty"`
	HeldUntil  Time                  `json:"held_until,omitzero"`
	Corrupt    bool                  `json:"corrupt,omitempty"`
}

// ArmTimer is the request of timers.arm: fire_at or after_ms, exactly one.
type ArmTimer struct {
	RunID   string `json:"run_id"`
	Epoch   int64  `json:"epoch,omitempty"`
	TimerID string `json:"timer_id"`
	FireAt  *Due   `json:"fire_at,omitempty"`
	AfterMS *int64 `json:"after_ms,omitempty"` // from its record on, 0..100 years
	BatchID string `json:"batch_id"`
}

// Armed is the reply of timers.arm.
type Armed struct {
	ArmedSeq int64 `json:"armed_seq"`
	FireAt   Time  `json:"fire_at"`
	Again    bool  `json:"again,omitempty"`
}

// CancelTimer is the request of timers.cancel.
type CancelTimer struct {
	RunID   string `json:"run_id"`
	Epoch   int64  `json:"epoch,omitempty"`
	TimerID string `json:"timer_id"`
	BatchID string `json:"batch_id"`
	Reason  string `json:"reason,omitempty"`
}

// CancelledTimer is the reply of timers.cancel: cancelled, fired or not_armed, and the record that says so.
type CancelledTimer struct {
	Outcome string `json:"outcome"`
	Seq     int64  `json:"seq,omitempty"`
	Again   bool   `json:"again,omitempty"`
}

// ListTimers is the request of timers.list: of a workflow, or of a run.
type ListTimers struct {
	WorkflowID string                `json:"workflow_id,omitempty"`
	RunID      string                `json:"run_id,omitempty"`
	Class      rendezvous.TimerClass `json:"class,omitempty"`
	Limit      int                   `json:"limit,omitempty"`
	Cursor     string                `json:"cursor,omitempty"`
}

// TimerList is the reply of timers.list, soonest first.
type TimerList struct {
	Timers     []Timer `json:"timers"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

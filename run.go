package rendezvous

import "time"

// Cause says why a run was woken (api.md section 3).
type Cause string

// The closed set of causes.
const (
	CauseStarted      Cause = "started"
	CauseAnswered     Cause = "answered"
	CauseTimer        Cause = "timer"
	CauseTimedOut     Cause = "timed_out"
	CauseWithdrawn    Cause = "withdrawn"
	CauseCancelled    Cause = "cancelled"
	CauseLeaseExpired Cause = "lease_expired"
	CauseReleased     Cause = "released"
	CauseResumed      Cause = "resumed"
)

// LeaseEnd says how a lease ended (runs.md section 1).
type LeaseEnd string

// The closed set of ends of a lease.
const (
	LeaseSuspended LeaseEnd = "suspended"
	LeasePaused    LeaseEnd = "paused"
	LeaseReleased  LeaseEnd = "released"
	LeaseReclaimed LeaseEnd = "reclaimed"
	LeaseRevoked   LeaseEnd = "revoked"
)

// Bounds of a lease's time to live (RN-27).
const (
	MinLease     = 2 * time.Second
	MaxLease     = time.Hour
	DefaultLease = 30 * time.Second
)

// RequestKind is what somebody asked of a run that is driven by somebody else.
type RequestKind string

// The closed set of requests.
const (
	RequestPause  RequestKind = "pause"
	RequestCancel RequestKind = "cancel"
)

// Request is a pending pause or cancel: the first asker stands (RN-54).
type Request struct {
	Kind     RequestKind `json:"kind"`
	Operator *Operator   `json:"operator,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	At       time.Time   `json:"at"`
}

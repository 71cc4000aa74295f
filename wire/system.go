package wire

import "github.com/rendezvous-events/rendezvous"

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
	LiveEvents       int `json:"live_events"`
	OpenWaits        int `json:"open_waits"`
	ParkedWaits      int `json:"parked_waits"`
	QuarantinedWaits int `json:"quarantined_waits"`
	Woken            int `json:"woken"`
	Timers           int `json:"timers"`     // live armings of every class
	DueTimers        int `json:"due_timers"` // those of them that are due
	DuePushes        int `json:"due_pushes"`
	FailingPushes    int `json:"failing_pushes"` // live ones whose last attempts failed
	ParkedPushes     int `json:"parked_pushes"`
	DeadLetters      int `json:"dead_letters"`
	// Dead counts the dead letters by reason.
	Dead            map[rendezvous.DeadReason]int `json:"dead,omitempty"`
	OldestLiveEvent Time                          `json:"oldest_live_event,omitzero"`
	OldestParked    Time                          `json:"oldest_parked,omitzero"`
	OldestWoken     Time                          `json:"oldest_woken,omitzero"`
	OldestDueTimer  Time                          `json:"oldest_due_timer,omitzero"`
	OldestDuePush   Time                          `json:"oldest_due_push,omitzero"`
	Capped          bool                          `json:"capped,omitempty"`
}

// Check is the reply of system.check: ok, degraded or failing, with reasons.
type Check struct {
	Verdict string   `json:"verdict"`
	Reasons []string `json:"reasons"`
}

// Verdicts of system.check.
const (
	CheckOK       = "ok"
	CheckDegraded = "degraded" // it works; a human should look
	CheckFailing  = "failing"  // the store cannot commit
)

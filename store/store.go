package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Store is the whole contract. Workers ask for the roles they need and no more.
type Store interface {
	Queue
	// Tenant is the handle of one tenant. A name that is no tenant's is ErrInvalid.
	Tenant(name string) (Tenant, error)
	// Ping answers nil when the store can commit now.
	Ping(ctx context.Context) error
	// Close waits for verbs under way and frees what the store holds. Calling it again does nothing.
	Close() error
}

// Queue is the plane-wide side, for workers and doors: the verbs marked [Q].
type Queue interface {
	Intake
	Registrar
	Matcher
	Redeliverer
	Repairer
	Sweeper
	Pools
	Enumerations
	Retainer
	PushQueue
	// Now is the store's now.
	Now(ctx context.Context) (time.Time, error)
	// Depths counts what is live, for gauges.
	Depths(ctx context.Context) (Depths, error)
}

// Tenant is the handle of one tenant.
type Tenant interface {
	// Name is the tenant the handle serves. No I/O (EV-17).
	Name() string
	Events
	Waits
	Parked
	Runs
	Leases
	Histories
	DeadLetters
	Explainer
	Timers
	PushStore
}

// WorkflowRef says where something happened.
type WorkflowRef struct {
	WorkflowID string
	RunID      string
}

// EventRef names an event plane-wide, with what a notice about it needs.
type EventRef struct {
	Tenant string
	rendezvous.EventID
	Keys  []rendezvous.Key // for the notice's partition
	Trace rendezvous.Trace
}

// WaitRef names a wait plane-wide, with what a notice about it needs.
type WaitRef struct {
	Tenant string
	rendezvous.WaitID
	Keys  []rendezvous.Key
	Trace rendezvous.Trace
}

// ResumeRef is a run nobody drives that has news: what a RESUME notice says (runs.md section 6).
type ResumeRef struct {
	Tenant     string
	Queue      string
	WorkflowID string
	RunID      string
	Seq        int64
	Cause      rendezvous.Cause
	Notices    int                // how many notices went out for this news before this one
	Links      []rendezvous.Trace // contexts of the event and the wait behind the news: the resume is linked to both
}

// Notices is what to send after a verb's commit: at most one RESUME per run.
type Notices struct {
	Events []EventRef // to MATCH: live events to offer
	Waits  []WaitRef  // to MATCH: open waits to offer
	Resume []ResumeRef
	Timers []TimerRef // to TIMER: an instant nearer than two probe periods was armed
	Push   []PushRef  // to PUSH: the write woke rows of the run, or made some that are due
}

// PushRef is a run with records that its registrations take: what a PUSH notice says (messaging.md section 1).
type PushRef struct {
	Tenant string
	WorkflowRef
	Head int64
}

// TimerRef is a shard in which an early instant was armed: what a TIMER notice says (timers.md section 2).
type TimerRef struct {
	Shard  int
	FireAt time.Time
}

// Empty reports whether there is nothing to send.
func (n Notices) Empty() bool {
	return len(n.Events)+len(n.Waits)+len(n.Resume)+len(n.Timers)+len(n.Push) == 0
}

// Append adds o's notices.
func (n *Notices) Append(o Notices) {
	n.Events = append(n.Events, o.Events...)
	n.Waits = append(n.Waits, o.Waits...)
	n.Resume = append(n.Resume, o.Resume...)
	n.Timers = append(n.Timers, o.Timers...)
	n.Push = append(n.Push, o.Push...)
}

// Depths counts live rows. Counts are exact to DepthCap and then stay there, Capped says so.
type Depths struct {
	LiveEvents, OpenWaits, ParkedWaits, QuarantinedWaits, Woken, Timers, DueTimers, DuePushes, FailingPushes, ParkedPushes int
	OldestLiveEvent, OldestParked, OldestWoken, OldestDueTimer, OldestDuePush                                              time.Time // zero when there is none
	// Dead letters, which nobody purged: all, and by reason. Each count is exact to DepthCap on its own.
	DeadLetters int
	Dead        map[rendezvous.DeadReason]int
	Capped      bool
}

// DepthCap is where Depths stops counting.
const DepthCap = 10_000

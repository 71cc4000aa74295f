package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Arming names one arming of a timer: two armings of one timer id for the same instant differ in ArmedSeq (timers.md section 1).
type Arming struct {
	FireAt   time.Time
	ArmedSeq int64 // seq of the record that armed it
}

// Timer is a live arming.
type Timer struct {
	Tenant string
	WorkflowRef
	TimerID string
	Class   rendezvous.TimerClass
	Effect  string // class wait: the wait's effect key
	Shard   int
	Arming
	DueAt     time.Time // equals FireAt when armed, later after parking or failure
	Attempts  int       // consecutive failures
	LastError string
	Parks     int // how often it met a leased run
	Holder    string
	HeldUntil time.Time // zero: not held
	Trace     rendezvous.Trace
	Corrupt   error // the row does not decode; only the ids are known (R9)
}

// Arm is a timer to arm: FireAt or After, exactly one of the two.
type Arm struct {
	RunID   string
	Epoch   int64 // needed while the run is leased; 0 is none
	TimerID string
	FireAt  time.Time
	After   *time.Duration // 0..100 years from the append's recorded_at
	BatchID string
	Trace   rendezvous.Trace // of the arming request: the fire is linked to it
}

// Armed is the answer of ArmTimer.
type Armed struct {
	Arming
	Again   bool // the first outcome of a known batch id
	Notices Notices
}

// CancelTimerOutcome is how a timer stands after CancelTimer.
type CancelTimerOutcome string

// Outcomes of CancelTimer.
const (
	TimerCancelled CancelTimerOutcome = "cancelled"
	TimerFired     CancelTimerOutcome = "fired" // it had fired, or been cancelled, before
	TimerNotArmed  CancelTimerOutcome = "not_armed"
)

// CancelledTimer is the answer of CancelTimer.
type CancelledTimer struct {
	Outcome CancelTimerOutcome
	Seq     int64 // of the record that cancelled or fired it
	Again   bool
}

// ScheduleOutcome is what ScheduleTimer did.
type ScheduleOutcome string

// Outcomes of ScheduleTimer and RetireTimer.
const (
	ScheduleArmed      ScheduleOutcome = "armed"
	ScheduleUnchanged  ScheduleOutcome = "unchanged"
	ScheduleRetired    ScheduleOutcome = "retired"
	ScheduleSuperseded ScheduleOutcome = "superseded"
)

// TimerCounts counts a tenant's live armings of one class.
type TimerCounts struct {
	Pending, Due, Parked, Failing int
	OldestDue                     time.Time // due_at; zero when nothing is due
}

// TimerPage is a page of timers.
type TimerPage struct {
	Timers     []Timer
	NextCursor string
}

// Timers is a tenant's view of its timers.
type Timers interface {
	// ArmTimer records TimerStarted at the head it finds. Without an epoch on a leased run: lease_held. Again with the same batch id: the first answer.
	ArmTimer(ctx context.Context, a Arm, at time.Time) (Armed, error)
	// CancelTimer records TimerCancelled for the timer's live arming, or says why there is none (TM-16, TM-32). Again: the first answer.
	CancelTimer(ctx context.Context, run string, epoch int64, timerID, batchID, reason string, at time.Time) (CancelledTimer, error)
	// ListTimers lists live armings of a workflow, or of a run, soonest first; class "" is any. Default 100, maximum 1,000.
	ListTimers(ctx context.Context, ref WorkflowRef, class rendezvous.TimerClass, limit int, cursor string) (TimerPage, error)
	// CountTimers counts the tenant's live armings by class: true counts.
	CountTimers(ctx context.Context) (map[rendezvous.TimerClass]TimerCounts, error)
	// ScheduleTimer writes the row of an arming that the history already holds (TM-9): repair and import.
	ScheduleTimer(ctx context.Context, workflowID, timerID string, a Arming) (ScheduleOutcome, error)
	// RetireTimer deletes the row only if it carries exactly that arming (TM-5..TM-8). Absent is retired too.
	RetireTimer(ctx context.Context, workflowID, timerID string, a Arming) (ScheduleOutcome, error)
}

// TimerPosition is the last row of a page of ExpiredTimers.
type TimerPosition struct {
	FireAt                      time.Time
	Tenant, WorkflowID, TimerID string
}

// Scope narrows an enumeration: to shards, to a tenant; zero parts mean all that the handle owns.
type Scope struct {
	Shards []int
	Tenant string
}

// ShardEpoch is a shard with the epoch under which its caller owns it.
type ShardEpoch struct {
	Shard int
	Epoch int64
}

// ShardNumbers are the shards of a list, as they come.
func ShardNumbers(shards []ShardEpoch) []int {
	numbers := make([]int, len(shards))
	for i, s := range shards {
		numbers[i] = s.Shard
	}
	return numbers
}

// FireOutcome is what became of a due timer (timers.md section 4).
type FireOutcome string

// Outcomes of FireDueTimers and FireTimer. Those of FireTimer alone come last.
const (
	FireFired     FireOutcome = "fired"
	FireAnswered  FireOutcome = "answered"  // a wait's deadline: an event that came in time is the answer
	FireContested FireOutcome = "contested" // a wait's deadline: the wait is to be offered first (O3)
	FireParked    FireOutcome = "parked"    // the run is leased
	FireDropped   FireOutcome = "dropped"   // no live arming stood behind the row
	FireFailed    FireOutcome = "failed"    // Err says why; the row comes again

	FireAlready    FireOutcome = "already"
	FireSuperseded FireOutcome = "superseded"
	FireNotDue     FireOutcome = "not_due"
	FireLost       FireOutcome = "lost" // the token is not valid now
)

// Fire is what became of one due timer.
type Fire struct {
	Timer
	Outcome   FireOutcome
	Seq       int64 // Fired, Answered: the record
	Queue     string
	Retired   *Retired      // Fired, class run
	Remaining time.Duration // NotDue; Parked: of the lease
	Stuck     bool          // Failed: 16 failures or more in a row
	Err       error
}

// FiredPage is the answer of FireDueTimers.
type FiredPage struct {
	Fires   []Fire
	Lost    []int             // shards that did not pass the fence
	Full    bool              // more is due
	Busy    int               // due timers whose workflows were being written
	NextDue map[int]time.Time // per shard that passed: the earliest instant that something can be taken; absent for none. nil: it could not be read, ask NextDue
	Now     time.Time         // the store's
	Notices Notices
}

// DueInstants is the answer of NextDue.
type DueInstants struct {
	NextDue map[int]time.Time // absent: nothing is armed in the shard
	Now     time.Time         // the store's
}

// HeldTimer is a due timer handed out with a hold.
type HeldTimer struct {
	Timer
	Token int64
}

// TimerRepairs counts what ReconcileTimers mended.
type TimerRepairs struct{ Missing, Orphan, Count, Unreadable int }

// Reconciled is the answer of ReconcileTimers.
type Reconciled struct {
	Next    *WorkflowPosition // nil: the walk is over
	Looked  int
	Repairs TimerRepairs
	Lost    []int
	Notices Notices
}

// WorkflowPosition is the last row of a page of an enumeration.
type WorkflowPosition struct {
	Shard      int
	Tenant     string
	WorkflowID string
}

// WorkflowHead is a row of an enumeration (history.md section 7).
type WorkflowHead struct {
	WorkflowPosition
	Head   int64
	Status rendezvous.Status
}

// Enumerations walk workflows and timers over the handle's owned shards: for workers and repair jobs. They decode no record (HI-24..HI-28).
// Default 500, maximum 10,000; after is the last row of the previous page, nil to begin. A shard outside the scope is fenced.
type Enumerations interface {
	ListWorkflowIDs(ctx context.Context, s Scope, after *WorkflowPosition, limit int) ([]WorkflowPosition, error)
	StreamHeads(ctx context.Context, s Scope, after *WorkflowPosition, limit int) ([]WorkflowHead, error)
	ListActive(ctx context.Context, s Scope, after *WorkflowPosition, limit int) ([]WorkflowHead, error)
	ListPaused(ctx context.Context, s Scope, after *WorkflowPosition, limit int) ([]WorkflowHead, error)
	// ExpiredTimers answers rows with fire_at ≤ asOf, inclusive, by (fire_at, tenant, workflow id, timer id). A read: held and parked rows are there, marked.
	ExpiredTimers(ctx context.Context, asOf time.Time, s Scope, after *TimerPosition, limit int) ([]Timer, error)
	// NextDue answers per shard the earliest instant that a row can be taken. One index probe per shard.
	NextDue(ctx context.Context, shards []int) (DueInstants, error)
}

// TimerQueue is the timer-worker's role (timers.md section 4). Every verb is fenced by its shards' epochs.
type TimerQueue interface {
	// FireDueTimers selects, records and retires due timers in one transaction. Default 500, maximum 2,000. None of the shards passes: fenced.
	FireDueTimers(ctx context.Context, shards []ShardEpoch, limit int) (FiredPage, error)
	// ClaimDueTimers hands due timers out with holds of 1..300 s (0: 60 s), for handlers that act outside the store.
	ClaimDueTimers(ctx context.Context, shards []ShardEpoch, hold time.Duration, limit int) ([]HeldTimer, error)
	// FireTimer records one claimed timer.
	FireTimer(ctx context.Context, t HeldTimer) (Fire, Notices, error)
	// ReleaseTimers gives claimed rows back; unknown tokens are ignored.
	ReleaseTimers(ctx context.Context, tokens []int64) error
	// ReconcileTimers counts the rows of live workflows against their histories and mends differences. Default 500, maximum 5,000 workflows.
	ReconcileTimers(ctx context.Context, shards []ShardEpoch, deep bool, after *WorkflowPosition, limit int) (Reconciled, error)
}

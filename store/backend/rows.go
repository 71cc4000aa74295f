package backend

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// WorkflowKey names a workflow plane-wide.
type WorkflowKey struct{ Tenant, ID string }

// RunKey names a run plane-wide.
type RunKey struct{ Tenant, ID string }

// EventKey names an event plane-wide.
type EventKey struct{ Tenant, Source, ID string }

// WaitKey names a wait, and so an effect, plane-wide.
type WaitKey struct{ Tenant, RunID, Effect string }

// BatchKey names a batch plane-wide.
type BatchKey struct{ Tenant, RunID, ID string }

// TargetKey is the key under which a live event targeted at a run stands in the match index: no namespace is empty otherwise.
func TargetKey(run string) rendezvous.Key { return rendezvous.Key{Value: run} }

// Workflow is a workflow's row.
type Workflow struct {
	Tenant, ID    string
	Shard         int
	RunID         string // the current run
	Type, Queue   string
	Status        rendezvous.Status
	Head          int64
	CreatedAt     time.Time // of the first run
	StartedAt     time.Time // of the current run
	ClosedAt      time.Time
	UpdatedAt     time.Time // recorded_at of the last record
	Parent        string
	FailureCode   string
	FailureReason string
	FailedEffect  string
	OpenEffects   int // of the current run; waits not counted
	OpenWaits     int
	LiveTimers    int    // armings the history says are live, of every class
	Registrations int    // push registrations of its runs
	Reopened      int64  // seq of the current run's last RunReopened, 0 for none
	LeaseOwner    string // "" when free
	LeaseEpoch    int64
	LeaseExpires  time.Time
	LeaseEnded    rendezvous.LeaseEnd
	AcquireID     string
	Reclaims      int
	Pause, Cancel *rendezvous.Request
	PausedBy      *rendezvous.Operator // who asked for the pause that holds
	PausedAt      time.Time
	Corrupt       error // the row does not decode; only the ids are good (R9)
}

// Key is the row's key.
func (w *Workflow) Key() WorkflowKey { return WorkflowKey{w.Tenant, w.ID} }

// Run is a run's row.
type Run struct {
	Tenant, ID  string
	WorkflowID  string
	PreviousRun string
	NextRun     string
	Status      rendezvous.Status // running until it ends; whether it is paused now is the workflow row's to say
	FirstSeq    int64
	LastSeq     int64 // written when the run ends
	StartedAt   time.Time
	ClosedAt    time.Time
	SealedAt    time.Time
	Outcome     rendezvous.Kind
	StartDigest []byte // of the request that started it, for repeats
	Retired     []byte // JSON of what its conclusion retired, for repeats
}

// Key is the row's key.
func (r *Run) Key() RunKey { return RunKey{r.Tenant, r.ID} }

// Record is a record with the history it belongs to.
type Record struct {
	Tenant, WorkflowID string
	rendezvous.Record
	// PayloadOf copies payload and content type from the stored event of that number, in the same statement: no payload leaves the store. 0: none.
	PayloadOf int64
}

// RecordKey names a record plane-wide.
type RecordKey struct {
	Tenant, WorkflowID string
	Seq                int64
}

// Batch is a named batch's first outcome.
type Batch struct {
	Tenant, RunID, ID string
	Digest            []byte // SHA-256 of the request as sent
	FirstSeq, LastSeq int64  // 0, 0 for an empty batch
	Outcome           []byte // JSON of the verb's answer
}

// Key is the row's key.
func (b *Batch) Key() BatchKey { return BatchKey{b.Tenant, b.RunID, b.ID} }

// Remnant stands for a pruned run whose records and batches are not gone yet. While it is there nobody starts a workflow or a run of its ids.
type Remnant struct {
	Tenant, RunID, WorkflowID string
	FirstSeq, LastSeq         int64 // its records; the workflow's first run has those before, the last those behind
}

// Key is the row's key.
func (r *Remnant) Key() RunKey { return RunKey{r.Tenant, r.RunID} }

// Event is an event's row.
type Event struct {
	Version    int64 // of the row as read
	Keyed      bool  // the row as read has key rows
	Listed     bool  // the row as read is a dead letter that lists show
	Number     int64
	Tenant     string
	Source, ID string
	Type       string
	Keys       []rendezvous.Key
	// ContentType and Payload are filled in only where a read says so; HasPayload says whether one is stored.
	ContentType string
	Payload     []byte
	HasPayload  bool
	PayloadSize int    // of the stored payload in bytes, filled in by every read
	Shed        bool   // on Apply: the payload goes
	Rekey       bool   // on Apply: the event stays live under other keys (its Target changed): its key rows are made anew
	Digest      []byte // nil once erased
	ReceivedAt  time.Time
	LiveSince   time.Time
	ExpiresAt   time.Time
	Target      string // the run it is for
	State       rendezvous.EventState

	ClaimRun, ClaimEffect string // claimed
	ClaimedAt             time.Time
	Workflow, Run, Effect string // consumed
	Seq                   int64
	DeadReason            rendezvous.DeadReason
	DeadDetail            string
	DeadAt                time.Time // dead; reason and detail stay after a requeue, as those of the last death
	Erased                bool
	OfferFailures         int
	Take                  int64 // token of the latest offer take
	TakeUntil             time.Time
	TakeOpen              bool // no offer settled the take yet
	Takes                 int  // takes in a row that led to nothing, for their growing hold
	Requeues              int
	Purged                bool                 // dead for good: without payload and keys, and in no list
	Op                    string               // the last requeue or purge
	OpBy                  *rendezvous.Operator // who asked for it
	Minted                *rendezvous.Operator
	Trace                 rendezvous.Trace
	Corrupt               error // the row does not decode; identity and number are good (R9)
}

// Key is the row's key.
func (e *Event) Key() EventKey { return EventKey{e.Tenant, e.Source, e.ID} }

// Live reports whether the event is to have key rows.
func (e *Event) Live() bool { return e.State == rendezvous.EventLive }

// Dead reports whether lists are to show the event as a dead letter.
func (e *Event) Dead() bool { return e.State == rendezvous.EventDead && !e.Purged }

// MatchKeys are the keys under which the event stands in the match index while live.
func (e *Event) MatchKeys() []rendezvous.Key {
	switch {
	case e.Target != "":
		return []rendezvous.Key{TargetKey(e.Target)}
	case len(e.Keys) == 0:
		return []rendezvous.Key{{}}
	}
	return e.Keys
}

// Wait is a wait's row.
type Wait struct {
	Version      int64 // of the row as read
	Keyed        bool  // the row as read has key rows
	Number       int64
	Tenant       string
	RunID        string
	Effect       string
	WorkflowID   string
	Shard        int
	Attempt      int
	Type         string
	Keys         []rendezvous.Key
	From         string
	Trace        rendezvous.Trace
	RegisteredAt time.Time // when it was first registered
	Deadline     time.Time // zero: none
	OpenSince    time.Time // when it last became matchable: registration or reopening

	// Only while it holds a claim.
	Held          *HeldEvent
	ParkedAt      time.Time
	Attempts      int
	NextAttemptAt time.Time
	LastError     string
	Take          int64 // token of the latest take
	TakeUntil     time.Time
	TakeSettled   bool
	QuarantinedAt time.Time
	Corrupt       error // the row does not decode; key and number are good (R9)
}

// HeldEvent is the event a parked wait holds.
type HeldEvent struct {
	Number     int64
	Source, ID string
	// Claim orders the claims of a run, oldest first (RN-34, I9): a number of the waits' sequence, drawn under the run's lock when it was made.
	Claim int64
}

// Key is the row's key.
func (w *Wait) Key() WaitKey { return WaitKey{w.Tenant, w.RunID, w.Effect} }

// Open reports whether the wait is to have key rows: it holds no event.
func (w *Wait) Open() bool { return w.Held == nil }

// Woken marks a run with news nobody drives.
type Woken struct {
	Tenant, WorkflowID string
	RunID, Queue       string
	Since              time.Time
	Cause              rendezvous.Cause
	Seq                int64
	Notices            int
	NextNoticeAt       time.Time
	Links              []rendezvous.Trace
	Anew               bool // on Apply: see Changes.Woken
}

// Key is the row's key.
func (w *Woken) Key() WorkflowKey { return WorkflowKey{w.Tenant, w.WorkflowID} }

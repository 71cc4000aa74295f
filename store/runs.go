package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Start is a run to start. Absent ids are minted; a caller that may retry names them.
type Start struct {
	WorkflowID  string
	RunID       string
	Type        string
	Queue       string // "" is the default queue
	Input       []byte // nil is none
	ContentType string
	Parent      string // a workflow id
	CodeVersion string
	// Deadline or DeadlineAfter, at most one: when the whole run is over, whoever drives it (timers.md section 5). In the future, else invalid.
	Deadline      time.Time
	DeadlineAfter *time.Duration
	// Push are registrations made in the starting transaction, at RunStarted where they name no other record; their run id is empty (PU-13).
	Push     []PutPush
	Operator *rendezvous.Operator
}

// Started is the answer of StartRun.
type Started struct {
	WorkflowRef
	Seq     int64 // of RunStarted
	First   bool  // false for a repeat
	Status  rendezvous.Status
	Notices Notices
}

// Append is a batch of 0..500 records, ≤ 16 MiB together, of one run. An empty one only checks.
type Append struct {
	RunID       string
	Epoch       int64 // needed while the run is leased; 0 is none
	ExpectedSeq int64 // the head the writer read
	BatchID     string
	WorkflowID  string // only for a first batch, which begins with RunStarted at expected seq 0
	Records     []rendezvous.Record
}

// Answer is an answer that a driver did not have yet when it wrote.
type Answer struct {
	Effect string
	Seq    int64
	Record rendezvous.Record
}

// Mail is what every answer to an epoch carries: pending requests and how many parked answers wait to be collected.
type Mail struct {
	Requests []rendezvous.Request
	Mail     int // parked, not quarantined waits of the run
}

// Appended is the answer of Append.
type Appended struct {
	FirstSeq int64 // 0 for an empty batch
	Head     int64
	Answers  []Answer
	Mail
	Again   bool // the first outcome of a known batch id
	Notices Notices
}

// Conclusion ends a run.
type Conclusion struct {
	RunID       string
	Epoch       int64
	ExpectedSeq int64
	BatchID     string
	Outcome     rendezvous.Status // completed, failed, cancelled; timed_out from the run's deadline on
	Result      []byte            // completed: the result; failed: the detail
	ContentType string
	Code        string // failed
	Reason      string // failed, cancelled
	Operator    *rendezvous.Operator
}

// Concluded is the answer of Conclude.
type Concluded struct {
	Seq     int64
	Retired Retired
	Again   bool
	Notices Notices
}

// Continuation ends a run and starts its workflow's next.
type Continuation struct {
	RunID       string
	Epoch       int64
	ExpectedSeq int64
	BatchID     string
	NextRun     string // "" is minted
	Input       []byte
	ContentType string
	Type        string // "" carries over
	Queue       string // "" carries over
	CodeVersion string
	// Deadline or DeadlineAfter are the next run's own; the ended run's never carries over.
	Deadline      time.Time
	DeadlineAfter *time.Duration
	Operator      *rendezvous.Operator
}

// Continued is the answer of ContinueAsNew. Seq is the successor's RunStarted.
type Continued struct {
	RunID   string
	Seq     int64
	Retired Retired
	Again   bool
	Notices Notices
}

// PauseOutcome is how a pause stands.
type PauseOutcome string

// Outcomes of PauseRun and ResumeRun.
const (
	PausePaused        PauseOutcome = "paused"
	PauseRequested     PauseOutcome = "requested" // the run is leased: written when the lease is given up
	PauseAlreadyPaused PauseOutcome = "already_paused"
	PauseResumed       PauseOutcome = "resumed"
	PauseTakenBack     PauseOutcome = "taken_back" // it was only requested
	PauseNotPaused     PauseOutcome = "not_paused"
)

// Paused is the answer of PauseRun and ResumeRun.
type Paused struct {
	Outcome  PauseOutcome
	Seq      int64
	Operator *rendezvous.Operator // AlreadyPaused, Requested: who asked first
	Since    time.Time            // AlreadyPaused
	Notices  Notices
}

// CancelOutcome is how a cancel stands.
type CancelOutcome string

// Outcomes of CancelRun.
const (
	CancelRequested CancelOutcome = "requested"
	CancelCancelled CancelOutcome = "cancelled"
	CancelClosed    CancelOutcome = "closed"
)

// Cancelled is the answer of CancelRun.
type Cancelled struct {
	Outcome CancelOutcome
	Request *rendezvous.Request // Requested: the first asker's
	Seq     int64               // Cancelled
	Retired Retired             // Cancelled
	Status  rendezvous.Status   // Closed: the run's own end
	Notices Notices
}

// Reopening lifts the seal of a workflow's last run, which failed or was cancelled.
type Reopening struct {
	RunID    string
	BatchID  string
	Operator *rendezvous.Operator
	Reason   string
}

// Reopened is the answer of ReopenRun.
type Reopened struct {
	Seq     int64 // of RunReopened
	Timers  int   // armings that are back, with their original instants
	Again   bool
	Notices Notices
}

// Runs is a tenant's writing side (runs.md sections 2, 5 and 6). Checks come in the order of section 2; the first that fails decides.
type Runs interface {
	// StartRun records RunStarted as seq 1 of a new workflow. Again with the same ids and content: the first answer and the present status (RN-13).
	// Other content: conflict naming the holder.
	StartRun(ctx context.Context, s Start, at time.Time) (Started, error)
	// Append writes records at ExpectedSeq. Again with the same batch id: the first outcome, whatever happened since (RN-6). Its answers have 16 MiB of
	// payload at most: waits whose events are over are parked and counted in Mail.
	Append(ctx context.Context, a Append, at time.Time) (Appended, error)
	// Conclude writes the terminal and seals, retires and releases in one transaction (RN-40..RN-43). Again: the first outcome.
	Conclude(ctx context.Context, c Conclusion, at time.Time) (Concluded, error)
	// ContinueAsNew ends the run and starts the next, the lease staying with its holder (RN-46..RN-48). Again: the first outcome.
	ContinueAsNew(ctx context.Context, c Continuation, at time.Time) (Continued, error)
	// CancelRun asks for a cancel, or with now revokes the lease and concludes (RN-54..RN-56). Again: Requested or Closed.
	CancelRun(ctx context.Context, run string, operator *rendezvous.Operator, reason string, now bool, at time.Time) (Cancelled, error)
	// ReopenRun lifts the seal; timers and the run's deadline return at their original instants, waits do not (RN-50, TM-21). From failed and cancelled
	// only: else conflict with the status. Again: the first outcome.
	ReopenRun(ctx context.Context, r Reopening, at time.Time) (Reopened, error)
	// PauseRun pauses a free run and asks it of a leased one (RN-51..RN-53). Again: AlreadyPaused.
	PauseRun(ctx context.Context, run string, operator *rendezvous.Operator, reason string, at time.Time) (Paused, error)
	// ResumeRun ends a pause and wakes the run. Again: NotPaused.
	ResumeRun(ctx context.Context, run string, operator *rendezvous.Operator, reason string, at time.Time) (Paused, error)
}

// Lease is the answer of AcquireLease and RenewLease.
type Lease struct {
	WorkflowID string
	Epoch      int64
	Head       int64
	ExpiresAt  time.Time
	Mail
}

// Collected is the answer of Collect.
type Collected struct {
	Records []rendezvous.Record
	Head    int64
	More    bool
	Notices Notices
}

// SuspendOutcome is what Suspend came to.
type SuspendOutcome string

// Outcomes of Suspend and ReleaseLease.
const (
	SuspendSuspended SuspendOutcome = "suspended"
	SuspendContinue  SuspendOutcome = "continue" // there is news the caller has not seen; the lease stays
	SuspendPaused    SuspendOutcome = "paused"
	SuspendReleased  SuspendOutcome = "released"
	SuspendNotHeld   SuspendOutcome = "not_held"
)

// Suspended is the answer of Suspend and ReleaseLease.
type Suspended struct {
	Outcome  SuspendOutcome
	Seq      int64               // Paused: the RunPaused record
	Records  []rendezvous.Record // Continue: all after seen_seq; Released: what was recorded
	Head     int64
	Requests []rendezvous.Request
	More     bool
	Notices  Notices
}

// Leases says who drives a run (runs.md section 3).
type Leases interface {
	// AcquireLease takes a free run: epoch + 1, woken cleared. Again with the same acquire id while that lease lives: the same epoch and expiry (RN-20).
	// Errors: lease_held (owner, remaining_ms), conflict (paused), sealed, invalid (ttl outside 2 s..1 h, 0 too: RN-27).
	AcquireLease(ctx context.Context, run, owner string, ttl time.Duration, acquireID string) (Lease, error)
	// RenewLease extends a live lease of exactly this owner and epoch; anything else is fenced (RN-25).
	RenewLease(ctx context.Context, run, owner string, epoch int64, ttl time.Duration) (Lease, error)
	// Collect records the run's parked answers, oldest claim first, ≤ 100 or 16 MiB (RN-34, RN-35). Again: nothing new.
	Collect(ctx context.Context, run string, epoch int64) (Collected, error)
	// Suspend gives the lease up unless there is something the caller has not seen (RN-31..RN-34, RN-58).
	Suspend(ctx context.Context, run string, epoch, seenSeq int64, knowsCancel bool) (Suspended, error)
	// ReleaseLease gives the lease up whatever is found, and wakes the run (RN-36). Again, or not good any more: NotHeld.
	ReleaseLease(ctx context.Context, run string, epoch int64) (Suspended, error)
}

// HistoryPage is a page of records.
type HistoryPage struct {
	Records []rendezvous.Record
	Head    int64 // 0 when there is no history
	More    bool
}

// RunSummary is a run's row (history.md section 6).
type RunSummary struct {
	RunID       string
	PreviousRun string
	Status      rendezvous.Status
	FirstSeq    int64
	LastSeq     int64 // the head while the run goes on
	StartedAt   time.Time
	ClosedAt    time.Time // zero: not closed
	Outcome     rendezvous.Kind
}

// Workflow is a workflow's row (history.md section 6): what lists and Describe answer.
type Workflow struct {
	WorkflowID     string
	Shard          int
	RunID          string
	Type, Queue    string
	Status         rendezvous.Status
	Head           int64
	CreatedAt      time.Time
	StartedAt      time.Time
	ClosedAt       time.Time
	UpdatedAt      time.Time
	Parent         string
	FailureCode    string
	FailureReason  string
	FailedEffect   string
	OpenEffects    int
	OpenWaits      int
	LiveTimers     int
	Registrations  int    // push registrations of its runs
	LeaseOwner     string // "" when free
	LeaseEpoch     int64
	LeaseRemaining time.Duration
	Reclaims       int
	Requests       []rendezvous.Request
	Run            *RunSummary // the run that was named
	Corrupt        error
}

// WorkflowFilter chooses workflows; empty parts mean any, all given parts hold.
type WorkflowFilter struct {
	Types    []string            `json:"types,omitempty"`
	Statuses []rendezvous.Status `json:"statuses,omitempty"`
	Queues   []string            `json:"queues,omitempty"`
	Prefix   string              `json:"workflow_id,omitempty"`
}

// WorkflowPage is a page of workflows, newest start first, then by workflow id.
type WorkflowPage struct {
	Workflows  []Workflow
	NextCursor string
}

// Histories reads (history.md section 7): no lease, no lock, one snapshot; unknown and empty are the same.
type Histories interface {
	// ReadHistory answers all records; above 50,000 records or 64 MiB it is too_large, naming ReadHistoryFrom (HI-5).
	ReadHistory(ctx context.Context, workflowID string) ([]rendezvous.Record, error)
	// ReadHistoryFrom answers a page from fromSeq on; it ends at limit records (0 is 500) or 4 MiB and holds at least one (HI-3, HI-4).
	ReadHistoryFrom(ctx context.Context, workflowID string, fromSeq int64, limit int) (HistoryPage, error)
	// ReadHistoryPage is ReadHistoryFrom with another bound of bytes: the page ends at limit records or at so many bytes of payload and data, 1..4 MiB, and holds
	// at least one record.
	ReadHistoryPage(ctx context.Context, workflowID string, fromSeq int64, limit, bytes int) (HistoryPage, error)
	// ReadRunChain answers the runs with FirstSeq > afterSeq in order; a broken link is corrupt (HI-22, HI-23). Default 100, maximum 1,000.
	ReadRunChain(ctx context.Context, workflowID string, afterSeq int64, limit int) ([]RunSummary, error)
	// DescribeWorkflow answers one workflow by its id or by one of its runs'; ErrNotFound otherwise.
	DescribeWorkflow(ctx context.Context, ref WorkflowRef) (Workflow, error)
	// QueryWorkflows lists by (started_at descending, workflow id); it opens no history and takes no lock (HI-38). A page looks at
	// a bounded number of rows: with a filter it may be short, even empty, and not the last (HI-49).
	QueryWorkflows(ctx context.Context, f WorkflowFilter, limit int, cursor string) (WorkflowPage, error)
	// CountWorkflows counts what passes the filter, up to most (0: all); capped says that counting stopped there. It looks at all rows until then.
	CountWorkflows(ctx context.Context, f WorkflowFilter, most int) (n int, capped bool, err error)
}

// AbandonedRun is a run whose lease ran out.
type AbandonedRun struct {
	Tenant string
	WorkflowRef
	Owner     string
	Epoch     int64
	ExpiresAt time.Time
	Reclaims  int
	Corrupt   error // the row does not decode: only the ids are known (RN-39)
}

// ReclaimItem is an abandoned lease as it was seen.
type ReclaimItem struct {
	Tenant     string
	WorkflowID string
	Epoch      int64
	ExpiresAt  time.Time
}

// ReclaimOutcome is what became of it.
type ReclaimOutcome string

// Outcomes of ReclaimRun.
const (
	ReclaimReclaimed ReclaimOutcome = "reclaimed"
	ReclaimChanged   ReclaimOutcome = "changed"
	ReclaimClosed    ReclaimOutcome = "closed"
)

// Reclaimed is the answer to one item.
type Reclaimed struct {
	Outcome  ReclaimOutcome
	Records  int  // answers recorded
	Resume   bool // noticed at once: the first reclaim in a row
	Push     bool // a PUSH notice is due: its records woke registrations
	Paused   bool // a requested pause was applied
	Reclaims int  // in a row; from 16 on the run is stuck
	Notices  Notices
	Err      error
}

// UnmetPair is a live event and the lowest open wait it meets, left apart.
type UnmetPair struct {
	Tenant string
	Event  EventRef
	Wait   rendezvous.WaitID
	Take   int64 // the take's token
}

// Repairer finds what a lost notice, a dead driver or a crash left behind: the passes of sweep.md that repair the spine.
type Repairer interface {
	// AbandonedRuns lists expired leases by (expires_at, tenant, workflow id); cursor is opaque, "" starts (RN-28). A read.
	AbandonedRuns(ctx context.Context, limit int, cursor string) (rows []AbandonedRun, next string, err error)
	// DueLeases is the same for the pass that ends them, fair by tenant (S3): each page has every tenant's share of what is behind the cursor, in that order, and
	// next is below all that got no place. A lease that stays is met again; it hides none (SW-25). A read.
	DueLeases(ctx context.Context, limit int, cursor string) (rows []AbandonedRun, next string, err error)
	// ReclaimRun ends 1..500 abandoned leases, if they are still exactly as seen (RN-37, RN-60).
	ReclaimRun(ctx context.Context, items []ReclaimItem) ([]Reclaimed, error)
	// TakeWoken hands out woken runs that nobody drives and moves their next notice: 10 s doubling to 10 min (RN-17), fair by tenant.
	TakeWoken(ctx context.Context, limit int) (Taken[ResumeRef], error)
	// TakeUnmet hands out live events that have met an open wait for at least grace and takes them until now + hold, growing per take.
	// cursor is opaque: "" looks at all.
	TakeUnmet(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (page Taken[UnmetPair], next string, err error)
	// TakeNews does the same for what became matchable since the call that answered cursor, whatever else is stored (SW-34): events that are new or live again, and
	// those that waits which are new or open again have met. cursor is opaque, "" begins with the last few minutes, and there is always a next. It looks
	// back somewhat, because rows are committed later than stamped; what is committed later still, and takes that ran out, are TakeUnmet's.
	TakeNews(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (page Taken[UnmetPair], next string, err error)
	// GiveBackUnmet ends 1..500 takes of events that nobody came to offer: the whole page failed, or its worker stops. None of the events is to blame, so
	// nothing is counted, and they are due again after retryIn (0..10 min). A take that is settled or not the latest is left alone. Again: nothing more changes.
	GiveBackUnmet(ctx context.Context, pairs []UnmetPair, retryIn time.Duration) error
}

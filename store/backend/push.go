package backend

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// PushKey names a push registration plane-wide.
type PushKey struct{ Tenant, RunID, ID string }

// Run is the run it follows.
func (k PushKey) Run() RunKey { return RunKey{Tenant: k.Tenant, ID: k.RunID} }

// PushGone is the state of a deleted registration whose send lease still runs: it is in no read of callers, and stays until that was handed in or has expired.
const PushGone rendezvous.PushState = "gone"

// Push is a push registration's row (push.md sections 1 and 2). It is written by who has locked it; it comes and goes, and becomes idle or wakes, under its
// workflow's lock.
type Push struct {
	Tenant, RunID, ID string
	WorkflowID        string
	Namespace         rendezvous.PushNamespace
	Gate              string
	Incarnation       int64 // a token drawn when the registration was made: older tokens are of one before
	Version           int64
	CreatedAt         time.Time
	Takes             uint64 // the kinds it takes, see KindBits
	Settings          PushSettings
	Resettled         bool // on Apply: Gate, Takes and Settings are written too

	NextSeq       int64
	NextIndex     int
	State         rendezvous.PushState
	NextAttemptAt time.Time
	Attempts      int
	FailingSince  time.Time
	Rejects       int
	AttemptNo     int64
	Lost          int
	Error         string
	ParkedAt      time.Time
	Reason        rendezvous.ParkReason

	LeaseToken    int64 // 0: none
	LeaseOwner    string
	LeaseRequest  string
	LeaseUntil    time.Time
	LeaseRevoked  bool
	EndedToken    int64  // the last token whose lease a settlement ended
	EndedAs       string // and which
	SettleID      string // the last settlement
	SettleOutcome []byte // JSON
	UnparkOp      string
	Skipped       int64                   // the last record that was skipped, 0 for none
	Logged        int                     // entries of its log that are trimmed by count
	Last          *rendezvous.PushAttempt // without the answer's body
	// Corrupt: the row does not decode; keys, schedule and lease are good as far as they decode (R9).
	Corrupt error
}

// PushSettings is what callers set, secrets in clear.
type PushSettings struct {
	rendezvous.Registration // RunID and ID are the row's
	Rotated                 PushRotated
}

// PushRotated is the last rotation of keys, for its repeat.
type PushRotated struct {
	Op        string
	KeyID     string
	Generated bool
	At        time.Time
}

// Key is the row's key.
func (p *Push) Key() PushKey { return PushKey{p.Tenant, p.RunID, p.ID} }

// Flow is the key of its workflow.
func (p *Push) Flow() WorkflowKey { return WorkflowKey{p.Tenant, p.WorkflowID} }

// Leased reports whether a send lease, revoked or not, keeps others from the row.
func (p *Push) Leased(now time.Time) bool { return p.LeaseToken != 0 && p.LeaseUntil.After(now) }

// Due reports whether the row can be claimed: at is the instant it is to be due at, now judges its lease.
func (p *Push) Due(at, now time.Time) bool {
	return p.State == rendezvous.PushLive && !p.NextAttemptAt.After(at) && !p.Leased(now)
}

// CompareDue is due order: (next_attempt_at, tenant, run, id), texts as bytes.
func CompareDue(a, b *Push) int {
	return cmp.Or(a.NextAttemptAt.Compare(b.NextAttemptAt), a.Key().Compare(b.Key()))
}

// SortDue puts rows in due order.
func SortDue(rows []*Push) { slices.SortFunc(rows, CompareDue) }

// MergeDue is the first limit rows of two queues in due order.
func MergeDue(a, b []*Push, limit int) []*Push {
	if len(b) == 0 {
		return a[:min(len(a), limit)]
	}
	var rows []*Push
	for len(rows) < limit && len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && CompareDue(a[0], b[0]) < 0 {
			rows, a = append(rows, a[0]), a[1:]
		} else {
			rows, b = append(rows, b[0]), b[1:]
		}
	}
	return rows
}

// TenantOfPush is whose row it is.
func TenantOfPush(p *Push) string { return p.Tenant }

// ParkedPushAt is a row's place among parked ones.
func ParkedPushAt(p *Push) ParkedPushPosition {
	return ParkedPushPosition{Set: true, At: p.ParkedAt, Key: p.Key()}
}

// MostPassedPushes is how many rows of full gates a claim goes over in a tenant's queue before it asks for the first rows of each gate, and MostPushGates of how
// many gates. FewPassedPushes is how many it looks at first where gates have less room than others.
const (
	MostPassedPushes = 2000
	FewPassedPushes  = 32
	MostPushGates    = 5000
	// MostLapsedPushes is how many rows whose lease has run out are looked at, those that ran out the longest ago: more than workers have in hand when they die.
	MostLapsedPushes = 5000
)

// RunsOfDue gathers due rows by run: the longest due first, at most limit runs.
func RunsOfDue(rows []*Push, limit int) []DuePushRun {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, CompareDue)
	at := map[RunKey]int{}
	var runs []DuePushRun
	for _, p := range rows {
		i, ok := at[p.Key().Run()]
		if !ok {
			if len(runs) == limit {
				continue
			}
			i = len(runs)
			at[p.Key().Run()] = i
			runs = append(runs, DuePushRun{Run: p.Key().Run(), WorkflowID: p.WorkflowID, Since: p.NextAttemptAt})
		}
		runs[i].Rows++
	}
	return runs
}

// kindBits gives each kind its bit in Push.Takes. A bit is never given to another kind.
var kindBits = map[rendezvous.Kind]uint64{
	rendezvous.RunStarted: 1 << 0, rendezvous.RunCompleted: 1 << 1, rendezvous.RunFailed: 1 << 2, rendezvous.RunCancelled: 1 << 3, rendezvous.RunTimedOut: 1 << 4,
	rendezvous.RunContinued: 1 << 5, rendezvous.RunReopened: 1 << 6, rendezvous.RunPaused: 1 << 7, rendezvous.RunResumed: 1 << 8,
	rendezvous.EffectStarted: 1 << 9, rendezvous.EffectDone: 1 << 10, rendezvous.EffectFailed: 1 << 11, rendezvous.WaitRegistered: 1 << 12,
	rendezvous.WaitAnswered: 1 << 13, rendezvous.WaitTimedOut: 1 << 14, rendezvous.WaitWithdrawn: 1 << 15, rendezvous.TimerStarted: 1 << 16,
	rendezvous.TimerFired: 1 << 17, rendezvous.TimerCancelled: 1 << 18, rendezvous.AttributesUpdated: 1 << 19, rendezvous.Note: 1 << 20,
}

// AllKinds is what takes every record, also of kinds to come.
const AllKinds = uint64(1)<<63 - 1

// KindBits is the bit of a kind.
func KindBits(k rendezvous.Kind) uint64 { return kindBits[k] }

// TakenKinds is what a registration of those events takes.
func TakenKinds(events []string) uint64 {
	var bits uint64
	for _, e := range events {
		if e == rendezvous.AllEvents {
			return AllKinds
		}
		bits |= kindBits[rendezvous.Kind(e)]
	}
	return bits
}

// PushWake makes the idle registrations of a run due now that take one of those kinds, all of them at a terminal.
type PushWake struct {
	Run   RunKey
	Kinds uint64 // AllKinds at a terminal
	Now   time.Time
	Woke  bool // set by Apply: there was one
}

// PushLogKey names an entry of an attempt log.
type PushLogKey struct {
	PushKey
	Incarnation int64
	No          int64
}

// PushLogEntry is an entry of an attempt log.
type PushLogEntry struct {
	PushLogKey
	EntryID string // "" for most
	At      time.Time
	Kept    bool // for good: neither count nor age trims it
	Attempt rendezvous.PushAttempt
}

// PushDue asks for due rows of a namespace.
type PushDue struct {
	Namespace rendezvous.PushNamespace
	At        time.Time
	Tenant    string // "" is all
}

// PushClaim asks for due rows to lease.
type PushClaim struct {
	PushDue
	Limit   int
	PerGate int
	Room    map[string]int // rows of gates that get fewer than PerGate
	Only    []RunKey       // nil is any; each once
}

// PushesTaken is what a claim took.
type PushesTaken struct {
	Rows    []*Push
	More    bool     // more was due
	Crowded []string // then the gates that alone kept the rest from being taken, in order; none: it may be of any
}

// PushFilter chooses parked rows; empty parts mean any.
type PushFilter struct {
	Reason rendezvous.ParkReason
	Gate   string
}

// ParkedPushPosition is the last row of a page of parked rows by (parked_at, run, id).
type ParkedPushPosition struct {
	Set bool
	At  time.Time
	Key PushKey
}

// DuePushRun is a run with rows that have been due for some time.
type DuePushRun struct {
	Run        RunKey
	WorkflowID string
	Since      time.Time
	Rows       int
}

// PushReader reads push registrations. Deleted ones, of state PushGone, are answered by key and by run alone.
type PushReader interface {
	Pushes(ctx context.Context, keys []PushKey) (map[PushKey]*Push, error)
	// PushesOf answers the rows of those runs by (tenant, run, id).
	PushesOf(ctx context.Context, runs []RunKey) ([]*Push, error)
	// DuePushes answers due rows of one tenant in due order.
	DuePushes(ctx context.Context, d PushDue, limit int) ([]*Push, error)
	// CountDuePushes counts due rows, up to most.
	CountDuePushes(ctx context.Context, d PushDue, most int) (int, error)
	// NextPush is the earliest next_attempt_at after d.At of live, unleased rows of the namespace; zero for none.
	NextPush(ctx context.Context, d PushDue) (time.Time, error)
	// ListParkedPushes pages a tenant's parked rows by (run, id), as other lists with a filter do.
	ListParkedPushes(ctx context.Context, tenant string, f PushFilter, after PushKey, p Span) (rows []*Push, next PushKey, err error)
	// LongestParkedPushes pages them by (parked_at, run, id) likewise; rows have their keys and ParkedAt alone.
	LongestParkedPushes(ctx context.Context, tenant string, f PushFilter, after ParkedPushPosition, p Span) (rows []*Push, next ParkedPushPosition, err error)
	// DuePushRuns answers runs with rows of any namespace that are due at now and were at before, the longest first. At most limit rows of each tenant are
	// looked at.
	DuePushRuns(ctx context.Context, before time.Time, limit int) ([]DuePushRun, error)
	// PushLog answers a registration's entries with No < before (0: all), the highest first; incarnation 0 is the latest that has any.
	PushLog(ctx context.Context, key PushKey, incarnation, before int64, limit int) ([]*PushLogEntry, error)
	// PushLogged is the entry of that id of an incarnation; nil for none.
	PushLogged(ctx context.Context, key PushKey, incarnation int64, entryID string) (*PushLogEntry, error)
}

// PushTx changes push registrations. Their rows are locked last (R7).
type PushTx interface {
	// LockPushes locks those rows in key order until the end and answers them as they are under the lock.
	LockPushes(ctx context.Context, keys []PushKey) (map[PushKey]*Push, error)
	// PushesByToken locks the rows that carry those tokens.
	PushesByToken(ctx context.Context, tokens []int64) ([]*Push, error)
	// PushesOfClaim locks the rows that a claim leased and that nobody settled since, in due order. Revoked ones are not among them.
	PushesOfClaim(ctx context.Context, owner, request string) ([]*Push, error)
	// TakeDuePushes locks due rows that nobody has locked: the head of due order, fair by tenant (S3), at most PerGate of one gate, or as many as Room says, in due
	// order.
	TakeDuePushes(ctx context.Context, c PushClaim) (PushesTaken, error)
	// TakeAgedPushes locks live, unleased rows that nobody has locked and that have been failing since before or earlier, the longest first, fair by tenant.
	TakeAgedPushes(ctx context.Context, before time.Time, limit int) (rows []*Push, more bool, err error)
	// OldPushLog answers entries made at before or earlier that are not kept for good, the oldest first. A read.
	OldPushLog(ctx context.Context, before time.Time, limit int) ([]PushLogKey, error)
	// LongPushLogs locks rows that nobody has locked and whose log has more than keep entries, at most limit of them.
	LongPushLogs(ctx context.Context, keep, limit int) ([]*Push, error)
	// OldestPushLog answers the first n entries of an incarnation's log that are not kept for good.
	OldestPushLog(ctx context.Context, key PushKey, incarnation int64, n int) ([]PushLogKey, error)
	// GonePushes locks rows of state PushGone whose lease has expired and that nobody has locked.
	GonePushes(ctx context.Context, limit int) ([]*Push, error)
}

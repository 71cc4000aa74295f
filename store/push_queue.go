package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Bounds and defaults of a claim.
const (
	DefaultPushClaim     = 100
	MaxPushClaim         = 1000
	DefaultPushLease     = 45 * time.Second
	MinPushLease         = time.Second
	MaxPushLease         = time.Hour
	DefaultPushPerGate   = 8
	DefaultPushLostLimit = 5
	DefaultPushMaxAge    = 72 * time.Hour
	DefaultPushLogCount  = 100
	DefaultPushLogAge    = 7 * 24 * time.Hour
)

// ClaimPush asks for due registrations.
type ClaimPush struct {
	At        time.Time // zero: the store's now, which is what workers give
	Limit     int       // default 100, maximum 1,000
	Namespace rendezvous.PushNamespace
	Owner     string        // an incarnation: never reused by a restart
	Request   string        // 1..128 bytes, new for each claim; a repeat names the first one's
	Lease     time.Duration // 1 s..1 h, default 45 s
	Only      []PushRun     // ≤ 500 runs; nil: any. It never makes a row early
	PerGate   int           // rows of one gate, default 8
	// Room is of gates that have less room than PerGate with whoever asks: how many rows of each it takes. ≤ 1,000 gates.
	Room      map[string]int
	LostLimit int // leases lost in a row at which a row parks instead, default 5
}

// PushRun names a run plane-wide.
type PushRun struct {
	Tenant string
	RunID  string
}

// ClaimedPush is a registration under a send lease.
type ClaimedPush struct {
	Push
	Token     int64
	ExpiresAt time.Time
}

// ClaimedPushes is the answer of ClaimPushes.
type ClaimedPushes struct {
	Pushes         []ClaimedPush
	Now            time.Time // the store's
	Saturated      bool      // more was due: claim again at once. Of a claim with Only, among those runs
	Crowded        []string  // then the gates that alone kept the rest from being claimed, for want of PerGate or Room; none: it may be of any gate
	NextDue        time.Time // the earliest instant ahead at which a row of the namespace is due; zero: none, or a claim with Only, which does not say
	Unserved       int       // due rows of the other namespace; 0 of a claim with Only
	UnservedCapped bool      // Unserved stopped counting at 10,000
	Lost           int       // rows whose lease had run out unsettled; those among them that parked are not in Pushes
	Parked         []PushItem
}

// PushItem names a registration plane-wide.
type PushItem struct {
	Tenant string
	PushKey
}

// PushLeaseState is how a send lease stands.
type PushLeaseState string

// The closed set.
const (
	PushLeaseHeld    PushLeaseState = "held"
	PushLeaseFenced  PushLeaseState = "fenced"  // somebody else claimed, the registration is gone, or a settlement ended the lease
	PushLeaseRevoked PushLeaseState = "revoked" // by Put, Rotate, Park, Skip or Delete
)

// PushLease is the answer of RenewPushes to one token.
type PushLease struct {
	Token     int64
	State     PushLeaseState
	ExpiresAt time.Time // Held
}

// PushSettle is what a settlement does with the registration after its acceptances.
type PushSettle string

// The closed set.
const (
	PushKeep     PushSettle = "keep"     // the lease goes on
	PushRelease  PushSettle = "release"  // the lease ends, not charged
	PushRetry    PushSettle = "retry"    // as RetryPush
	PushPark     PushSettle = "park"     // as ParkPush
	PushComplete PushSettle = "complete" // as CompletePush
)

// PushWhy says why a registration is released.
type PushWhy string

// The closed set.
const (
	ReleaseRest  PushWhy = "rest"  // nothing is left: idle if the head is still the one that was read, else due now
	ReleasePage  PushWhy = "page"  // the turn is over: due now, behind whoever waited longer
	ReleaseRate  PushWhy = "rate"  // due at At
	ReleaseGate  PushWhy = "gate"  // due at At
	ReleaseProxy PushWhy = "proxy" // due at At
	ReleaseDrain PushWhy = "drain" // due now
	ReleaseOwn   PushWhy = "own"   // our own trouble, or a record of a kind that this build does not know: due at At
)

// PushSettlement is what became of a registration under its lease. A settlement is one step of its holder: what was accepted, what was tried, and what then.
type PushSettlement struct {
	PushItem
	Token int64
	// Name names this settlement of the registration: 1..128 bytes, new for each. A repeat of it gets the first outcome, and counts and logs nothing again.
	Name    string
	Advance *rendezvous.Cursor // acceptances, as AdvancePush; nil: none
	// Attempts are those since the last settlement, in their order. They are numbered; failures are logged, acceptances where LogAccepted says so; the last is
	// kept in the row. An entry's No is not looked at. ≤ 1,000.
	Attempts    []rendezvous.PushAttempt
	LogAccepted bool
	Do          PushSettle
	// At is when the row is due again: of retry, and of release for reasons that say so; zero is now.
	At     time.Time
	Why    PushWhy               // of release
	Head   int64                 // of release rest: the head that was read
	Reason rendezvous.ParkReason // of park
	Error  string                // of retry and park: ≤ 512 bytes, no URL
}

// PushSettled is the outcome of one settlement. An item fails alone.
type PushSettled struct {
	rendezvous.Cursor
	State PushLeaseState // Held where the token was its registration's when the settlement came, also where it ended the lease
	Idle  bool           // a release rest found nothing to do
	Done  bool           // complete: the registration is gone
	// Err: fenced, invalid, conflict (complete of a reopened run), not_found. What was accepted counts all the same, where the registration is there: the cursor
	// moved.
	Err error
}

// DuePushRun is a run with rows that were due for long.
type DuePushRun struct {
	PushRun
	WorkflowID string
	Head       int64
	Since      time.Time // of the longest due of them
	Rows       int
}

// PushQueue is the plane-wide side, for workers and the sweeper (push.md section 3).
type PushQueue interface {
	// ClaimPushes hands due registrations out under send leases: the head of due order, (next_attempt_at, tenant, run, id) by bytes, fairly by tenant: with
	// T ≤ limit tenants having due rows each gets at least min(its due rows, ⌊limit/T⌋) places, and no gate more than PerGate (PU-21, PU-28, PU-35). Rows locked
	// by others are passed over. Tokens rise store-wide and are never used again. A row whose lease ran out unsettled counts lost + 1 and logs an unknown
	// attempt; at LostLimit it parks worker_lost instead (PU-29). A row that does not decode is handed to nobody, and is out of the way while a lease lasts.
	// Again with the same owner and request: the same rows and tokens, those still held.
	ClaimPushes(ctx context.Context, c ClaimPush) (ClaimedPushes, error)
	// RenewPushes extends leases to lease from now, never shortening one; ≤ 1,000 tokens, answers in their order. It never claims; a lease that ran out and
	// nobody took since is renewed (PU-31).
	RenewPushes(ctx context.Context, tokens []int64, lease time.Duration) ([]PushLease, error)
	// SettlePushes makes ≤ 500 settlements in one transaction and answers them in order (PU-37). Items of one registration are made in their order.
	// A revoked token is handed in by a settlement that ends its lease, not by keep: its holder may still be sending.
	SettlePushes(ctx context.Context, items []PushSettlement) ([]PushSettled, error)
	// DuePushRuns answers runs whose rows have been due since before that instant or earlier, the longest first, for notices. A read. Default 500, at most 500.
	DuePushRuns(ctx context.Context, before time.Time, limit int) (runs []DuePushRun, more bool, err error)
	// ParkAgedPushes parks, reason expired, live rows that nobody sends for and that have been failing for maxAge (0: 72 h) or longer. limit 500 by default and
	// at most. Again: the next ones.
	ParkAgedPushes(ctx context.Context, maxAge time.Duration, limit int) (parked []PushItem, more bool, err error)
	// TrimPushLogs removes entries beyond the newest keep (0: 100) of a registration and those older than age (0: 7 days), but for skips, which stay while the
	// registration or its history does. limit is of entries, 5,000 by default and at most. Again: the next ones.
	TrimPushLogs(ctx context.Context, keep int, age time.Duration, limit int) (removed int, more bool, err error)
}

package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Push is a registration's row, secrets whole: they print as masks. Its schedule and counters are those of the moment it was read.
type Push struct {
	Tenant     string
	WorkflowID string
	// Registration is as Put resolved it. Of an operator's destination only ids and events are known: the rest is configuration, read at each send.
	rendezvous.Registration
	Namespace rendezvous.PushNamespace
	Gate      string // the key of concurrency: scheme://host:port of a caller's URL, an operator's id
	Version   int64  // of what callers set: 1, and one more with each Put or Rotate that changed something
	CreatedAt time.Time
	rendezvous.Cursor
	State         rendezvous.PushState
	NextAttemptAt time.Time
	Attempts      int       // consecutive charged failures
	FailingSince  time.Time // the first of them; zero: none
	Rejects       int       // consecutive ones of class rejected, all for the message at the cursor
	AttemptNo     int64     // attempts for life
	Lost          int       // send leases in a row that ran out unsettled
	Error         string    // of the last failure, also of one that was forgiven since; no URL
	ParkedAt      time.Time
	Reason        rendezvous.ParkReason
	LeaseUntil    time.Time               // of a live send lease, also one that was revoked; zero: nobody sends
	Last          *rendezvous.PushAttempt // the last outcome; nil: none yet
	Corrupt       error                   // the row does not decode; only the key is known (R9)
}

// Key names the registration in its tenant.
func (p *Push) Key() PushKey { return PushKey{RunID: p.RunID, ID: p.ID} }

// PushKey names a registration in its tenant.
type PushKey struct {
	RunID string
	ID    string
}

// PutPush is a registration to put.
type PutPush struct {
	rendezvous.Registration
	// NextSeq is where a new one begins; 0 leaves it to the store: the terminal record of a sealed run, else head + 1. A held one keeps its cursor.
	NextSeq   int64
	IfVersion int64 // 0: whatever version stands
	// Fields makes it a partial update of a held registration: only these are taken of Registration, by their wire names; the rest, secrets too, stays.
	// nil is a whole Put.
	Fields []string
	// Gate is scheme://host:port in canonical form, where the caller has judged the URL; "" is made of the URL as it stands.
	Gate string
}

// Fields of a partial update.
var PushFields = [...]string{
	"url", "token", "auth", "headers", "tls", "signing", "projection", "events", "include_payload", "timeout_ms", "max_attempts", "on_reject_limit", "trace",
}

// PushPut is the answer of PutPush.
type PushPut struct {
	Push
	Created bool    // the row is new, or still as its first Put made it
	Notices Notices // where the row is due
}

// PushAdvanced is the answer of AdvancePush.
type PushAdvanced struct {
	rendezvous.Cursor
	Owned bool // the token's lease stands: counters were cleared
}

// ParkPush parks a registration.
type ParkPush struct {
	PushKey
	Token  int64 // 0: an operator
	Reason rendezvous.ParkReason
	Error  string // ≤ 512 bytes, no URL
}

// PushParkedFilter chooses parked registrations; empty parts mean any.
type PushParkedFilter struct {
	Reason rendezvous.ParkReason
	Gate   string
}

// PushPage is a page of registrations.
type PushPage struct {
	Pushes     []Push
	NextCursor string // "" at the end
}

// PushSkip takes a parked registration past the record at its cursor.
type PushSkip struct {
	PushKey
	Seq    int64
	Actor  string // required
	Reason string
}

// UnparkPushes is a bounded unparking of many.
type UnparkPushes struct {
	PushParkedFilter
	At     time.Time // zero: the store's now
	Spread time.Duration
	Limit  int // default 100, maximum 1,000
}

// PushesUnparked is the answer of UnparkPushes.
type PushesUnparked struct {
	Count int
	More  bool // more pass the filter
}

// PushDeleted is the answer of DeletePush.
type PushDeleted struct {
	// QuietAt is the expiry of the send lease that was live when the registration went: nothing is in flight after it. Zero: nothing is.
	QuietAt time.Time
}

// PushRotation adds a signing key.
type PushRotation struct {
	PushKey
	Key       rendezvous.Secret // none: one is generated
	Algorithm string            // of a generated one: v1 (default) or v1a
	Grace     *time.Duration    // 0..7 days, how long the older keys go on; nil: DefaultPushGrace
	Op        string            // names the rotation: required
}

// Bounds of a rotation's grace.
const (
	DefaultPushGrace = 24 * time.Hour
	MaxPushGrace     = 7 * 24 * time.Hour
)

// PushRotated is the answer of RotatePush.
type PushRotated struct {
	Key     rendezvous.SigningKey // its secret half only where it was generated, and only for 10 minutes
	Version int64
	Again   bool
}

// DuePushes is the answer of DuePush and DuePushIn.
type DuePushes struct {
	Pushes   []Push
	Unserved int  // due rows of the other namespace
	Capped   bool // Unserved stopped counting at 10,000
}

// PushAttemptPage is a page of a registration's attempt log, newest first.
type PushAttemptPage struct {
	Attempts []rendezvous.PushAttempt
	Before   int64 // the before of the next page; 0 at the end
}

// PushStore is a tenant's view of its push registrations (push.md section 2). The handle's Name is whose rows they are. Reads of what is absent, or another
// tenant's, answer nothing and no error. Instants are next_attempt_at's: rounded up to the microsecond. Lease expiry is judged by the store's now.
//
// Advance, Retry and Park name the send lease that they are made under by its token. Its holder is who has the token that the row carries, unless it was revoked;
// that it ran out does not depose it while nobody claimed since. Token 0 is for tools and for whoever has no worker: without a live lease it acts as holder.
type PushStore interface {
	// PutPush makes a registration, or replaces the one held under its id. New: live, its cursor as NextSeq says (below the run's first record: that record;
	// above head + 1: invalid), due at once unless it is idle. Held: keeps cursor, attempt_no and created; another projection sets next_index 0; attempts 0,
	// due now, error cleared, unparked, and the send lease is revoked (PU-14, PU-18). Identical: nothing changes (a parked row stays parked). Over a deleted id
	// it is a new incarnation, which nobody claims before the deleted one's lease was handed in or has expired.
	// Errors: not_found (run), too_large (MaxRegistrationsPerRun of callers, exact under concurrent Puts, PU-4), conflict (IfVersion, with the current version;
	// Fields of an absent one is not_found), unauthorized (an operator's id), invalid.
	PutPush(ctx context.Context, p PutPush, at time.Time) (PushPut, error)
	// GetPush answers a registration with its secrets; nil where there is none.
	GetPush(ctx context.Context, key PushKey) (*Push, error)
	// ListPush answers all of a run's registrations by the bytes of their ids; operators' are among them.
	ListPush(ctx context.Context, run string) ([]Push, error)
	// DuePush answers the tenant's due rows in due order: (next_attempt_at, run, id), at zero meaning the store's now. A read: nothing is taken.
	// Default 100, maximum 1,000.
	DuePush(ctx context.Context, at time.Time, limit int) ([]Push, error)
	// DuePushIn is the same for one namespace, and counts the due rows of the other (PU-19, PU-20).
	DuePushIn(ctx context.Context, at time.Time, limit int, namespace rendezvous.PushNamespace) (DuePushes, error)
	// AdvancePush moves the cursor to the greater of its own and c. Holder: attempts and rejects 0, failing_since and error cleared, lease kept. A stale or
	// revoked token, and token 0 under a live lease, move the cursor only: owned false, no error, for an acceptance is a fact (PU-16, PU-17, PU-30). Token 0
	// without a live lease also makes the row due now, or idle where nothing is left; a parked row stays parked (PU-25).
	// Errors: not_found (absent, or an incarnation before), invalid (above head + 1). Again: the same answer.
	AdvancePush(ctx context.Context, key PushKey, token int64, c rendezvous.Cursor) (PushAdvanced, error)
	// RetryPush charges a failure: attempts + 1, error, failing_since if unset, due at next, lease over; the cursor stays (PU-15). Token 0 makes a parked row
	// live; under a live lease it is lease_held (PU-25). Errors: not_found, fenced (nothing changes). Again: the same, counted once.
	RetryPush(ctx context.Context, key PushKey, token int64, next time.Time, text string) error
	// ParkPush parks. Holder: attempts + 1, lease over, cursor kept. Token 0 is an operator's, in any state: attempts stay, the lease is revoked; a parked row
	// gets reason and error anew and keeps parked_at. Errors: not_found, fenced. Again: the same, counted once.
	ParkPush(ctx context.Context, p ParkPush) error
	// ParkedPushes lists parked rows by the bytes of (run, id) (PU-22). Default 100, maximum 1,000. A page looks at 10,000 rows: with a filter it may be short,
	// even empty, and not the last; the cursor alone says so.
	ParkedPushes(ctx context.Context, f PushParkedFilter, limit int, cursor string) (PushPage, error)
	// UnparkPush makes a parked row live, due at `at` (zero: now), attempts 0, failing_since cleared, error and cursor kept: true. Live or absent: false.
	// Again with the same op: true (PU-23). op is 1..128 bytes, "" for none.
	UnparkPush(ctx context.Context, key PushKey, at time.Time, op string) (bool, error)
	// UnparkPushes does so for many, the longest parked first, their instants evenly over [At, At + Spread]. Again: the next ones, harmless.
	UnparkPushes(ctx context.Context, u UnparkPushes) (PushesUnparked, error)
	// SkipPush takes a parked row, whose next_seq is exactly Seq, to (Seq + 1, 0). It stays parked, attempts 0, and the log keeps who and why for good (PU-24).
	// Errors: not_found, conflict (the cursor, or the state, that stands). Again: the same answer.
	SkipPush(ctx context.Context, s PushSkip) (rendezvous.Cursor, error)
	// CompletePush is AdvancePush past the terminal record and the end of the row, in one transaction, if the run is still sealed there; reopened, or not
	// past it: conflict, and the row lives on. An absent row is done.
	CompletePush(ctx context.Context, key PushKey, token, nextSeq int64) error
	// DeletePush ends a registration: gone from every read at once, its lease revoked. Again: the same answer while it matters.
	DeletePush(ctx context.Context, key PushKey) (PushDeleted, error)
	// PushAttempts answers the attempt log of the latest incarnation, newest first, those with No < before (0: all), also after completion while entries are
	// kept. Default 100, maximum 1,000.
	PushAttempts(ctx context.Context, key PushKey, limit int, before int64) (PushAttemptPage, error)
	// LogPush adds the entry of a push.test, once per its ID, and touches nothing else of the row but attempt_no. It answers the entry's number.
	LogPush(ctx context.Context, key PushKey, entry rendezvous.PushAttempt) (int64, error)
	// RotatePush puts a given or generated key before the others, which end after grace, and revokes the lease as Put does (PU-75). A sixth unexpired key is
	// too_large. Again with the same op: the same key, shown for 10 minutes.
	RotatePush(ctx context.Context, r PushRotation) (PushRotated, error)
}

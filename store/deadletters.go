package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// RetiredEvent is an event that a sweep made a dead letter.
type RetiredEvent struct {
	Tenant string
	rendezvous.EventID
	Type   string                // "" where the row does not decode
	Reason rendezvous.DeadReason // unclaimed, expired
}

// Swept is a page of SweepUnclaimed.
type Swept struct {
	Retired []RetiredEvent // the longest due first
	// Unmet names events that were old enough but meet an open wait right now: their notice was lost. They are to be offered (Notices), are not retired, and
	// do not use up the limit (SW-6). At most 500 a page; for 30 s no other page names them.
	Unmet   []EventRef
	More    bool // more was due than the page took or looked at
	Notices Notices
}

// Sweeper ends what nobody wants.
type Sweeper interface {
	// SweepUnclaimed retires live events, kept ones too: those with an own expiry ≤ at as expired, those without one whose live_since ≤ olderThan as
	// unclaimed. Both bounds are inclusive (SW-1); a zero olderThan, or one before all time, retires none by age. reason, ≤ 512 bytes, becomes the detail.
	// limit is 500 by default and 5,000 at most. On the plane-wide side tenants are served fairly (S3, SW-25); a tenant's handle sweeps that tenant. Again:
	// the next page. Claimed and consumed events are never touched (SW-3); rows that somebody else has in hand are passed over and come again (S5).
	SweepUnclaimed(ctx context.Context, olderThan, at time.Time, reason string, limit int) (Swept, error)
}

// DeadFilter chooses dead letters; zero parts mean any. Intervals are inclusive on both sides.
type DeadFilter struct {
	Reason         rendezvous.DeadReason
	Type, Source   string
	Key            *rendezvous.Key
	ReceivedAfter  time.Time
	ReceivedBefore time.Time
	DeadAfter      time.Time
	DeadBefore     time.Time
}

// DeadPage is a page of dead letters, newest number first. A row that does not decode shows its identity and number, with Corrupt set.
type DeadPage struct {
	Letters    []DeadLetter
	NextCursor string // "" at the end
}

// DeadLetter is an event nobody wanted, as listed: its keys exactly as buffered, its payload when asked for and present.
type DeadLetter struct {
	StoredEvent
	Corrupt error
}

// DeadCount is how many letters pass a filter.
type DeadCount struct {
	Count    int
	Capped   bool                          // there are more than the cap that was asked for
	ByReason map[rendezvous.DeadReason]int // of those counted, lowest number first; nil unless asked for
}

// Selection names the letters of a requeue or a purge: 1..500 identities, or a filter with a bound of 1..500, lowest number first.
type Selection struct {
	Events []rendezvous.EventID
	Filter *DeadFilter
	Bound  int
	// Cursor goes on behind an earlier page of the same filter, so that letters which stay hide nothing behind them (S1); "" begins.
	Cursor string
}

// Requeue says how letters come back to life.
type Requeue struct {
	To        string    // "" for as they were, RequeueBroadcast, or a run id
	ExpiresAt time.Time // a new expiry; zero keeps none, and an own expiry that is not over yet
}

// RequeueBroadcast drops the addressee.
const RequeueBroadcast = "broadcast"

// RequeueOutcome is the fate of one letter.
type RequeueOutcome string

// Outcomes of RequeueDeadLetters and PurgeDeadLetters.
const (
	RequeueRequeued           RequeueOutcome = "requeued"
	RequeueNotDead            RequeueOutcome = "not_dead"
	RequeueErased             RequeueOutcome = "erased"
	RequeuePurged             RequeueOutcome = "purged" // of a purge: done
	RequeueAddresseeConcluded RequeueOutcome = "addressee_concluded"
	RequeueExpired            RequeueOutcome = "expired"
	RequeueNotFound           RequeueOutcome = "not_found"
)

// Requeued is the answer to one letter of a requeue or a purge.
type Requeued struct {
	rendezvous.EventID
	Outcome    RequeueOutcome
	Number     int64  // Requeued: the old number
	Place             // NotDead: where it is
	CurrentRun string // AddresseeConcluded: of that workflow
	Err        error  // the item failed alone: corrupt, rate_limited (the run has its fill of kept events)
}

// Requeuing is the answer of a selection: in input order, or by number for a filter.
type Requeuing struct {
	Items      []Requeued
	More       bool   // a filter chooses more than the bound
	NextCursor string // More: where they begin
	Notices    Notices
}

// DeadLetters is a tenant's view of what nobody wanted.
type DeadLetters interface {
	Sweeper
	// DeadLetters lists newest first, 100 by default and 1,000 at most. Every letter that was dead when the walk began and still is appears exactly
	// once (SW-10). A page looks at a bounded number of letters and hands out a bounded number of bytes: it may be short, even empty, and not the last.
	DeadLetters(ctx context.Context, f DeadFilter, limit int, cursor string, payload bool) (DeadPage, error)
	// CountDeadLetters counts what the list shows, up to most (0: all).
	CountDeadLetters(ctx context.Context, f DeadFilter, most int, byReason bool) (DeadCount, error)
	// RequeueDeadLetters makes letters live again with their old numbers. operator and op are required and kept with the row. The same op again is
	// Requeued, once (SW-11..SW-13), and of a filter it names those that it requeued, and no others. The caller offers what Notices names.
	RequeueDeadLetters(ctx context.Context, s Selection, r Requeue, operator rendezvous.Operator, op string, at time.Time) (Requeuing, error)
	// PurgeDeadLetters drops payload and keys for ever; identity, digest, reason and minter stay (SW-14). Final. The same op again: as above.
	PurgeDeadLetters(ctx context.Context, s Selection, operator rendezvous.Operator, op string, at time.Time) (Requeuing, error)
}

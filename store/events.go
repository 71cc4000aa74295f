package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Place is where an event went: which parts are set follows its state.
type Place struct {
	State      rendezvous.EventState
	WorkflowID string                // consumed
	RunID      string                // claimed, consumed; live: the addressee of a kept event
	Effect     string                // claimed, consumed
	Seq        int64                 // consumed: the record that holds the answer
	Reason     rendezvous.DeadReason // dead
}

// BufferOutcome is the fate of an event offered for storing.
type BufferOutcome string

// Outcomes of Buffer. In a batch a conflict or failed item has neither: see [Buffered.Err].
const (
	BufferNew       BufferOutcome = "new"
	BufferDuplicate BufferOutcome = "duplicate"
)

// Buffered is the answer to one event.
type Buffered struct {
	Outcome BufferOutcome
	Number  int64 // New: the store-assigned order
	Place         // Duplicate: the stored event's state and where it went
	Notices Notices
	// Err is ErrConflict (details: what differs, state) for an identity known with other content; anything else: this item failed alone.
	Err error
}

// BufferItem is one event of a batch.
type BufferItem struct {
	Tenant string
	Event  rendezvous.Event
}

// Intake takes events in for all tenants: what doors commit.
type Intake interface {
	// BufferBatch stores 1..500 events in one commit; numbers rise in input order, of two equal identities in a batch the first is New (EV-7, EV-8).
	// It looks at no wait (I1). The caller offers New items, and Duplicate ones while live or claimed: Notices names them.
	// Events of the plane's own types are judged as at an outside door unless minted.
	BufferBatch(ctx context.Context, items []BufferItem, at time.Time) ([]Buffered, error)
	// DeliverToBatch gives events to named runs; see [Events.DeliverTo] (EV-87).
	DeliverToBatch(ctx context.Context, items []DeliverItem, at time.Time) ([]Delivery, error)
}

// DeliverItem is one targeted event.
type DeliverItem struct {
	Tenant string
	RunID  string
	Event  rendezvous.Event
	Keep   bool // store it for a later registration when nothing fits now; on for INBOX, off at request doors
}

// DeliveryOutcome is the fate of a targeted event.
type DeliveryOutcome string

// Outcomes of DeliverTo.
const (
	DeliveryMatched    DeliveryOutcome = "matched"
	DeliveryDuplicate  DeliveryOutcome = "duplicate"
	DeliveryNotWaiting DeliveryOutcome = "not_waiting"
	DeliveryKept       DeliveryOutcome = "kept"
	DeliveryDead       DeliveryOutcome = "dead" // keep, and the run is sealed: stored as addressee_concluded
)

// Delivery is the answer to one targeted event.
type Delivery struct {
	Outcome DeliveryOutcome
	Again   bool   // Matched: the claim stood before
	Place          // Matched: the wait's run and effect; Duplicate: where the event is
	Why     string // NotWaiting: the nearest reason (sweep.md section 7), or no_wait
	Number  int64  // Kept, Matched
	// Notices: after Matched the caller runs DeliverParked for the wait and sends nothing else; Kept names the event to offer.
	Notices Notices
	Err     error // the item failed alone: not_found, sealed (details: outcome, next_run), conflict, rate_limited, ...
}

// StoredEvent is everything the store knows of an event.
type StoredEvent struct {
	Number int64
	rendezvous.Event
	HasPayload    bool // whether a payload is stored (shed ones are not); Event.Payload holds it when it was asked for
	ReceivedAt    time.Time
	LiveSince     time.Time
	Target        string // the run it is for, when targeted
	Place                // where it is; for live events RunID is Target
	ClaimedAt     time.Time
	LastReason    rendezvous.DeadReason // of the last death; it stays readable after a requeue, and so does its Detail
	Detail        string                // free text of a death
	DeadAt        time.Time
	Erased        bool
	OfferFailures int
	Requeues      int
	Purged        bool                 // a dead letter whose payload and keys are gone for good
	Op            string               // the last requeue or purge, "" for none
	OpBy          *rendezvous.Operator // who asked for that
}

// Erasure is the answer of ErasePayload.
type Erasure struct {
	Existed   bool
	Was       rendezvous.EventState
	Reopened  *rendezvous.WaitID // the wait that held it, open again: named in Notices
	Journaled *Place             // consumed: that copy belongs to the history
	Notices   Notices
}

// Events is a tenant's event store.
type Events interface {
	// Buffer stores one event; see [Intake.BufferBatch]. A conflict is the error. Again: Duplicate.
	Buffer(ctx context.Context, e rendezvous.Event, at time.Time) (Buffered, error)
	// LookupEvent answers the stored event, its payload only when asked and present; ErrNotFound when it never was buffered.
	LookupEvent(ctx context.Context, id rendezvous.EventID, payload bool) (StoredEvent, error)
	// Minter is the operator who minted the event, nil for events from the wire; ErrNotFound when it never was buffered; half a stored pair is
	// ErrCorrupt (EV-14).
	Minter(ctx context.Context, id rendezvous.EventID) (*rendezvous.Operator, error)
	// DeliverTo gives an event to one run (EV-45..EV-54). After Matched the caller runs DeliverParked for the wait. Again: Matched{again} or Kept
	// while it stands, afterwards Duplicate with where it went.
	DeliverTo(ctx context.Context, run string, e rendezvous.Event, keep bool, at time.Time) (Delivery, error)
	// MatchWaiter claims, for the event, the lowest wait it meets, and does not journal (EV-29, EV-34). Again: Claimed.
	MatchWaiter(ctx context.Context, id rendezvous.EventID, at time.Time) (Match, error)
	// ErasePayload removes an event's payload and digest for ever and keeps its identity (I10, EV-78..EV-82). Again: Existed, nothing more changes.
	ErasePayload(ctx context.Context, id rendezvous.EventID, operator *rendezvous.Operator, at time.Time) (Erasure, error)
}

// MatchOutcome is what MatchWaiter found.
type MatchOutcome string

// Outcomes of MatchWaiter.
const (
	MatchMatched  MatchOutcome = "matched"
	MatchOlder    MatchOutcome = "older" // an older event has precedence at the wait: offer that one first
	MatchNoWaiter MatchOutcome = "no_waiter"
	MatchClaimed  MatchOutcome = "claimed"
	MatchConsumed MatchOutcome = "consumed"
	MatchDead     MatchOutcome = "dead"
	MatchExpired  MatchOutcome = "expired"
)

// Match is the answer of MatchWaiter.
type Match struct {
	Outcome MatchOutcome
	Wait    *WaitRow           // Matched
	Older   rendezvous.EventID // Older
	Place                      // Claimed, Consumed, Dead
}

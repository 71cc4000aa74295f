package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// OfferItem is an event or a wait to look at: exactly one of the two is set.
type OfferItem struct {
	Tenant string
	Event  *rendezvous.EventID
	Wait   *rendezvous.WaitID
}

// OfferOutcome is what an offer came to.
type OfferOutcome string

// Outcomes of OfferBatch and DeliverParked.
const (
	OfferDelivered        OfferOutcome = "delivered"         // the answer is in the history now
	OfferParked           OfferOutcome = "parked"            // claimed, the run is leased
	OfferAlreadyDelivered OfferOutcome = "already_delivered" // it was in the history before
	OfferNoWaiter         OfferOutcome = "no_waiter"         // an event nothing waits for
	OfferNoEvent          OfferOutcome = "no_event"          // a wait nothing answers yet
	OfferClosed           OfferOutcome = "closed"            // a wait that has ended or never was
	OfferExpired          OfferOutcome = "expired"
	OfferDead             OfferOutcome = "dead"
	OfferUnknown          OfferOutcome = "unknown"      // no event of that identity
	OfferLater            OfferOutcome = "later"        // too much to pull in at once: offer it again
	OfferFailed           OfferOutcome = "failed"       // Err says why; counted against the event or the wait
	OfferNothingHeld      OfferOutcome = "nothing_held" // DeliverParked: the wait holds no event
	OfferQuarantined      OfferOutcome = "quarantined"  // DeliverParked: an operator must say so first
	OfferReleased         OfferOutcome = "released"     // DeliverParked: its run is sealed; the event is live again or dead
)

// Offer is the answer to one item, or one pulled-in pair.
type Offer struct {
	Outcome     OfferOutcome
	Tenant      string
	Event       rendezvous.EventID
	Wait        rendezvous.WaitID
	WorkflowID  string
	Seq         int64         // Delivered, AlreadyDelivered: the record
	Queue       string        // Delivered, AlreadyDelivered
	Resume      bool          // Delivered: a RESUME notice is due (never for a paused run)
	Push        bool          // Delivered: a PUSH notice is due: the answer woke registrations
	Woken       bool          // AlreadyDelivered: nobody took the run's lease since
	Remaining   time.Duration // Parked: of the lease
	Quarantined bool          // Parked
	Closed      rendezvous.Closing
	Reason      rendezvous.DeadReason
	// EventTrace and WaitTrace are the contexts of the two sides, for spans and links.
	EventTrace, WaitTrace rendezvous.Trace
	Err                   error
}

// Offered is the answer of a batch.
type Offered struct {
	Items   []Offer // one per item, in input order
	Also    []Offer // pairs of pulled-in events
	Notices Notices
}

// Matcher is the delivery-worker's role.
type Matcher interface {
	// OfferBatch looks for the partner of each of 1..500 items: pulls in every older pair that O3 demands, elects, claims, and where the run is free
	// records the answer and retires the wait, all in one transaction (EV-55..EV-59, EV-66, EV-83, EV-84). The result equals offering all of them one
	// by one by event number. Again: what was Delivered is AlreadyDelivered with the same run, effect and seq.
	OfferBatch(ctx context.Context, items []OfferItem, at time.Time) (Offered, error)
}

// ParkCause says why a delivery could not finish.
type ParkCause string

// The closed set: a lease is nobody's fault, a failure is counted.
const (
	ParkLeased ParkCause = "leased"
	ParkFailed ParkCause = "failed"
)

// ParkItem is one delivery that could not finish.
type ParkItem struct {
	Tenant string
	rendezvous.WaitID
	Cause   ParkCause
	RetryIn time.Duration // 0..10 min
	Error   string        // ≤ 512 bytes, kept as last_error for ParkFailed
	Take    int64         // the take's token, 0 for none
}

// ParkOutcome is what ParkWait did.
type ParkOutcome string

// Outcomes of ParkWait.
const (
	ParkedParked      ParkOutcome = "parked"
	ParkedNothingHeld ParkOutcome = "nothing_held"
	ParkedClosed      ParkOutcome = "closed"
)

// ParkResult is the answer to one item.
type ParkResult struct {
	Outcome       ParkOutcome
	Attempts      int
	NextAttemptAt time.Time
	Quarantined   bool
	Err           error // fenced for a take that is not the wait's latest
}

// TakenWait is a parked wait handed out with a take.
type TakenWait struct {
	Tenant     string
	WorkflowID string
	WaitRow
	Take int64
}

// Taken is a page of takes.
type Taken[T any] struct {
	Rows      []T
	Saturated bool // more was due than the page gave
}

// Redeliverer works parked waits.
type Redeliverer interface {
	// DeliverParked records the held events of 1..500 parked waits whose runs are free. A wait of a sealed run is released, not destroyed.
	DeliverParked(ctx context.Context, waits []WaitRef, at time.Time) (Offered, error)
	// ParkWait defers 1..500 parked waits. A wait that holds nothing stays open (EV-61). Again with the same take: the first answer, counted once;
	// a take that is not the latest is fenced (EV-86).
	ParkWait(ctx context.Context, items []ParkItem, at time.Time) ([]ParkResult, error)
	// TakeParked hands out due parked waits of free runs, fair by tenant, and takes them until now + hold (1..300 s, 0 means 30 s).
	TakeParked(ctx context.Context, limit int, hold time.Duration) (Taken[TakenWait], error)
}

// ParkedPage is a page of parked waits.
type ParkedPage struct {
	WaitPage
	// Released names events that rows of sealed runs held, possible only after a restore; Notices offers them.
	Released []rendezvous.EventID
	Notices  Notices
}

// Parked is a tenant's view of its parked waits, for operators.
type Parked interface {
	// ParkedWaits lists parked waits, quarantined last, by (next_attempt_at, number). Claims nothing; never an idle wait (EV-64).
	// A page may be short, even empty, and not the last, as one of Waiting (EV-88).
	ParkedWaits(ctx context.Context, f WaitFilter, limit int, cursor string) (ParkedPage, error)
	// QuarantinedWaits lists by (quarantined_at, number).
	QuarantinedWaits(ctx context.Context, limit int, cursor string) (WaitPage, error)
	// RetryWait makes a quarantined wait due now with attempts 0: true if it was quarantined (EV-62).
	RetryWait(ctx context.Context, id rendezvous.WaitID, operator *rendezvous.Operator) (bool, error)
}

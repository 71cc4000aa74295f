package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Explainer says why an event or a wait did not match (sweep.md section 7). They are reads: they lock, claim and change nothing, read one snapshot at the
// store's now, stay in the tenant, and answer no payload (SW-32). A row that does not decode is ErrCorrupt.
type Explainer interface {
	// ExplainEvent says how an event stands; one that nobody knows is the verdict unknown, no error.
	ExplainEvent(ctx context.Context, id rendezvous.EventID) (Explanation, error)
	// ExplainWait says how a wait stands; one that never was registered is the verdict unregistered, no error.
	ExplainWait(ctx context.Context, id rendezvous.WaitID) (Explanation, error)
	// ExplainPair says how the event stands, and in Reasons and Hints what stands between it and that wait. Where there is no such event, or else no such wait,
	// the verdict is unknown or unregistered, and there are no reasons. It names no near misses.
	ExplainPair(ctx context.Context, event rendezvous.EventID, wait rendezvous.WaitID) (Explanation, error)
}

// Bounds of an explanation.
const (
	MaxNearMisses  = 10    // told
	MaxNearSearch  = 1_000 // rows looked at for them
	MaxExplainList = 10    // other lists of an explanation: effects of similar names, events that a conclusion released
)

// Explanation is why an event or a wait stands as it does.
type Explanation struct {
	Verdict rendezvous.Verdict
	Facts   Facts
	// Reasons are all pair reasons that hold where two sides are compared: the pair that was asked for, or the one that the verdict is about.
	Reasons []Reason
	Hints   []Hint // of the pair that was asked for
	// NearMisses are what comes nearest to meeting it, at most MaxNearMisses, fewest reasons first, then the lowest number. When there are more, those with a
	// hint have the places.
	NearMisses []NearMiss
	Partial    bool // the search for near misses was cut: at MaxNearSearch rows, or behind the newest among which the type is looked for
}

// Facts are what a verdict rests on. Which of them are there follows from the verdict; of what was asked for, its own values are there when it is known.
type Facts struct {
	Number       int64
	Type         string
	Keys         []rendezvous.Key
	From         string    // a wait's
	Target       string    // an event's: the run it is for
	RegisteredAt time.Time // a wait's
	Deadline     time.Time // a wait's, if it has one
	Other        *Wants    // of a pair: the wait's side
	ReceivedAt   time.Time // an event's

	Event      *rendezvous.EventID // another event: held, answering, met, or going first
	Wait       *rendezvous.WaitID  // another wait: holding, answered, met, or going first
	WorkflowID string              // of the run that the facts are about
	Seq        int64               // of the record that closed the wait
	Since      time.Time           // held, expired, kept, offer_due, overdue: since when
	At         time.Time           // delivered, dead, closed, ended: when
	Waited     time.Duration       // delivered: from its arrival to the record

	Hold          *Hold // held, overdue
	Death         *Death
	Erased        bool
	Purged        bool
	Requeues      int
	OfferFailures int
	Run           *RunFacts            // kept: its addressee; unregistered: the run; ended: the run that concluded
	Similar       []string             // unregistered: effects of the run with a similar name
	Released      []rendezvous.EventID // ended: what the conclusion gave back
	Dead          []rendezvous.EventID // ended: what it made dead letters
}

// Wants is what a wait waits for.
type Wants struct {
	Type     string
	Keys     []rendezvous.Key
	From     string
	Deadline time.Time // zero: none
}

// Hold is what a standing claim, or a deadline that is over, waits for.
type Hold struct {
	State         rendezvous.HoldState
	Owner         string        // leased
	Remaining     time.Duration // leased
	Attempts      int           // failed ones
	NextAttemptAt time.Time
	LastError     string
	QuarantinedAt time.Time
}

// Death is how an event died.
type Death struct {
	Reason rendezvous.DeadReason
	Detail string
}

// RunFacts is a run that a verdict is about.
type RunFacts struct {
	RunID      string
	State      rendezvous.RunState
	WorkflowID string
	Outcome    rendezvous.Kind // sealed
	SealedAt   time.Time
}

// Reason is one pair reason with what it names.
type Reason struct {
	Code    rendezvous.PairReason
	Event   *rendezvous.EventID   // the older event; the one that a wait is parked with, or was answered by
	Wait    *rendezvous.WaitID    // the older wait; the one that claimed or consumed the event
	Seq     int64                 // event_consumed, wait_closed: the record
	Since   time.Time             // when it became so; arrived_late: the deadline
	Dead    rendezvous.DeadReason // event_dead, event_erased: why the event died, if it did
	Closed  rendezvous.Closing    // wait_closed
	Outcome rendezvous.Kind       // run_sealed; wait_closed by a conclusion that was reopened since
}

// Hint is what two sides nearly have in common, as each spells it.
type Hint struct {
	Kind        rendezvous.HintKind
	Event, Wait string
}

// NearMiss is a wait that an event nearly met, or an event that nearly met a wait.
type NearMiss struct {
	Event   *rendezvous.EventID // one of the two
	Wait    *rendezvous.WaitID
	Number  int64
	Type    string
	Keys    []rendezvous.Key
	From    string // a wait's
	Target  string // an event's
	Reasons []Reason
	Hints   []Hint
}

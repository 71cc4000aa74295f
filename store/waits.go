package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Registration is a wait to register. Epoch is needed while the run is leased; 0 means none is given.
type Registration struct {
	rendezvous.Wait
	Epoch int64
}

// RegisterOutcome is how a wait stands after registering.
type RegisterOutcome string

// Outcomes of registering.
const (
	RegisterWaiting   RegisterOutcome = "waiting"
	RegisterAnswered  RegisterOutcome = "answered"
	RegisterTimedOut  RegisterOutcome = "timed_out"
	RegisterWithdrawn RegisterOutcome = "withdrawn"
)

// Registered is the answer to one registration.
type Registered struct {
	Outcome  RegisterOutcome
	Number   int64              // Waiting: the wait's place in line
	Seq      int64              // Waiting: its WaitRegistered; else the record that closed it
	Answer   *rendezvous.Record // Answered: the record, payload whole
	Parked   bool               // Waiting: an event is claimed for it; the run's lease, or how much a batch answers, delays the record
	Workflow string
	// EventTrace is the context of the event that answered just now, for spans.
	EventTrace rendezvous.Trace
	Also       []Offer // other pairs the second look made
	Notices    Notices
	Err        error // in a batch: this registration failed alone
}

// RegisterItem is one registration of a batch.
type RegisterItem struct {
	Tenant string
	Registration
}

// Registrar registers waits for all tenants: the door's grouped calls.
type Registrar interface {
	// RegisterBatch registers 1..500 waits as [Waits.RegisterWait] does, with one second look for all (EV-87). It hands out 16 MiB of payload: an event
	// that is over is claimed for its wait, which is Waiting and Parked; an answer that the second look recorded and that is over leaves its wait
	// Waiting; one that an earlier call recorded fails alone, unavailable. Asking again gives each, and so do a driver's Collect and Suspend.
	RegisterBatch(ctx context.Context, items []RegisterItem, at time.Time) ([]Registered, error)
}

// Subscribed is the answer of Subscribe: registered, or closed before.
type Subscribed struct {
	Number  int64              // when registered
	Seq     int64              // WaitRegistered, or the record that closed it
	Closed  rendezvous.Closing // "" when registered
	Notices Notices
}

// Claim is the answer of ClaimFor.
type Claim struct {
	Event      *rendezvous.Event // nil: Nothing, or Closed
	ReceivedAt time.Time
	Again      bool
	Closed     rendezvous.Closing // how the wait ended, if it did
	Seq        int64              // Closed: the record
}

// WithdrawOutcome is how a wait had ended or ends now.
type WithdrawOutcome string

// Outcomes of Unsubscribe.
const (
	WithdrawAnswered  WithdrawOutcome = "answered"
	WithdrawTimedOut  WithdrawOutcome = "timed_out"
	WithdrawWithdrawn WithdrawOutcome = "withdrawn"
	WithdrawNothing   WithdrawOutcome = "nothing" // never registered
	WithdrawEnded     WithdrawOutcome = "ended"   // its run concluded with the wait open
)

// Withdrawn is the answer of Unsubscribe.
type Withdrawn struct {
	Outcome  WithdrawOutcome
	Seq      int64
	Released *rendezvous.EventID // the event it held is live again: named in Notices
	Dead     *rendezvous.EventID // the targeted event it held is a dead letter
	Notices  Notices
}

// Retired is what ended with a run or with UnsubscribeRun.
type Retired struct {
	Waits     int                  `json:"waits"`
	Released  []rendezvous.EventID `json:"released,omitempty"`  // live again
	Dead      []rendezvous.EventID `json:"dead,omitempty"`      // targeted or kept: dead letters
	Timers    int                  `json:"timers,omitempty"`    // armings that ended
	Corrected []string             `json:"corrected,omitempty"` // effects of which the caller's belief was wrong
}

// WaitRow is a wait as listed: its own keys and from, never the event's (O5).
type WaitRow struct {
	Number int64
	rendezvous.Wait
	WorkflowID    string
	State         rendezvous.WaitState
	RegisteredAt  time.Time
	Held          *rendezvous.EventID // the claimed event
	ParkedAt      time.Time
	Attempts      int
	NextAttemptAt time.Time
	LastError     string
	QuarantinedAt time.Time
	Corrupt       error // the row does not decode; the ids above are what is known (R9)
}

// WaitFilter chooses waits; zero parts mean any.
type WaitFilter struct {
	RunID string
	Type  string
	Key   *rendezvous.Key
	State rendezvous.WaitState
}

// WaitPage is a page of waits by number.
type WaitPage struct {
	Waits      []WaitRow
	NextCursor string // "" at the end
}

// Waits is a tenant's wait store.
type Waits interface {
	// RegisterWait records WaitRegistered and takes the oldest event that meets the wait, if it is not contested (O3); otherwise the wait stays and
	// the store takes a second look after its commit (O6). The normal way. Again, or after a restart: no second record; the call claims and answers
	// as the first would, or says how the wait was closed (EV-18..EV-26).
	// Errors: not_found, sealed, lease_held, fenced, conflict (other type, keys or from; paused), duplicate, too_large.
	RegisterWait(ctx context.Context, r Registration, at time.Time) (Registered, error)
	// Subscribe is RegisterWait without the claim, for callers that claim themselves; no row for an effect that is closed (EV-21).
	Subscribe(ctx context.Context, r Registration, at time.Time) (Subscribed, error)
	// ClaimFor claims the oldest uncontested event for a registered wait and parks it; a parked wait gets its own event again, whole (EV-28, EV-39).
	// The answer is then recorded by Collect or DeliverParked. ErrNotFound when the wait never was registered.
	ClaimFor(ctx context.Context, id rendezvous.WaitID, at time.Time) (Claim, error)
	// Unsubscribe withdraws an open wait (EV-71..EV-73). Again: the same answer from the history.
	Unsubscribe(ctx context.Context, id rendezvous.WaitID, epoch int64, reason string, at time.Time) (Withdrawn, error)
	// UnsubscribeRun withdraws every wait of a run. The history says what is answered; unanswered is the caller's belief (EV-74, EV-75).
	// Again on a sealed run: the summary its conclusion kept.
	UnsubscribeRun(ctx context.Context, run string, epoch int64, unanswered []string, at time.Time) (Retired, Notices, error)
	// Waiting lists waits by number, one entry per wait. Default 100, maximum 1,000. A page looks at a bounded number of rows: with a filter it may be short,
	// even empty, and not the last (EV-88). Those of one run are found by index.
	Waiting(ctx context.Context, f WaitFilter, limit int, cursor string) (WaitPage, error)
}

package rendezvous

// Verdict is the one word for how an event or a wait stands when somebody asks why it did not match (sweep.md section 7). The verdicts of a side exclude one
// another. A word is never given another meaning.
type Verdict string

// The closed set of verdicts of an event; held, behind and offer_due are a wait's too.
const (
	VerdictUnknown   Verdict = "unknown"   // never buffered in this tenant
	VerdictDelivered Verdict = "delivered" // its answer is in a history
	VerdictHeld      Verdict = "held"      // claimed; the answer is not recorded yet
	VerdictDead      Verdict = "dead"      // a dead letter
	VerdictExpired   Verdict = "expired"   // meets nobody any more; the next sweep retires it
	VerdictKept      Verdict = "kept"      // targeted, and its run waits for nothing of the kind
	VerdictNoKeys    Verdict = "no_keys"   // untargeted and without keys: nothing can meet it
	VerdictBehind    Verdict = "behind"    // an older one goes first
	VerdictOfferDue  Verdict = "offer_due" // both sides are each other's first: the offer is on its way
	VerdictNoWait    Verdict = "no_wait"   // nothing meets it
)

// The closed set of verdicts that only a wait has.
const (
	VerdictUnregistered Verdict = "unregistered"
	VerdictAnswered     Verdict = "answered"
	VerdictTimedOut     Verdict = "timed_out"
	VerdictWithdrawn    Verdict = "withdrawn"
	VerdictEnded        Verdict = "ended"    // its run concluded with the wait open
	VerdictOverdue      Verdict = "overdue"  // its deadline is past, no event that came in time is left, the time-out is not recorded yet
	VerdictNoEvent      Verdict = "no_event" // nothing meets it
)

// PairReason says why an event and a wait are no pair, or that they are one.
type PairReason string

// The closed set of pair reasons, in the order in which they are told.
const (
	PairOtherType       PairReason = "other_type"        // M1
	PairOtherSource     PairReason = "other_source"      // M2
	PairNoSharedKey     PairReason = "no_shared_key"     // M3
	PairOtherAddressee  PairReason = "other_addressee"   // M3
	PairEventExpired    PairReason = "event_expired"     // M4
	PairEventClaimed    PairReason = "event_claimed"     // by which wait
	PairEventConsumed   PairReason = "event_consumed"    // by which wait
	PairEventDead       PairReason = "event_dead"        // why
	PairEventErased     PairReason = "event_erased"      // in whatever state
	PairArrivedLate     PairReason = "arrived_late"      // M5: received at or after the deadline
	PairWaitParked      PairReason = "wait_parked"       // with which event
	PairWaitClosed      PairReason = "wait_closed"       // how
	PairRunSealed       PairReason = "run_sealed"        // the outcome
	PairOlderEventFirst PairReason = "older_event_first" // O3: which
	PairOlderWaitFirst  PairReason = "older_wait_first"  // O3: which
	PairOfferDue        PairReason = "offer_due"         // nothing stands between them
)

// HintKind says what two sides nearly have in common.
type HintKind string

// The closed set of hints: equal after trimming and case folding, or, of keys, the same value under another namespace.
const (
	HintSimilarType   HintKind = "similar_type"
	HintSimilarSource HintKind = "similar_source"
	HintSimilarKey    HintKind = "similar_key"
)

// HoldState says what a standing claim, or a deadline that is over, waits for.
type HoldState string

// The closed set of what a standing claim waits for; a deadline waits for a lease or the timer-worker.
const (
	HoldLeased      HoldState = "leased"      // the run is driven: its driver records the answer, or the sweep when the lease ends
	HoldDue         HoldState = "due"         // the next pass records it
	HoldBackoff     HoldState = "backoff"     // it is tried again at its next attempt
	HoldQuarantined HoldState = "quarantined" // nobody tries it until an operator says so
	HoldTimerLag    HoldState = "timer_lag"   // overdue: the timer-worker records it
)

// RunState says whether a run that an explanation names can take an event.
type RunState string

// The closed set of states of a run that an explanation names.
const (
	RunStateOpen    RunState = "open"
	RunStateSealed  RunState = "sealed"
	RunStateUnknown RunState = "unknown" // no run of that id was started in this tenant
)

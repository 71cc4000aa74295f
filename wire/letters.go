package wire

import "github.com/rendezvous-events/rendezvous"

// LetterFilter chooses dead letters; absent parts mean any, intervals include both their ends.
type LetterFilter struct {
	Reason         rendezvous.DeadReason `json:"reason,omitempty"`
	Type           string                `json:"type,omitempty"`
	Source         string                `json:"source,omitempty"`
	Key            *rendezvous.Key       `json:"key,omitempty"`
	ReceivedAfter  Time                  `json:"received_after,omitzero"`
	ReceivedBefore Time                  `json:"received_before,omitzero"`
	DeadAfter      Time                  `json:"dead_after,omitzero"`
	DeadBefore     Time                  `json:"dead_before,omitzero"`
}

// ListLetters is the request of deadletters.list.
type ListLetters struct {
	Filter      LetterFilter `json:"filter,omitzero"`
	Limit       int          `json:"limit,omitempty"`
	Cursor      string       `json:"cursor,omitempty"`
	IncludeData bool         `json:"include_data,omitempty"`
}

// Letters is the reply of deadletters.list, newest number first.
type Letters struct {
	Letters    []Letter `json:"letters"`
	NextCursor string   `json:"next_cursor,omitempty"`
}

// Letter is a row of deadletters.list.
type Letter struct {
	Source     string                `json:"source"`
	ID         string                `json:"id"`
	Number     int64                 `json:"number"`
	Type       string                `json:"type"`
	Keys       []rendezvous.Key      `json:"keys"`             // exactly as buffered
	Target     string                `json:"target,omitempty"` // the run it was for
	Reason     rendezvous.DeadReason `json:"reason"`
	Detail     string                `json:"detail,omitempty"`
	ReceivedAt Time                  `json:"received_at"`
	DeadAt     Time                  `json:"dead_at"`
	ExpiresAt  Time                  `json:"expires_at,omitzero"`
	Requeues   int                   `json:"requeues,omitempty"`
	Erased     bool                  `json:"erased"`
	Payload    *Payload              `json:"payload,omitempty"`
	Omitted    bool                  `json:"payload_omitted,omitempty"` // there is one, which the way of the reply has no room for: events.get has it
	Corrupt    bool                  `json:"corrupt,omitempty"`         // it does not decode: identity and number are what is known
}

// CountLetters is the request of deadletters.count.
type CountLetters struct {
	Filter   LetterFilter `json:"filter,omitzero"`
	Cap      int          `json:"cap,omitempty"`
	ByReason bool         `json:"by_reason,omitempty"`
}

// LetterCount is the reply of deadletters.count.
type LetterCount struct {
	Count    int                           `json:"count"`
	Capped   bool                          `json:"capped,omitempty"`
	ByReason map[rendezvous.DeadReason]int `json:"by_reason,omitempty"`
}

// RequeueLetters is the request of deadletters.requeue: events, or a filter with a bound.
type RequeueLetters struct {
	Selection
	To        string `json:"to,omitempty"` // as they were, or [Broadcast], or a run
	ExpiresAt Time   `json:"expires_at,omitzero"`
}

// PurgeLetters is the request of deadletters.purge: events, or a filter with a bound.
type PurgeLetters struct{ Selection }

// Selection is which letters a verb is about, who says so, and the name that makes its repetition safe.
type Selection struct {
	Events   []rendezvous.EventID `json:"events,omitempty"`
	Filter   *LetterFilter        `json:"filter,omitempty"`
	Bound    int                  `json:"bound,omitempty"`
	Cursor   string               `json:"cursor,omitempty"`
	Operator *rendezvous.Operator `json:"operator,omitempty"`
	Op       string               `json:"op"`
}

// Broadcast as the target of a requeue drops the addressee.
const Broadcast = "broadcast"

// LetterResults is the reply of deadletters.requeue and deadletters.purge: in input order, or lowest number first.
type LetterResults struct {
	Results    []LetterResult `json:"results"`
	More       bool           `json:"more,omitempty"` // a filter chooses more than the bound
	NextCursor string         `json:"next_cursor,omitempty"`
	Omitted    int            `json:"results_omitted,omitempty"` // results that the way of the reply has no room for: events.get says how those stand
}

// LetterResult is what became of one letter.
type LetterResult struct {
	Source     string                `json:"source"`
	ID         string                `json:"id"`
	Outcome    string                `json:"outcome"` // requeued, purged, not_dead, erased, addressee_concluded, expired, not_found, failed
	Number     int64                 `json:"number,omitempty"`
	State      rendezvous.EventState `json:"state,omitempty"` // not_dead: and where it is
	WorkflowID string                `json:"workflow_id,omitempty"`
	RunID      string                `json:"run_id,omitempty"`
	Effect     string                `json:"effect,omitempty"`
	Seq        int64                 `json:"seq,omitempty"`
	CurrentRun string                `json:"current_run,omitempty"` // addressee_concluded
	Error      *Error                `json:"error,omitempty"`       // failed
}

// LetterFailed is the outcome of a letter that failed alone; its error says why.
const LetterFailed = "failed"

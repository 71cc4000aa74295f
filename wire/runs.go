package wire

import (
	"encoding/json"

	"github.com/rendezvous-events/rendezvous"
)

// Unbuilt are fields of the contract whose role this build does not have; a request that carries one is refused by name.
type Unbuilt struct {
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// Refuse names the field given.
func (u Unbuilt) Refuse() error {
	if u.Attributes != nil {
		return rendezvous.NotBuilt("attributes")
	}
	return nil
}

// StartRun is the request of runs.start, and of a continuation's next.
type StartRun struct {
	Type        string               `json:"type,omitempty"`
	WorkflowID  string               `json:"workflow_id,omitempty"`
	RunID       string               `json:"run_id,omitempty"`
	Queue       string               `json:"queue,omitempty"`
	Input       *Payload             `json:"input,omitempty"`
	Parent      string               `json:"parent,omitempty"`
	CodeVersion string               `json:"code_version,omitempty"`
	Operator    *rendezvous.Operator `json:"operator,omitempty"`
	// Deadline or DeadlineAfterMS, at most one: when the whole run is over, whoever drives it. In the future, else invalid.
	Deadline        *Due   `json:"deadline,omitempty"`
	DeadlineAfterMS *int64 `json:"deadline_after_ms,omitempty"`
	// Push are registrations made with the run; they name no run (PU-13). Of runs.start only.
	Push []PutPush `json:"push,omitempty"`
	Unbuilt
}

// Started is the reply of runs.start.
type Started struct {
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	HeadSeq    int64             `json:"head_seq"`
	First      bool              `json:"first"`
	Status     rendezvous.Status `json:"status"`
}

// WorkflowRef is the request of runs.get and runs.chain.
type WorkflowRef struct {
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
	AfterSeq   int64  `json:"after_seq,omitempty"` // runs.chain
	Limit      int    `json:"limit,omitempty"`     // runs.chain
}

// Workflow is the reply of runs.get and a row of runs.list.
type Workflow struct {
	WorkflowID       string            `json:"workflow_id"`
	RunID            string            `json:"run_id"`
	Type             string            `json:"type"`
	Queue            string            `json:"queue"`
	Status           rendezvous.Status `json:"status"`
	HeadSeq          int64             `json:"head_seq"`
	Shard            int               `json:"shard"`
	Parent           string            `json:"parent,omitempty"`
	CreatedAt        Time              `json:"created_at"`
	StartedAt        Time              `json:"started_at"`
	ClosedAt         Time              `json:"closed_at,omitzero"`
	UpdatedAt        Time              `json:"updated_at"`
	OpenEffects      int               `json:"open_effects"`
	OpenWaits        int               `json:"open_waits"`
	LiveTimers       int               `json:"live_timers"` // armings of every class, deadlines too
	FailureCode      string            `json:"failure_code,omitempty"`
	FailureReason    string            `json:"failure_reason,omitempty"`
	FailedEffect     string            `json:"failed_effect,omitempty"`
	LeaseOwner       string            `json:"lease_owner,omitempty"`
	LeaseEpoch       int64             `json:"lease_epoch"`
	LeaseRemainingMS int64             `json:"lease_remaining_ms,omitempty"`
	Reclaims         int               `json:"reclaims,omitempty"`
	Requests         []Request         `json:"requests,omitempty"`
	Run              *Run              `json:"run,omitempty"`
	Corrupt          bool              `json:"corrupt,omitempty"`
}

// Run is one run of a chain.
type Run struct {
	RunID       string            `json:"run_id"`
	PreviousRun string            `json:"previous_run,omitempty"`
	Status      rendezvous.Status `json:"status"`
	FirstSeq    int64             `json:"first_seq"`
	LastSeq     int64             `json:"last_seq"`
	StartedAt   Time              `json:"started_at"`
	ClosedAt    Time              `json:"closed_at,omitzero"`
	Outcome     rendezvous.Kind   `json:"outcome,omitempty"`
}

// Chain is the reply of runs.chain.
type Chain struct {
	Runs []Run `json:"runs"`
}

// WorkflowFilter is the filter of runs.list and runs.count.
type WorkflowFilter struct {
	Types    []string            `json:"types,omitempty"`
	Statuses []rendezvous.Status `json:"statuses,omitempty"`
	Queues   []string            `json:"queues,omitempty"`
	Prefix   string              `json:"workflow_id,omitempty"` // a prefix
}

// ListRuns is the request of runs.list.
type ListRuns struct {
	Filter WorkflowFilter  `json:"filter,omitzero"`
	Sort   json.RawMessage `json:"sort,omitempty"` // refused: started_at descending is the one order
	Limit  int             `json:"limit,omitempty"`
	Cursor string          `json:"cursor,omitempty"`
}

// RunList is the reply of runs.list.
type RunList struct {
	Runs       []Workflow `json:"runs"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// CountRuns is the request of runs.count.
type CountRuns struct {
	Filter WorkflowFilter `json:"filter,omitzero"`
	Cap    int            `json:"cap,omitempty"`
}

// RunCount is the reply of runs.count.
type RunCount struct {
	Count  int  `json:"count"`
	Capped bool `json:"capped,omitempty"`
}

// ReadHistory is the request of runs.history.
type ReadHistory struct {
	WorkflowID string `json:"workflow_id"`
	FromSeq    int64  `json:"from_seq,omitempty"`
	Limit      int    `json:"limit,omitempty"`
	WaitMS     int64  `json:"wait_ms,omitempty"` // long poll, at most 30,000
}

// History is the reply of runs.history.
type History struct {
	Records []Record `json:"records"`
	HeadSeq int64    `json:"head_seq"`
	More    bool     `json:"more"`
}

// Collected is the reply of runs.collect.
type Collected History

// AcquireLease is the request of runs.acquire and, with epoch instead of acquire_id, of runs.renew.
type AcquireLease struct {
	RunID     string `json:"run_id"`
	Owner     string `json:"owner"`
	TTLMS     *int64 `json:"ttl_ms,omitempty"` // absent: 30,000
	AcquireID string `json:"acquire_id,omitempty"`
	Epoch     int64  `json:"epoch,omitempty"`
}

// Lease is the reply of runs.acquire and runs.renew.
type Lease struct {
	WorkflowID string    `json:"workflow_id,omitempty"`
	Epoch      int64     `json:"epoch"`
	HeadSeq    int64     `json:"head_seq"`
	ExpiresAt  Time      `json:"expires_at"`
	Requests   []Request `json:"requests"`
	Mail       int       `json:"mail"`
}

// ReleaseLease is the request of runs.release: with seen_seq it is Suspend, without ReleaseLease.
type ReleaseLease struct {
	RunID       string `json:"run_id"`
	Epoch       int64  `json:"epoch"`
	SeenSeq     *int64 `json:"seen_seq,omitempty"`
	KnowsCancel bool   `json:"knows_cancel,omitempty"`
}

// Released is the reply of runs.release.
type Released struct {
	Outcome  string    `json:"outcome"`
	Seq      int64     `json:"seq,omitempty"`
	Records  []Record  `json:"records"`
	HeadSeq  int64     `json:"head_seq"`
	Requests []Request `json:"requests"`
	More     bool      `json:"more"`
}

// Collect is the request of runs.collect.
type Collect struct {
	RunID string `json:"run_id"`
	Epoch int64  `json:"epoch"`
}

// Append is the request of runs.append.
type Append struct {
	RunID       string   `json:"run_id"`
	WorkflowID  string   `json:"workflow_id,omitempty"` // only where the first record is run.started
	Epoch       int64    `json:"epoch,omitempty"`
	ExpectedSeq int64    `json:"expected_seq"`
	BatchID     string   `json:"batch_id"`
	Records     []Record `json:"records"`
}

// Appended is the reply of runs.append.
type Appended struct {
	FirstSeq int64     `json:"first_seq"`
	HeadSeq  int64     `json:"head_seq"`
	Answers  []Answer  `json:"answers"`
	More     bool      `json:"more,omitempty"` // answers that the reply has no room for: they are in the history behind the others
	Requests []Request `json:"requests"`
	Mail     int       `json:"mail"`
	Again    bool      `json:"again,omitempty"`
}

// Answer is an answer recorded behind an append's own records.
type Answer struct {
	Effect string `json:"effect"`
	Seq    int64  `json:"seq"`
	Record Record `json:"record"`
}

// Conclude is the request of runs.conclude.
type Conclude struct {
	RunID       string               `json:"run_id"`
	Epoch       int64                `json:"epoch,omitempty"`
	ExpectedSeq int64                `json:"expected_seq"`
	BatchID     string               `json:"batch_id"`
	Outcome     rendezvous.Status    `json:"outcome"`
	Result      *Payload             `json:"result,omitempty"`
	Code        string               `json:"code,omitempty"`
	Reason      string               `json:"reason,omitempty"`
	Detail      *Payload             `json:"detail,omitempty"`
	Operator    *rendezvous.Operator `json:"operator,omitempty"`
	Next        *StartRun            `json:"next,omitempty"` // continued_as_new
}

// Concluded is the reply of runs.conclude.
type Concluded struct {
	Seq      int64                `json:"seq"`
	Waits    int                  `json:"waits"`
	Timers   int                  `json:"timers"` // armings that ended
	Released []rendezvous.EventID `json:"released"`
	Dead     []rendezvous.EventID `json:"dead"`
	More     bool                 `json:"more,omitempty"` // released or dead ones that the reply has no room for
	NextRun  string               `json:"next_run,omitempty"`
	Again    bool                 `json:"again,omitempty"`
}

// ReopenRun is the request of runs.reopen.
type ReopenRun struct {
	RunID    string               `json:"run_id"`
	BatchID  string               `json:"batch_id"`
	Reason   string               `json:"reason,omitempty"`
	Operator *rendezvous.Operator `json:"operator,omitempty"`
}

// Reopened is the reply of runs.reopen.
type Reopened struct {
	Outcome string `json:"outcome"` // OutcomeReopened
	Seq     int64  `json:"seq"`     // of run.reopened
	Timers  int    `json:"timers"`  // armings that are back, at their original instants
	Again   bool   `json:"again,omitempty"`
}

// OutcomeReopened is the one outcome of runs.reopen.
const OutcomeReopened = "reopened"

// ActOnRun is the request of runs.cancel, runs.pause and runs.resume.
type ActOnRun struct {
	RunID    string               `json:"run_id"`
	Reason   string               `json:"reason,omitempty"`
	Operator *rendezvous.Operator `json:"operator,omitempty"`
	Now      bool                 `json:"now,omitempty"` // cancel
}

// Acted is the reply of runs.cancel, runs.pause and runs.resume.
type Acted struct {
	Outcome    string               `json:"outcome"`
	Seq        int64                `json:"seq,omitempty"`
	Operator   *rendezvous.Operator `json:"operator,omitempty"` // who asked first
	Reason     string               `json:"reason,omitempty"`
	At         Time                 `json:"at,omitzero"`
	Since      Time                 `json:"since,omitzero"`
	RunOutcome rendezvous.Status    `json:"run_outcome,omitempty"` // closed: the run's own end
	Released   []rendezvous.EventID `json:"released,omitempty"`
	Dead       []rendezvous.EventID `json:"dead,omitempty"`
	More       bool                 `json:"more,omitempty"` // as in [Concluded]
}

package rendezvous

// Kind is a record's kind: a wire token of a closed set (history.md section 3). A token is never reused or renamed.
type Kind string

// The closed set of 21 kinds.
const (
	RunStarted        Kind = "run.started"
	RunCompleted      Kind = "run.completed"
	RunFailed         Kind = "run.failed"
	RunCancelled      Kind = "run.cancelled"
	RunTimedOut       Kind = "run.timed_out"
	RunContinued      Kind = "run.continued"
	RunReopened       Kind = "run.reopened"
	RunPaused         Kind = "run.paused"
	RunResumed        Kind = "run.resumed"
	EffectStarted     Kind = "effect.started"
	EffectDone        Kind = "effect.done"
	EffectFailed      Kind = "effect.failed"
	WaitRegistered    Kind = "wait.registered"
	WaitAnswered      Kind = "wait.answered"
	WaitTimedOut      Kind = "wait.timed_out"
	WaitWithdrawn     Kind = "wait.withdrawn"
	TimerStarted      Kind = "timer.started"
	TimerFired        Kind = "timer.fired"
	TimerCancelled    Kind = "timer.cancelled"
	AttributesUpdated Kind = "attributes.updated"
	Note              Kind = "note"
)

// KindVersion is the format version of every kind today.
const KindVersion = 1

// Status is the state of a run or workflow (history.md section 5).
type Status string

// The closed set of seven.
const (
	StatusRunning   Status = "running"
	StatusPaused    Status = "paused"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	StatusTimedOut  Status = "timed_out"
	StatusContinued Status = "continued_as_new"
)

// Terminal reports whether a run of that status is concluded.
func (s Status) Terminal() bool { return s != StatusRunning && s != StatusPaused }

// Known reports whether s is one of the seven.
func (s Status) Known() bool {
	switch s {
	case StatusRunning, StatusPaused, StatusCompleted, StatusFailed, StatusCancelled, StatusTimedOut, StatusContinued:
		return true
	}
	return false
}

// Phase is what a kind does to the effect named in its record.
type Phase string

// The phases: a record opens an effect key, closes it, or has nothing to do with any.
const (
	PhaseNone  Phase = ""
	PhaseOpen  Phase = "open"
	PhaseClose Phase = "close"
)

// kindRules is what the contract's table says of a kind.
type kindRules struct {
	status  Status // lifecycle kinds: the status they decide
	phase   Phase
	wait    bool // of an effect key that names a wait
	newWork bool // asks something new of the world: refused while paused (G6)
	payload bool // may carry a payload
}

var kinds = map[Kind]kindRules{
	RunStarted:        {status: StatusRunning, payload: true},
	RunCompleted:      {status: StatusCompleted, payload: true},
	RunFailed:         {status: StatusFailed, payload: true},
	RunCancelled:      {status: StatusCancelled},
	RunTimedOut:       {status: StatusTimedOut},
	RunContinued:      {status: StatusContinued, newWork: true},
	RunReopened:       {status: StatusRunning},
	RunPaused:         {status: StatusPaused},
	RunResumed:        {status: StatusRunning},
	EffectStarted:     {phase: PhaseOpen, newWork: true, payload: true},
	EffectDone:        {phase: PhaseClose, payload: true},
	EffectFailed:      {phase: PhaseClose, payload: true},
	WaitRegistered:    {phase: PhaseOpen, wait: true, newWork: true},
	WaitAnswered:      {phase: PhaseClose, wait: true, payload: true},
	WaitTimedOut:      {phase: PhaseClose, wait: true},
	WaitWithdrawn:     {phase: PhaseClose, wait: true},
	TimerStarted:      {newWork: true},
	TimerFired:        {},
	TimerCancelled:    {},
	AttributesUpdated: {},
	Note:              {payload: true},
}

// Known reports whether this build knows the kind.
func (k Kind) Known() bool { _, ok := kinds[k]; return ok }

// Status is the status a lifecycle kind decides, "" for all others.
func (k Kind) Status() Status { return kinds[k].status }

// Lifecycle reports whether the kind moves status.
func (k Kind) Lifecycle() bool { return kinds[k].status != "" }

// Terminal reports whether the kind ends a run.
func (k Kind) Terminal() bool { return k.Lifecycle() && k.Status().Terminal() }

// Phase is what the kind does to its effect.
func (k Kind) Phase() Phase { return kinds[k].phase }

// IsWait reports whether the kind's effect key names a wait.
func (k Kind) IsWait() bool { return kinds[k].wait }

// NewWork reports whether the kind asks something new of the world, which a paused run may not (G6).
func (k Kind) NewWork() bool { return kinds[k].newWork }

// TakesPayload reports whether a record of the kind may carry a payload.
func (k Kind) TakesPayload() bool { return kinds[k].payload }

package backend

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// TimerKey names a timer's row plane-wide.
type TimerKey struct{ Tenant, WorkflowID, TimerID string }

// RunTimerKey names a timer in the history of a run.
type RunTimerKey struct{ Tenant, RunID, TimerID string }

// Timer is a live arming (timers.md section 1). Rows are written under their workflow's lock, but for holds.
type Timer struct {
	Tenant, WorkflowID, TimerID string
	RunID                       string
	Class                       rendezvous.TimerClass
	Effect                      string // class wait
	Shard                       int
	FireAt                      time.Time
	ArmedSeq                    int64
	DueAt                       time.Time
	// ReadyAt is when the row can be taken: DueAt, or HeldUntil while that is later. A hold of an older epoch than its shard's holds nothing, whatever ReadyAt says.
	ReadyAt   time.Time
	Attempts  int
	LastError string
	Parks     int
	Token     int64 // of the latest hold, 0 for none
	Holder    string
	HoldEpoch int64 // the shard's epoch under which it was held
	HeldUntil time.Time
	Trace     rendezvous.Trace
	// Corrupt: the row does not decode; key, shard, run and fire_at are good, and as far as they decode what counts its failures and its hold (R9).
	Corrupt error
}

// Key is the row's key.
func (t *Timer) Key() TimerKey { return TimerKey{t.Tenant, t.WorkflowID, t.TimerID} }

// TimerPosition is the last row of a page of timers by (fire_at, tenant, workflow id, timer id).
type TimerPosition struct {
	Set    bool
	FireAt time.Time
	Key    TimerKey
}

// Owned narrows an enumeration; the zero value means all.
type Owned struct {
	Shards []int // nil is all; empty is none
	Tenant string
}

// TimerCount counts the live armings of a class.
type TimerCount struct {
	Pending, Due, Parked, Failing int // Pending: due_at ahead; Due: due_at ≤ now; Parked and Failing are among these
	OldestDue                     time.Time
}

// HeadPosition is the last row of a page of workflows by (shard, tenant, workflow id).
type HeadPosition struct {
	Set   bool
	Shard int
	Key   WorkflowKey
}

// WorkflowHead is a workflow as enumerations see it.
type WorkflowHead struct {
	Shard  int
	Key    WorkflowKey
	Head   int64
	Status rendezvous.Status
}

// TimerPool is the pool whose epochs bound holds of timers.
const TimerPool = "timer"

// ShardLease is a shard's lease row in a pool (shards.md section 2).
type ShardLease struct {
	Pool      string
	Shard     int
	Owner     string // "" is free
	Epoch     int64
	ExpiresAt time.Time
	Serving   bool
	Address   string
}

// Member is a pod's row in a pool.
type Member struct {
	Pool, Incarnation string
	Address           string
	StartedAt         time.Time
	Draining          bool
	ExpiresAt         time.Time
}

// Key is the row's key.
func (l *ShardLease) Key() ShardKey { return ShardKey{l.Pool, l.Shard} }

// ShardKey names a shard's lease.
type ShardKey struct {
	Pool  string
	Shard int
}

// Key is the row's key.
func (m *Member) Key() MemberKey { return MemberKey{m.Pool, m.Incarnation} }

// MemberKey names a member.
type MemberKey struct{ Pool, Incarnation string }

// ShardLock is how a shard's row is locked.
type ShardLock string

// The locks. A fence does not wait for a renewal, nor it for a fence; taking waits for both.
const (
	ShardFence ShardLock = "fence" // shared with fences and a renewal
	ShardRenew ShardLock = "renew" // shared with fences
	ShardTake  ShardLock = "take"  // alone
)

// TimerReader reads timers, and workflows for those that walk them.
type TimerReader interface {
	Timers(ctx context.Context, keys []TimerKey) (map[TimerKey]*Timer, error)
	// TimersOf answers the timers of those workflows whose fire_at is ≤ until, zero being all, by (tenant, workflow id, fire_at, armed_seq, timer id).
	TimersOf(ctx context.Context, keys []WorkflowKey, until time.Time) ([]*Timer, error)
	// LastTimerRecords answers, per timer, the last record of a run that arms, fires or cancels it. By index; no history is read.
	LastTimerRecords(ctx context.Context, keys []RunTimerKey) (map[RunTimerKey]rendezvous.Record, error)
	// OutstandingTimers answers the run's TimerStarted records that are the last of their timers, ascending by seq, at most limit. By index.
	OutstandingTimers(ctx context.Context, key RunKey, limit int) ([]rendezvous.Record, error)
	// FinalFailures answers, in the order of bytes, the effects of a run whose last closing is an EffectFailed with retryable false and which are not open
	// again. By index; asked once per reopening.
	FinalFailures(ctx context.Context, key RunKey) ([]string, error)

	// ExpiredTimers pages timers with fire_at ≤ asOf by (fire_at, tenant, workflow id, timer id). A row that does not decode keeps its place: FireAt is good, too.
	ExpiredTimers(ctx context.Context, asOf time.Time, o Owned, after TimerPosition, limit int) ([]*Timer, error)
	// ListTimers pages a workflow's timers of a class ("" is any) by (fire_at, timer id).
	ListTimers(ctx context.Context, key WorkflowKey, class rendezvous.TimerClass, after TimerPosition, limit int) ([]*Timer, error)
	// CountTimers counts a tenant's timers, exactly.
	CountTimers(ctx context.Context, tenant string) (map[rendezvous.TimerClass]TimerCount, error)
	// NextDue answers, per shard of the list, the earliest instant that a row can be taken; shards without rows are absent. One index probe per shard.
	NextDue(ctx context.Context, shards []int) (map[int]time.Time, error)
	// Heads pages workflows of that status ("" is any) by (shard, tenant, workflow id). No row is decoded beyond these columns.
	Heads(ctx context.Context, o Owned, status rendezvous.Status, after HeadPosition, limit int) ([]WorkflowHead, error)

	// ShardLeases answers the lease rows there are of a pool, by shard.
	ShardLeases(ctx context.Context, pool string) ([]*ShardLease, error)
	// Members answers a pool's member rows, by incarnation.
	Members(ctx context.Context, pool string) ([]*Member, error)
}

// TimerTx changes timers and shards.
type TimerTx interface {
	// LockShards locks lease rows in shard order until the end and answers them; absent ones are absent. It comes before LockWorkflows.
	LockShards(ctx context.Context, pool string, shards []int, lock ShardLock) (map[int]*ShardLease, error)
	// TryLockWorkflows is LockWorkflows for those rows that nobody has locked; the others are absent. It takes LockWorkflows' place in a transaction.
	TryLockWorkflows(ctx context.Context, keys []WorkflowKey) (map[WorkflowKey]*Workflow, error)
	// DueTimers answers timers of those shards that can be taken now (ReadyAt ≤ now, or held under an epoch older than their shard's in the pool timer, and
	// DueAt ≤ now), by (due_at, tenant, workflow id, timer id), fair by tenant (S3), read unlocked. more says that more was due. A tenant's places go to those
	// that could be taken the longest.
	DueTimers(ctx context.Context, shards []int, limit int) (rows []*Timer, more bool, err error)
	// LockTimers locks those rows that nobody has locked and answers them as they are now.
	LockTimers(ctx context.Context, keys []TimerKey) (map[TimerKey]*Timer, error)
	// HeldTimers locks the rows that carry those tokens, in key order; it waits for whoever has them.
	HeldTimers(ctx context.Context, tokens []int64) ([]*Timer, error)
}

package fault

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Timers implements [backend.TimerReader].
func (r *reader) Timers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return through(ctx, r.at, func() (map[backend.TimerKey]*backend.Timer, error) { return r.inner.Timers(ctx, keys) })
}

// TimersOf implements [backend.TimerReader].
func (r *reader) TimersOf(ctx context.Context, keys []backend.WorkflowKey, until time.Time) ([]*backend.Timer, error) {
	return through(ctx, r.at, func() ([]*backend.Timer, error) { return r.inner.TimersOf(ctx, keys, until) })
}

// LastTimerRecords implements [backend.TimerReader].
func (r *reader) LastTimerRecords(ctx context.Context, keys []backend.RunTimerKey) (map[backend.RunTimerKey]rendezvous.Record, error) {
	return through(ctx, r.at, func() (map[backend.RunTimerKey]rendezvous.Record, error) { return r.inner.LastTimerRecords(ctx, keys) })
}

// OutstandingTimers implements [backend.TimerReader].
func (r *reader) OutstandingTimers(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	return through(ctx, r.at, func() ([]rendezvous.Record, error) { return r.inner.OutstandingTimers(ctx, key, limit) })
}

// FinalFailures implements [backend.TimerReader].
func (r *reader) FinalFailures(ctx context.Context, key backend.RunKey) ([]string, error) {
	return through(ctx, r.at, func() ([]string, error) { return r.inner.FinalFailures(ctx, key) })
}

// ExpiredTimers implements [backend.TimerReader].
func (r *reader) ExpiredTimers(ctx context.Context, asOf time.Time, o backend.Owned, after backend.TimerPosition, limit int) ([]*backend.Timer, error) {
	return through(ctx, r.at, func() ([]*backend.Timer, error) { return r.inner.ExpiredTimers(ctx, asOf, o, after, limit) })
}

// ListTimers implements [backend.TimerReader].
func (r *reader) ListTimers(ctx context.Context, key backend.WorkflowKey, class rendezvous.TimerClass, after backend.TimerPosition, limit int) ([]*backend.Timer, error) {
	return through(ctx, r.at, func() ([]*backend.Timer, error) { return r.inner.ListTimers(ctx, key, class, after, limit) })
}

// CountTimers implements [backend.TimerReader].
func (r *reader) CountTimers(ctx context.Context, tenant string) (map[rendezvous.TimerClass]backend.TimerCount, error) {
	return through(ctx, r.at, func() (map[rendezvous.TimerClass]backend.TimerCount, error) { return r.inner.CountTimers(ctx, tenant) })
}

// NextDue implements [backend.TimerReader].
func (r *reader) NextDue(ctx context.Context, shards []int) (map[int]time.Time, error) {
	return through(ctx, r.at, func() (map[int]time.Time, error) { return r.inner.NextDue(ctx, shards) })
}

// Heads implements [backend.TimerReader].
func (r *reader) Heads(ctx context.Context, o backend.Owned, status rendezvous.Status, after backend.HeadPosition, limit int) ([]backend.WorkflowHead, error) {
	return through(ctx, r.at, func() ([]backend.WorkflowHead, error) { return r.inner.Heads(ctx, o, status, after, limit) })
}

// ShardLeases implements [backend.TimerReader].
func (r *reader) ShardLeases(ctx context.Context, pool string) ([]*backend.ShardLease, error) {
	return through(ctx, r.at, func() ([]*backend.ShardLease, error) { return r.inner.ShardLeases(ctx, pool) })
}

// Members implements [backend.TimerReader].
func (r *reader) Members(ctx context.Context, pool string) ([]*backend.Member, error) {
	return through(ctx, r.at, func() ([]*backend.Member, error) { return r.inner.Members(ctx, pool) })
}

// LockShards implements [backend.TimerTx].
func (t *tx) LockShards(ctx context.Context, pool string, shards []int, lock backend.ShardLock) (map[int]*backend.ShardLease, error) {
	return through(ctx, t.at, func() (map[int]*backend.ShardLease, error) { return t.inner.LockShards(ctx, pool, shards, lock) })
}

// TryLockWorkflows implements [backend.TimerTx].
func (t *tx) TryLockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return through(ctx, t.at, func() (map[backend.WorkflowKey]*backend.Workflow, error) { return t.inner.TryLockWorkflows(ctx, keys) })
}

// DueTimers implements [backend.TimerTx].
func (t *tx) DueTimers(ctx context.Context, shards []int, limit int) ([]*backend.Timer, bool, error) {
	return paged(ctx, t.at, func() ([]*backend.Timer, bool, error) { return t.inner.DueTimers(ctx, shards, limit) })
}

// LockTimers implements [backend.TimerTx].
func (t *tx) LockTimers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return through(ctx, t.at, func() (map[backend.TimerKey]*backend.Timer, error) { return t.inner.LockTimers(ctx, keys) })
}

// HeldTimers implements [backend.TimerTx].
func (t *tx) HeldTimers(ctx context.Context, tokens []int64) ([]*backend.Timer, error) {
	return through(ctx, t.at, func() ([]*backend.Timer, error) { return t.inner.HeldTimers(ctx, tokens) })
}

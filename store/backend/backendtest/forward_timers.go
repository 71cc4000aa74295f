package backendtest

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

func (t spyTx) Timers(_ context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return note[map[backend.TimerKey]*backend.Timer](t, "Timers", keys)
}

func (t spyTx) TimersOf(_ context.Context, keys []backend.WorkflowKey, until time.Time) ([]*backend.Timer, error) {
	return note[[]*backend.Timer](t, "TimersOf", keys, until)
}

func (t spyTx) LastTimerRecords(_ context.Context, keys []backend.RunTimerKey) (map[backend.RunTimerKey]rendezvous.Record, error) {
	return note[map[backend.RunTimerKey]rendezvous.Record](t, "LastTimerRecords", keys)
}

func (t spyTx) OutstandingTimers(_ context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	return note[[]rendezvous.Record](t, "OutstandingTimers", key, limit)
}

func (t spyTx) FinalFailures(_ context.Context, key backend.RunKey) ([]string, error) {
	return note[[]string](t, "FinalFailures", key)
}

func (t spyTx) ExpiredTimers(_ context.Context, asOf time.Time, o backend.Owned, after backend.TimerPosition, limit int) ([]*backend.Timer, error) {
	return note[[]*backend.Timer](t, "ExpiredTimers", asOf, o, after, limit)
}

func (t spyTx) ListTimers(_ context.Context, key backend.WorkflowKey, class rendezvous.TimerClass, after backend.TimerPosition, limit int) ([]*backend.Timer, error) {
	return note[[]*backend.Timer](t, "ListTimers", key, class, after, limit)
}

func (t spyTx) CountTimers(_ context.Context, tenant string) (map[rendezvous.TimerClass]backend.TimerCount, error) {
	return note[map[rendezvous.TimerClass]backend.TimerCount](t, "CountTimers", tenant)
}

func (t spyTx) NextDue(_ context.Context, shards []int) (map[int]time.Time, error) {
	return note[map[int]time.Time](t, "NextDue", shards)
}

func (t spyTx) Heads(_ context.Context, o backend.Owned, status rendezvous.Status, after backend.HeadPosition, limit int) ([]backend.WorkflowHead, error) {
	return note[[]backend.WorkflowHead](t, "Heads", o, status, after, limit)
}

func (t spyTx) ShardLeases(_ context.Context, pool string) ([]*backend.ShardLease, error) {
	return note[[]*backend.ShardLease](t, "ShardLeases", pool)
}

func (t spyTx) Members(_ context.Context, pool string) ([]*backend.Member, error) {
	return note[[]*backend.Member](t, "Members", pool)
}

func (t spyTx) LockShards(_ context.Context, pool string, shards []int, lock backend.ShardLock) (map[int]*backend.ShardLease, error) {
	return note[map[int]*backend.ShardLease](t, "LockShards", pool, shards, lock)
}

func (t spyTx) TryLockWorkflows(_ context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return note[map[backend.WorkflowKey]*backend.Workflow](t, "TryLockWorkflows", keys)
}

func (t spyTx) DueTimers(_ context.Context, shards []int, limit int) ([]*backend.Timer, bool, error) {
	return note2[[]*backend.Timer, bool](t, "DueTimers", shards, limit)
}

func (t spyTx) LockTimers(_ context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return note[map[backend.TimerKey]*backend.Timer](t, "LockTimers", keys)
}

func (t spyTx) HeldTimers(_ context.Context, tokens []int64) ([]*backend.Timer, error) {
	return note[[]*backend.Timer](t, "HeldTimers", tokens)
}

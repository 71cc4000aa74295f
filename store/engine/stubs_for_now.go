package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

func (h *poolHandle) FireDueTimers(ctx context.Context, shards []store.ShardEpoch, limit int) (store.FiredPage, error) {
	panic("not yet")
}

func (h *poolHandle) ClaimDueTimers(ctx context.Context, shards []store.ShardEpoch, hold time.Duration, limit int) ([]store.HeldTimer, error) {
	panic("not yet")
}

func (h *poolHandle) FireTimer(ctx context.Context, t store.HeldTimer) (store.Fire, store.Notices, error) {
	panic("not yet")
}

func (h *poolHandle) ReleaseTimers(ctx context.Context, tokens []int64) error { panic("not yet") }

func (h *poolHandle) ReconcileTimers(
	ctx context.Context, shards []store.ShardEpoch, deep bool, after *store.WorkflowPosition, limit int,
) (store.Reconciled, error) {
	panic("not yet")
}

func (t *tenant) ArmTimer(ctx context.Context, a store.Arm, at time.Time) (store.Armed, error) {
	panic("not yet")
}

func (t *tenant) CancelTimer(ctx context.Context, run string, epoch int64, timerID, batchID, reason string, at time.Time) (store.CancelledTimer, error) {
	panic("not yet")
}

func (t *tenant) ListTimers(ctx context.Context, ref store.WorkflowRef, class rendezvous.TimerClass, limit int, cursor string) (store.TimerPage, error) {
	panic("not yet")
}

func (t *tenant) CountTimers(ctx context.Context) (map[rendezvous.TimerClass]store.TimerCounts, error) {
	panic("not yet")
}

func (t *tenant) ScheduleTimer(ctx context.Context, workflowID, timerID string, a store.Arming) (store.ScheduleOutcome, error) {
	panic("not yet")
}

func (t *tenant) RetireTimer(ctx context.Context, workflowID, timerID string, a store.Arming) (store.ScheduleOutcome, error) {
	panic("not yet")
}

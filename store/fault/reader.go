package fault

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// reader forwards the reads of one transaction and lets each fail.
type reader struct {
	inner backend.Reader
	at    *calls
}

// Now implements [backend.Reader].
func (r *reader) Now() time.Time { return r.inner.Now() }

// through makes a call that answers one value, unless a failure strikes instead.
func through[T any](ctx context.Context, at *calls, call func() (T, error)) (T, error) {
	if err := at.next(ctx); err != nil {
		var none T
		return none, err
	}
	return call()
}

// paged is through for the pages that say whether more was due.
func paged[T, U any](ctx context.Context, at *calls, call func() (T, U, error)) (T, U, error) {
	if err := at.next(ctx); err != nil {
		var none T
		var end U
		return none, end, err
	}
	return call()
}

// Workflows implements [backend.Reader].
func (r *reader) Workflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return through(ctx, r.at, func() (map[backend.WorkflowKey]*backend.Workflow, error) { return r.inner.Workflows(ctx, keys) })
}

// Runs implements [backend.Reader].
func (r *reader) Runs(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	return through(ctx, r.at, func() (map[backend.RunKey]*backend.Run, error) { return r.inner.Runs(ctx, keys) })
}

// RunsOf implements [backend.Reader].
func (r *reader) RunsOf(ctx context.Context, key backend.WorkflowKey, after int64, limit int) ([]*backend.Run, error) {
	return through(ctx, r.at, func() ([]*backend.Run, error) { return r.inner.RunsOf(ctx, key, after, limit) })
}

// Batches implements [backend.Reader].
func (r *reader) Batches(ctx context.Context, keys []backend.BatchKey) (map[backend.BatchKey]*backend.Batch, error) {
	return through(ctx, r.at, func() (map[backend.BatchKey]*backend.Batch, error) { return r.inner.Batches(ctx, keys) })
}

// Woken implements [backend.Reader].
func (r *reader) Woken(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Woken, error) {
	return through(ctx, r.at, func() (map[backend.WorkflowKey]*backend.Woken, error) { return r.inner.Woken(ctx, keys) })
}

// History implements [backend.Reader].
func (r *reader) History(ctx context.Context, key backend.WorkflowKey, from, to int64, limit int, maxBytes int) ([]rendezvous.Record, error) {
	return through(ctx, r.at, func() ([]rendezvous.Record, error) { return r.inner.History(ctx, key, from, to, limit, maxBytes) })
}

// HistorySize implements [backend.Reader].
func (r *reader) HistorySize(ctx context.Context, key backend.WorkflowKey) (records, bytes int64, err error) {
	if err := r.at.next(ctx); err != nil {
		return 0, 0, err
	}
	return r.inner.HistorySize(ctx, key)
}

// Effects implements [backend.Reader].
func (r *reader) Effects(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey][]rendezvous.Record, error) {
	return through(ctx, r.at, func() (map[backend.WaitKey][]rendezvous.Record, error) { return r.inner.Effects(ctx, keys) })
}

// RecordsAt implements [backend.Reader].
func (r *reader) RecordsAt(ctx context.Context, keys []backend.RecordKey) (map[backend.RecordKey]rendezvous.Record, error) {
	return through(ctx, r.at, func() (map[backend.RecordKey]rendezvous.Record, error) { return r.inner.RecordsAt(ctx, keys) })
}

// OpenEffects implements [backend.Reader].
func (r *reader) OpenEffects(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	return through(ctx, r.at, func() ([]rendezvous.Record, error) { return r.inner.OpenEffects(ctx, key, limit) })
}

// EffectNames implements [backend.Reader].
func (r *reader) EffectNames(ctx context.Context, key backend.RunKey, limit int) ([]string, error) {
	return through(ctx, r.at, func() ([]string, error) { return r.inner.EffectNames(ctx, key, limit) })
}

// LastFailure implements [backend.Reader].
func (r *reader) LastFailure(ctx context.Context, key backend.RunKey) (string, error) {
	return through(ctx, r.at, func() (string, error) { return r.inner.LastFailure(ctx, key) })
}

// EventsByKey implements [backend.Reader].
func (r *reader) EventsByKey(ctx context.Context, keys []backend.EventKey, payload bool) (map[backend.EventKey]*backend.Event, error) {
	return through(ctx, r.at, func() (map[backend.EventKey]*backend.Event, error) { return r.inner.EventsByKey(ctx, keys, payload) })
}

// EventsByNumber implements [backend.Reader].
func (r *reader) EventsByNumber(ctx context.Context, numbers []int64, payload bool) (map[int64]*backend.Event, error) {
	return through(ctx, r.at, func() (map[int64]*backend.Event, error) { return r.inner.EventsByNumber(ctx, numbers, payload) })
}

// LiveEvents implements [backend.Reader].
func (r *reader) LiveEvents(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Event, error) {
	return through(ctx, r.at, func() ([][]*backend.Event, error) { return r.inner.LiveEvents(ctx, lookups) })
}

// ClaimedEvents implements [backend.Reader].
func (r *reader) ClaimedEvents(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Event, error) {
	return through(ctx, r.at, func() (map[backend.WaitKey]*backend.Event, error) { return r.inner.ClaimedEvents(ctx, keys) })
}

// KeptCounts implements [backend.Reader].
func (r *reader) KeptCounts(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return through(ctx, r.at, func() (map[backend.RunKey]int, error) { return r.inner.KeptCounts(ctx, keys) })
}

// KeptEvents implements [backend.Reader].
func (r *reader) KeptEvents(ctx context.Context, keys []backend.RunKey) ([]*backend.Event, error) {
	return through(ctx, r.at, func() ([]*backend.Event, error) { return r.inner.KeptEvents(ctx, keys) })
}

// Waits implements [backend.Reader].
func (r *reader) Waits(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Wait, error) {
	return through(ctx, r.at, func() (map[backend.WaitKey]*backend.Wait, error) { return r.inner.Waits(ctx, keys) })
}

// WaitsOf implements [backend.Reader].
func (r *reader) WaitsOf(ctx context.Context, keys []backend.RunKey) ([]*backend.Wait, error) {
	return through(ctx, r.at, func() ([]*backend.Wait, error) { return r.inner.WaitsOf(ctx, keys) })
}

// ParkedOf implements [backend.Reader].
func (r *reader) ParkedOf(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return through(ctx, r.at, func() (map[backend.RunKey]int, error) { return r.inner.ParkedOf(ctx, keys) })
}

// OpenWaits implements [backend.Reader].
func (r *reader) OpenWaits(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error) {
	return through(ctx, r.at, func() ([][]*backend.Wait, error) { return r.inner.OpenWaits(ctx, lookups) })
}

// NearWaits implements [backend.Reader].
func (r *reader) NearWaits(ctx context.Context, n backend.Near) (backend.Nearby[backend.Wait], error) {
	return through(ctx, r.at, func() (backend.Nearby[backend.Wait], error) { return r.inner.NearWaits(ctx, n) })
}

// NearEvents implements [backend.Reader].
func (r *reader) NearEvents(ctx context.Context, n backend.Near) (backend.Nearby[backend.Event], error) {
	return through(ctx, r.at, func() (backend.Nearby[backend.Event], error) { return r.inner.NearEvents(ctx, n) })
}

// ListWaits implements [backend.Reader].
func (r *reader) ListWaits(ctx context.Context, tenant string, f backend.WaitFilter, after int64, p backend.Span) ([]*backend.Wait, int64, error) {
	return paged(ctx, r.at, func() ([]*backend.Wait, int64, error) { return r.inner.ListWaits(ctx, tenant, f, after, p) })
}

// ListParked implements [backend.Reader].
func (r *reader) ListParked(
	ctx context.Context, tenant string, f backend.WaitFilter, after backend.ParkedPosition, p backend.Span,
) ([]*backend.Wait, backend.ParkedPosition, error) {
	return paged(ctx, r.at, func() ([]*backend.Wait, backend.ParkedPosition, error) {
		return r.inner.ListParked(ctx, tenant, f, after, p)
	})
}

// ListQuarantined implements [backend.Reader].
func (r *reader) ListQuarantined(ctx context.Context, tenant string, after backend.ParkedPosition, limit int) ([]*backend.Wait, error) {
	return through(ctx, r.at, func() ([]*backend.Wait, error) { return r.inner.ListQuarantined(ctx, tenant, after, limit) })
}

// ListWorkflows implements [backend.Reader].
func (r *reader) ListWorkflows(
	ctx context.Context, tenant string, f backend.WorkflowFilter, after backend.WorkflowPosition, p backend.Span,
) ([]*backend.Workflow, backend.WorkflowPosition, error) {
	return paged(ctx, r.at, func() ([]*backend.Workflow, backend.WorkflowPosition, error) {
		return r.inner.ListWorkflows(ctx, tenant, f, after, p)
	})
}

// CountWorkflows implements [backend.Reader].
func (r *reader) CountWorkflows(ctx context.Context, tenant string, f backend.WorkflowFilter, most int) (int, error) {
	return through(ctx, r.at, func() (int, error) { return r.inner.CountWorkflows(ctx, tenant, f, most) })
}

// Abandoned implements [backend.Reader].
func (r *reader) Abandoned(ctx context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, error) {
	return through(ctx, r.at, func() ([]*backend.Workflow, error) { return r.inner.Abandoned(ctx, shards, after, limit) })
}

// DueLeases implements [backend.Reader].
func (r *reader) DueLeases(ctx context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, backend.AbandonedPosition, error) {
	return paged(ctx, r.at, func() ([]*backend.Workflow, backend.AbandonedPosition, error) {
		return r.inner.DueLeases(ctx, shards, after, limit)
	})
}

// Depths implements [backend.Reader].
func (r *reader) Depths(ctx context.Context, most int) (backend.Depths, error) {
	return through(ctx, r.at, func() (backend.Depths, error) { return r.inner.Depths(ctx, most) })
}

// DeadLetters implements [backend.Reader].
func (r *reader) DeadLetters(ctx context.Context, tenant string, w backend.DeadWalk, limit int) ([]*backend.Event, int64, error) {
	return paged(ctx, r.at, func() ([]*backend.Event, int64, error) { return r.inner.DeadLetters(ctx, tenant, w, limit) })
}

// CountDead implements [backend.Reader].
func (r *reader) CountDead(ctx context.Context, tenant string, f backend.DeadFilter, most int) (map[rendezvous.DeadReason]int, bool, error) {
	return paged(ctx, r.at, func() (map[rendezvous.DeadReason]int, bool, error) { return r.inner.CountDead(ctx, tenant, f, most) })
}

// EventsOfOp implements [backend.Reader].
func (r *reader) EventsOfOp(ctx context.Context, tenant, op string, purged bool, after int64, limit int) ([]*backend.Event, error) {
	return through(ctx, r.at, func() ([]*backend.Event, error) { return r.inner.EventsOfOp(ctx, tenant, op, purged, after, limit) })
}

// Closed implements [backend.Reader].
func (r *reader) Closed(ctx context.Context, before time.Time, after backend.ClosedPosition, limit int) ([]*backend.Workflow, error) {
	return through(ctx, r.at, func() ([]*backend.Workflow, error) { return r.inner.Closed(ctx, before, after, limit) })
}

// RemnantOf implements [backend.Reader].
func (r *reader) RemnantOf(ctx context.Context, flow backend.WorkflowKey, run backend.RunKey) (*backend.Remnant, error) {
	return through(ctx, r.at, func() (*backend.Remnant, error) { return r.inner.RemnantOf(ctx, flow, run) })
}

package fault

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Pushes implements [backend.PushReader].
func (r *reader) Pushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return through(ctx, r.at, func() (map[backend.PushKey]*backend.Push, error) { return r.inner.Pushes(ctx, keys) })
}

// PushesOf implements [backend.PushReader].
func (r *reader) PushesOf(ctx context.Context, runs []backend.RunKey) ([]*backend.Push, error) {
	return through(ctx, r.at, func() ([]*backend.Push, error) { return r.inner.PushesOf(ctx, runs) })
}

// DuePushes implements [backend.PushReader].
func (r *reader) DuePushes(ctx context.Context, d backend.PushDue, limit int) ([]*backend.Push, error) {
	return through(ctx, r.at, func() ([]*backend.Push, error) { return r.inner.DuePushes(ctx, d, limit) })
}

// CountDuePushes implements [backend.PushReader].
func (r *reader) CountDuePushes(ctx context.Context, d backend.PushDue, most int) (int, error) {
	return through(ctx, r.at, func() (int, error) { return r.inner.CountDuePushes(ctx, d, most) })
}

// NextPush implements [backend.PushReader].
func (r *reader) NextPush(ctx context.Context, d backend.PushDue) (time.Time, error) {
	return through(ctx, r.at, func() (time.Time, error) { return r.inner.NextPush(ctx, d) })
}

// ListParkedPushes implements [backend.PushReader].
func (r *reader) ListParkedPushes(ctx context.Context, tenant string, f backend.PushFilter, after backend.PushKey, p backend.Span) ([]*backend.Push, backend.PushKey, error) {
	return paged(ctx, r.at, func() ([]*backend.Push, backend.PushKey, error) {
		return r.inner.ListParkedPushes(ctx, tenant, f, after, p)
	})
}

// LongestParkedPushes implements [backend.PushReader].
func (r *reader) LongestParkedPushes(ctx context.Context, tenant string, f backend.PushFilter, after backend.ParkedPushPosition, p backend.Span) ([]*backend.Push, backend.ParkedPushPosition, error) {
	return paged(ctx, r.at, func() ([]*backend.Push, backend.ParkedPushPosition, error) {
		return r.inner.LongestParkedPushes(ctx, tenant, f, after, p)
	})
}

// DuePushRuns implements [backend.PushReader].
func (r *reader) DuePushRuns(ctx context.Context, before time.Time, limit int) ([]backend.DuePushRun, error) {
	return through(ctx, r.at, func() ([]backend.DuePushRun, error) { return r.inner.DuePushRuns(ctx, before, limit) })
}

// PushLog implements [backend.PushReader].
func (r *reader) PushLog(ctx context.Context, key backend.PushKey, incarnation, before int64, limit int) ([]*backend.PushLogEntry, error) {
	return through(ctx, r.at, func() ([]*backend.PushLogEntry, error) { return r.inner.PushLog(ctx, key, incarnation, before, limit) })
}

// PushLogged implements [backend.PushReader].
func (r *reader) PushLogged(ctx context.Context, key backend.PushKey, incarnation int64, entryID string) (*backend.PushLogEntry, error) {
	return through(ctx, r.at, func() (*backend.PushLogEntry, error) { return r.inner.PushLogged(ctx, key, incarnation, entryID) })
}

// LockPushes implements [backend.PushTx].
func (t *tx) LockPushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return through(ctx, t.at, func() (map[backend.PushKey]*backend.Push, error) { return t.inner.LockPushes(ctx, keys) })
}

// PushesByToken implements [backend.PushTx].
func (t *tx) PushesByToken(ctx context.Context, tokens []int64) ([]*backend.Push, error) {
	return through(ctx, t.at, func() ([]*backend.Push, error) { return t.inner.PushesByToken(ctx, tokens) })
}

// PushesOfClaim implements [backend.PushTx].
func (t *tx) PushesOfClaim(ctx context.Context, owner, request string) ([]*backend.Push, error) {
	return through(ctx, t.at, func() ([]*backend.Push, error) { return t.inner.PushesOfClaim(ctx, owner, request) })
}

// TakeDuePushes implements [backend.PushTx].
func (t *tx) TakeDuePushes(ctx context.Context, c backend.PushClaim) (backend.PushesTaken, error) {
	return through(ctx, t.at, func() (backend.PushesTaken, error) { return t.inner.TakeDuePushes(ctx, c) })
}

// TakeAgedPushes implements [backend.PushTx].
func (t *tx) TakeAgedPushes(ctx context.Context, before time.Time, limit int) ([]*backend.Push, bool, error) {
	return paged(ctx, t.at, func() ([]*backend.Push, bool, error) { return t.inner.TakeAgedPushes(ctx, before, limit) })
}

// OldPushLog implements [backend.PushTx].
func (t *tx) OldPushLog(ctx context.Context, before time.Time, limit int) ([]backend.PushLogKey, error) {
	return through(ctx, t.at, func() ([]backend.PushLogKey, error) { return t.inner.OldPushLog(ctx, before, limit) })
}

// LongPushLogs implements [backend.PushTx].
func (t *tx) LongPushLogs(ctx context.Context, keep, limit int) ([]*backend.Push, error) {
	return through(ctx, t.at, func() ([]*backend.Push, error) { return t.inner.LongPushLogs(ctx, keep, limit) })
}

// OldestPushLog implements [backend.PushTx].
func (t *tx) OldestPushLog(ctx context.Context, key backend.PushKey, incarnation int64, n int) ([]backend.PushLogKey, error) {
	return through(ctx, t.at, func() ([]backend.PushLogKey, error) { return t.inner.OldestPushLog(ctx, key, incarnation, n) })
}

// GonePushes implements [backend.PushTx].
func (t *tx) GonePushes(ctx context.Context, limit int) ([]*backend.Push, error) {
	return through(ctx, t.at, func() ([]*backend.Push, error) { return t.inner.GonePushes(ctx, limit) })
}

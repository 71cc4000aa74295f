package fault

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// tx forwards the reads and writes of one transaction and lets each fail.
type tx struct {
	reader
	inner backend.Tx
}

// LockWorkflows implements [backend.Tx].
func (t *tx) LockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return through(ctx, t.at, func() (map[backend.WorkflowKey]*backend.Workflow, error) { return t.inner.LockWorkflows(ctx, keys) })
}

// NewEventNumbers implements [backend.Tx].
func (t *tx) NewEventNumbers(ctx context.Context, n int) ([]int64, error) {
	return through(ctx, t.at, func() ([]int64, error) { return t.inner.NewEventNumbers(ctx, n) })
}

// NewWaitNumbers implements [backend.Tx].
func (t *tx) NewWaitNumbers(ctx context.Context, n int) ([]int64, error) {
	return through(ctx, t.at, func() ([]int64, error) { return t.inner.NewWaitNumbers(ctx, n) })
}

// NewTakes implements [backend.Tx].
func (t *tx) NewTakes(ctx context.Context, n int) ([]int64, error) {
	return through(ctx, t.at, func() ([]int64, error) { return t.inner.NewTakes(ctx, n) })
}

// DueParked implements [backend.Tx].
func (t *tx) DueParked(ctx context.Context, shards []int, limit int) ([]*backend.Wait, bool, error) {
	return paged(ctx, t.at, func() ([]*backend.Wait, bool, error) { return t.inner.DueParked(ctx, shards, limit) })
}

// DueWoken implements [backend.Tx].
func (t *tx) DueWoken(ctx context.Context, shards []int, limit int) ([]*backend.Woken, bool, error) {
	return paged(ctx, t.at, func() ([]*backend.Woken, bool, error) { return t.inner.DueWoken(ctx, shards, limit) })
}

// UnmetEvents implements [backend.Tx].
func (t *tx) UnmetEvents(ctx context.Context, before time.Time, after int64, limit int) ([]*backend.Event, int64, error) {
	return paged(ctx, t.at, func() ([]*backend.Event, int64, error) { return t.inner.UnmetEvents(ctx, before, after, limit) })
}

// UnmetNews implements [backend.Tx].
func (t *tx) UnmetNews(ctx context.Context, before time.Time, from backend.News, limit int) (backend.NewsPage, error) {
	return through(ctx, t.at, func() (backend.NewsPage, error) { return t.inner.UnmetNews(ctx, before, from, limit) })
}

// LastNumbers implements [backend.Tx].
func (t *tx) LastNumbers(ctx context.Context) (backend.Numbers, error) {
	return through(ctx, t.at, func() (backend.Numbers, error) { return t.inner.LastNumbers(ctx) })
}

// OverdueEvents implements [backend.Tx].
func (t *tx) OverdueEvents(ctx context.Context, o backend.Overdue, limit int) (backend.OverdueEvents, error) {
	return through(ctx, t.at, func() (backend.OverdueEvents, error) { return t.inner.OverdueEvents(ctx, o, limit) })
}

// OldLetters implements [backend.Tx].
func (t *tx) OldLetters(ctx context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	return paged(ctx, t.at, func() ([]*backend.Event, bool, error) { return t.inner.OldLetters(ctx, before, after, limit) })
}

// Remnants implements [backend.Tx].
func (t *tx) Remnants(ctx context.Context, limit int) (backend.Remnants, error) {
	return through(ctx, t.at, func() (backend.Remnants, error) { return t.inner.Remnants(ctx, limit) })
}

// Apply implements [backend.Tx].
func (t *tx) Apply(ctx context.Context, c *backend.Changes) error {
	if err := t.at.next(ctx); err != nil {
		return err
	}
	return t.inner.Apply(ctx, c)
}

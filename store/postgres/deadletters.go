package postgres

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// DeadLetters implements [backend.Reader].
func (r *reader) DeadLetters(ctx context.Context, tenant string, w backend.DeadWalk, limit int) ([]*backend.Event, int64, error) {
	_, what, value := w.Filter.Sought()
	next := func(by backend.DeadIndex, after int64, n int) (found []int64, err error) {
		sql := deadUpSQL
		if !w.Up {
			sql = deadDownSQL
		}
		err = r.query(ctx, sql, func(c *columns) error { found = append(found, c.Bigint()); return nil }, tenant, after, int64(n), string(by), what, value)
		return found, err
	}
	return w.Page(limit, next, func(numbers []int64) (map[int64]*backend.Event, error) {
		numbers, err := r.passing(ctx, &w.Filter, numbers)
		if err != nil {
			return nil, err
		}
		return r.EventsByNumber(ctx, numbers, false)
	})
}

// passing are those of some letters that pass what an index does not answer of the filter: the others need not be read.
func (r *reader) passing(ctx context.Context, f *backend.DeadFilter, numbers []int64) (found []int64, err error) {
	if _, whole := f.Index(); whole {
		return numbers, nil
	}
	err = r.query(ctx, passingLettersSQL, func(c *columns) error { found = append(found, c.Bigint()); return nil },
		append([]any{bigints(numbers, func(n int64) int64 { return n })}, restOf(f)...)...)
	return found, err
}

// CountDead implements [backend.Reader].
func (r *reader) CountDead(ctx context.Context, tenant string, f backend.DeadFilter, most int) (map[rendezvous.DeadReason]int, bool, error) {
	count := backend.NewDeadCount(most)
	sql, args := countLettersSQL, []any{tenant, count.Limit()}
	if f != (backend.DeadFilter{}) {
		by, what, value := f.Sought()
		sql, args = countFilteredLettersSQL, append(append(append(args, string(by), what), restOf(&f)...), value)
	}
	err := r.query(ctx, sql, func(c *columns) error {
		count.Add(rendezvous.DeadReason(c.Text()), int(c.Bigint()), c.Bigint())
		return nil
	}, args...)
	if err != nil {
		return nil, false, err
	}
	counts, more := count.Counts()
	return counts, more, nil
}

// EventsOfOp implements [backend.Reader].
func (r *reader) EventsOfOp(ctx context.Context, tenant, op string, purged bool, after int64, limit int) ([]*backend.Event, error) {
	return r.eventRows(ctx, eventsOfOpSQL, tenant, op, purged, after, int64(limit))
}

// restOf are the parameters of what is looked at in the rows.
func restOf(f *backend.DeadFilter) []any {
	return []any{
		string(f.Reason), f.Type, f.Source, instantOrNull(f.ReceivedAfter), instantOrNull(f.ReceivedBefore), instantOrNull(f.DeadAfter), instantOrNull(f.DeadBefore),
	}
}

// instantOrNull is an instant as a parameter, NULL where there is none.
func instantOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

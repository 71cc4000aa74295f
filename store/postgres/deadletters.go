package postgres

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// DeadLetters implements [backend.Reader].
func (r *reader) DeadLetters(ctx context.Context, tenant string, w backend.DeadWalk, limit int) ([]*backend.Event, int64, error) {
	f := &w.Filter
	_, what, value := f.Sought()
	_, whole := f.Index()
	next := func(by backend.DeadIndex, after int64, n int) (found []backend.DeadPlace, err error) {
		sql := deadUpSQL
		if !w.Up {
			sql = deadDownSQL
		}
		err = r.query(ctx, sql, func(c *columns) error {
			found = append(found, backend.DeadPlace{Number: c.Bigint(), Passes: c.Boolean()})
			return nil
		}, append([]any{tenant, after, int64(n), string(by), what, value, whole}, restOf(f)...)...)
		return found, err
	}
	return w.Page(limit, next, func(numbers []int64) (map[int64]*backend.Event, error) { return r.EventsByNumber(ctx, numbers, false) })
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

package sqlite

import (
	"context"
	"math"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// The orders of dead letters, both ways. Parameters 1 to 4 are the tenant, the number where the page begins, its limit, and what the index is for; of a key that
// is its namespace, and its value is the fifth.
const (
	isLetter = ` AND dead_at IS NOT NULL AND NOT purged`

	deadAll      = `SELECT number FROM events INDEXED BY events_dead WHERE tenant = ?1 AND ?4 = ?4` + isLetter
	deadOfType   = `SELECT number FROM events INDEXED BY events_dead_type WHERE tenant = ?1 AND type = ?4` + isLetter
	deadOfReason = `SELECT number FROM events INDEXED BY events_dead_reason WHERE tenant = ?1 AND dead_reason = ?4` + isLetter
	deadOfKey    = `SELECT number FROM dead_keys WHERE tenant = ?1 AND namespace = ?4 AND value = ?5`

	upwards   = ` AND number > ?2 ORDER BY number LIMIT ?3 + 0`
	downwards = ` AND number < ?2 ORDER BY number DESC LIMIT ?3 + 0`
)

// letters are the statements of one index: upwards, downwards, and all that pass, for a count.
type letters struct{ up, down, count string }

var letterIndexes = map[backend.DeadIndex]letters{
	backend.DeadAll:      {deadAll + upwards, deadAll + downwards, countLetters + `(` + deadAll + upwards + `)` + passingLetters},
	backend.DeadByType:   {deadOfType + upwards, deadOfType + downwards, countLetters + `(` + deadOfType + upwards + `)` + passingLetters},
	backend.DeadByReason: {deadOfReason + upwards, deadOfReason + downwards, countLetters + `(` + deadOfReason + upwards + `)` + passingLetters},
	backend.DeadByKey:    {deadOfKey + upwards, deadOfKey + downwards, countLetters + `(` + deadOfKey + upwards + `)` + passingLetters},
}

// The rest of a filter, as rows are looked at. Parameters 6 to 12 are reason, type, source and the two intervals, 13 the most to count.
const (
	countLetters = `SELECT dead_reason, count(*), max(number) FROM (SELECT e.dead_reason, e.number FROM `
	passes       = `(?6 = '' OR e.dead_reason = ?6) AND (?7 = '' OR e.type = ?7) AND (?8 = '' OR e.source = ?8)
	AND (?9 IS NULL OR e.received_at >= ?9) AND (?10 IS NULL OR e.received_at <= ?10)
	AND (?11 IS NULL OR e.dead_at >= ?11) AND (?12 IS NULL OR e.dead_at <= ?12)`
	passingLetters = ` i CROSS JOIN events e ON e.number = i.number
WHERE ` + passes + `
ORDER BY i.number LIMIT ?13 + 0) GROUP BY dead_reason`

	// Those of some letters, the first parameter, that pass.
	passingLettersSQL = `SELECT e.number FROM json_each(?1) few CROSS JOIN events e ON e.number = few.value WHERE ` + passes

	// All letters: the index tells their reasons.
	countAllLettersSQL = `
SELECT dead_reason, count(*), max(number) FROM (
	SELECT dead_reason, number FROM events INDEXED BY events_dead WHERE tenant = ?1` + isLetter + ` ORDER BY number LIMIT ?2 + 0) GROUP BY dead_reason`
)

// letterArgs are the parameters of an index.
func letterArgs(tenant string, f *backend.DeadFilter, after int64, n int) []any {
	by, what, value := f.Sought()
	if by == backend.DeadByKey {
		return []any{tenant, after, n, what, value}
	}
	return []any{tenant, after, n, what}
}

// DeadLetters implements [backend.Reader].
func (r *reader) DeadLetters(ctx context.Context, tenant string, w backend.DeadWalk, limit int) ([]*backend.Event, int64, error) {
	next := func(by backend.DeadIndex, after int64, n int) (found []int64, err error) {
		sql := letterIndexes[by].up
		if !w.Up {
			sql = letterIndexes[by].down
		}
		err = r.query(ctx, sql, func(c *columns) error { found = append(found, c.Count()); return nil }, letterArgs(tenant, &w.Filter, after, n)...)
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
	args := append([]any{listText(numbers), nil, nil, nil, nil}, restOf(f)...)
	err = r.query(ctx, passingLettersSQL, func(c *columns) error { found = append(found, c.Count()); return nil }, args...)
	return found, err
}

// restOf are the parameters of what is looked at in the rows.
func restOf(f *backend.DeadFilter) []any {
	return []any{string(f.Reason), f.Type, f.Source, f.ReceivedAfter, f.ReceivedBefore, f.DeadAfter, f.DeadBefore}
}

// CountDead implements [backend.Reader].
func (r *reader) CountDead(ctx context.Context, tenant string, f backend.DeadFilter, most int) (map[rendezvous.DeadReason]int, bool, error) {
	count := backend.NewDeadCount(most)
	sql, args := countAllLettersSQL, []any{tenant, count.Limit()}
	if f != (backend.DeadFilter{}) {
		by, what, value := f.Sought()
		sql = letterIndexes[by].count
		args = append(append([]any{tenant, 0, math.MaxInt64, what, value}, restOf(&f)...), count.Limit())
	}
	err := r.query(ctx, sql, func(c *columns) error {
		count.Add(rendezvous.DeadReason(c.Text()), c.Tally(), c.Count())
		return nil
	}, args...)
	if err != nil {
		return nil, false, err
	}
	counts, more := count.Counts()
	return counts, more, nil
}

const eventsOfOpSQL = `
SELECT` + eventColumns + barePayload + ` FROM events e INDEXED BY events_op WHERE e.tenant = ? AND e.op = ? AND e.op <> '' AND e.purged = ? AND e.number > ?
ORDER BY e.number LIMIT ? + 0`

// EventsOfOp implements [backend.Reader].
func (r *reader) EventsOfOp(ctx context.Context, tenant, op string, purged bool, after int64, limit int) ([]*backend.Event, error) {
	return r.eventRows(ctx, eventsOfOpSQL, tenant, op, purged, after, limit)
}

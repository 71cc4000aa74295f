package sqlite

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

const timerColumns = `
	t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
	t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state`

func (r *reader) timerRows(ctx context.Context, sql string, args ...any) ([]*backend.Timer, error) {
	var rows []*backend.Timer
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Timer(c))
		return nil
	}, args...)
	return rows, err
}

const timerSQL = `SELECT` + timerColumns + ` FROM timers t WHERE t.tenant = ? AND t.workflow_id = ? AND t.timer_id = ?`

// Timers implements [backend.TimerReader].
func (r *reader) Timers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	found := make(map[backend.TimerKey]*backend.Timer, len(keys))
	for _, k := range keys {
		err := r.query(ctx, timerSQL, func(c *columns) error { found[k] = row.Timer(c); return nil }, k.Tenant, k.WorkflowID, k.TimerID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// A workflow's timers are few; + keeps the order of instants from choosing an index that is walked through all of them.
const (
	timersOfSQL = `
SELECT` + timerColumns + ` FROM timers t WHERE t.tenant = ?1 AND t.workflow_id = ?2 AND (?3 IS NULL OR +t.fire_at <= ?3)
ORDER BY +t.fire_at, t.armed_seq, t.timer_id`
	listTimersSQL = `
SELECT` + timerColumns + ` FROM timers t
WHERE t.tenant = ?1 AND t.workflow_id = ?2 AND (?3 = '' OR t.class = ?3) AND (+t.fire_at, t.timer_id) > (?4, ?5)
ORDER BY +t.fire_at, t.timer_id LIMIT ?6 + 0`
)

// TimersOf implements [backend.TimerReader].
func (r *reader) TimersOf(ctx context.Context, keys []backend.WorkflowKey, until time.Time) ([]*backend.Timer, error) {
	var found []*backend.Timer
	for _, k := range backend.SortedKeys(keys) {
		rows, err := r.timerRows(ctx, timersOfSQL, k.Tenant, k.ID, until)
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

// ListTimers implements [backend.TimerReader].
func (r *reader) ListTimers(
	ctx context.Context, key backend.WorkflowKey, class rendezvous.TimerClass, after backend.TimerPosition, limit int,
) ([]*backend.Timer, error) {
	return r.timerRows(ctx, listTimersSQL, key.Tenant, key.ID, string(class), instantOf(after), after.Key.TimerID, max(limit, 0))
}

// instantOf is where a page of timers begins.
func instantOf(p backend.TimerPosition) int64 {
	if !p.Set {
		return start
	}
	return p.FireAt.UnixMicro()
}

const expiredTimersSQL = `
SELECT` + timerColumns + ` FROM timers t INDEXED BY timers_firing
WHERE t.fire_at <= ?1 AND (t.fire_at, t.tenant, t.workflow_id, t.timer_id) > (?2, ?3, ?4, ?5)
	AND (?6 = '' OR t.tenant = ?6) AND (?7 IS NULL OR t.shard IN (SELECT value FROM json_each(?7)))
ORDER BY t.fire_at, t.tenant, t.workflow_id, t.timer_id LIMIT ?8 + 0`

// ExpiredTimers implements [backend.TimerReader].
func (r *reader) ExpiredTimers(
	ctx context.Context, asOf time.Time, o backend.Owned, after backend.TimerPosition, limit int,
) ([]*backend.Timer, error) {
	return r.timerRows(ctx, expiredTimersSQL, asOf, instantOf(after), after.Key.Tenant, after.Key.WorkflowID, after.Key.TimerID, o.Tenant,
		shardsText(o.Shards), max(limit, 0))
}

// shardsText is a list of shards as a parameter that json_each reads, nil for all.
func shardsText(shards []int) any {
	if shards == nil {
		return nil
	}
	return listText(shards)
}

const countTimersSQL = `
SELECT count(*) FILTER (WHERE t.due_at > ?3), count(*) FILTER (WHERE t.due_at <= ?3), count(*) FILTER (WHERE t.parks > 0),
	count(*) FILTER (WHERE t.attempts > 0), min(t.due_at) FILTER (WHERE t.due_at <= ?3)
FROM timers t WHERE t.tenant = ?1 AND t.class = ?2`

// CountTimers implements [backend.TimerReader].
func (r *reader) CountTimers(ctx context.Context, tenant string) (map[rendezvous.TimerClass]backend.TimerCount, error) {
	counts := map[rendezvous.TimerClass]backend.TimerCount{}
	for _, class := range [...]rendezvous.TimerClass{rendezvous.TimerAuthor, rendezvous.TimerWait, rendezvous.TimerRun} {
		err := r.query(ctx, countTimersSQL, func(c *columns) error {
			n := backend.TimerCount{Pending: c.Tally(), Due: c.Tally(), Parked: c.Tally(), Failing: c.Tally(), OldestDue: c.InstantOrNone()}
			if n.Pending+n.Due > 0 {
				counts[class] = n
			}
			return nil
		}, tenant, string(class), r.now)
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// Records of timers, by their index: what it is made of is written as it is there.
const (
	ofTimers = ` FROM history h INDEXED BY history_timers
WHERE h.tenant = ?1 AND h.run_id = ?2 AND h.kind >= 'timer.' AND h.kind < 'timer/'`
	ofThreeKinds       = ` AND h.kind IN ('timer.started', 'timer.fired', 'timer.cancelled')`
	lastTimerRecordSQL = `
SELECT ` + recordColumns + ofTimers + ofThreeKinds + ` AND iif(json_valid(h.data), h.data ->> 'timer_id', NULL) = ?3
ORDER BY h.seq DESC LIMIT 1`
	outstandingTimersSQL = `
SELECT ` + recordColumns + ofTimers + ` AND h.kind = 'timer.started' AND NOT EXISTS (
	SELECT 1 FROM history l INDEXED BY history_timers
	WHERE l.tenant = ?1 AND l.run_id = ?2 AND l.kind >= 'timer.' AND l.kind < 'timer/' AND l.kind IN ('timer.started', 'timer.fired', 'timer.cancelled')
		AND iif(json_valid(l.data), l.data ->> 'timer_id', NULL) = iif(json_valid(h.data), h.data ->> 'timer_id', NULL) AND l.seq > h.seq)
ORDER BY h.seq LIMIT ?3 + 0`
)

// LastTimerRecords implements [backend.TimerReader].
func (r *reader) LastTimerRecords(ctx context.Context, keys []backend.RunTimerKey) (map[backend.RunTimerKey]rendezvous.Record, error) {
	found := make(map[backend.RunTimerKey]rendezvous.Record, len(keys))
	for _, k := range keys {
		records, err := r.records(ctx, lastTimerRecordSQL, k.Tenant, k.RunID, k.TimerID)
		if err != nil {
			return nil, err
		}
		if len(records) > 0 {
			found[k] = records[0]
		}
	}
	return found, nil
}

// OutstandingTimers implements [backend.TimerReader].
func (r *reader) OutstandingTimers(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	return r.records(ctx, outstandingTimersSQL, key.Tenant, key.ID, max(limit, 0))
}

// The last closings of their effects, unless an attempt is open.
const finalFailuresSQL = `
SELECT ` + bareColumns + ` FROM history h INDEXED BY history_effects
WHERE h.tenant = ? AND h.run_id = ? AND h.effect <> '' AND h.closes AND h.kind = 'effect.failed'
	AND NOT EXISTS (
		SELECT 1 FROM history l INDEXED BY history_effects
		WHERE l.tenant = h.tenant AND l.run_id = h.run_id AND l.effect = h.effect AND l.effect <> '' AND l.closes AND l.seq > h.seq)
	AND NOT EXISTS (
		SELECT 1 FROM history o INDEXED BY history_effects
		WHERE o.tenant = h.tenant AND o.run_id = h.run_id AND o.effect = h.effect AND o.effect <> '' AND NOT o.closes
			AND NOT EXISTS (
				SELECT 1 FROM history c INDEXED BY history_effects
				WHERE c.tenant = h.tenant AND c.run_id = h.run_id AND c.effect = h.effect AND c.effect <> '' AND c.attempt = o.attempt AND c.closes))
ORDER BY h.effect`

// FinalFailures implements [backend.TimerReader].
func (r *reader) FinalFailures(ctx context.Context, key backend.RunKey) ([]string, error) {
	records, err := r.records(ctx, finalFailuresSQL, key.Tenant, key.ID)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, rec := range records {
		var d rendezvous.EffectFailedData
		if err := rendezvous.DecodeData(rec, &d); err != nil {
			return nil, err
		}
		if !d.Retryable {
			names = append(names, rec.Effect)
		}
	}
	return names, nil
}

package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

func timerTenant(k backend.TimerKey) string { return k.Tenant }
func timerFlow(k backend.TimerKey) string   { return k.WorkflowID }
func timerID(k backend.TimerKey) string     { return k.TimerID }

func (r *reader) timerRows(ctx context.Context, sql string, args ...any) ([]*backend.Timer, error) {
	var rows []*backend.Timer
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Timer(c))
		return nil
	}, args...)
	return rows, err
}

func (r *reader) timersByKey(ctx context.Context, sql string, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	rows, err := r.timerRows(ctx, sql, texts(keys, timerTenant), texts(keys, timerFlow), texts(keys, timerID))
	found := make(map[backend.TimerKey]*backend.Timer, len(rows))
	for _, t := range rows {
		found[t.Key()] = t
	}
	return found, err
}

// Timers implements [backend.TimerReader].
func (r *reader) Timers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return r.timersByKey(ctx, timersSQL, keys)
}

// LockTimers implements [backend.TimerTx].
func (t *transaction) LockTimers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return t.timersByKey(ctx, lockTimersSQL, backend.SortedKeys(keys))
}

// HeldTimers implements [backend.TimerTx].
func (t *transaction) HeldTimers(ctx context.Context, tokens []int64) ([]*backend.Timer, error) {
	tokens = slices.Compact(slices.Sorted(slices.Values(tokens)))
	return t.timerRows(ctx, heldTimersSQL, bigints(tokens, func(n int64) int64 { return n }))
}

// TimersOf implements [backend.TimerReader].
func (r *reader) TimersOf(ctx context.Context, keys []backend.WorkflowKey, until time.Time) ([]*backend.Timer, error) {
	if until.IsZero() {
		until = endOfTime
	}
	keys = backend.SortedKeys(keys)
	return r.timerRows(ctx, timersOfSQL, texts(keys, workflowTenant), texts(keys, workflowID), until)
}

// ListTimers implements [backend.TimerReader].
func (r *reader) ListTimers(
	ctx context.Context, key backend.WorkflowKey, class rendezvous.TimerClass, after backend.TimerPosition, limit int,
) ([]*backend.Timer, error) {
	if !after.Set {
		after.FireAt = startOfTime
	}
	return r.timerRows(ctx, listTimersSQL, key.Tenant, key.ID, string(class), after.FireAt, after.Key.TimerID, int64(limit))
}

// CountTimers implements [backend.TimerReader].
func (r *reader) CountTimers(ctx context.Context, tenant string) (map[rendezvous.TimerClass]backend.TimerCount, error) {
	counts := map[rendezvous.TimerClass]backend.TimerCount{}
	err := r.query(ctx, countTimersSQL, func(c *columns) error {
		counts[rendezvous.TimerClass(c.Text())] = backend.TimerCount{
			Pending: int(c.Bigint()), Due: int(c.Bigint()), Parked: int(c.Bigint()), Failing: int(c.Bigint()), OldestDue: c.InstantOrNone(),
		}
		return nil
	}, tenant, r.now)
	return counts, err
}

// LastTimerRecords implements [backend.TimerReader].
func (r *reader) LastTimerRecords(ctx context.Context, keys []backend.RunTimerKey) (map[backend.RunTimerKey]rendezvous.Record, error) {
	found := make(map[backend.RunTimerKey]rendezvous.Record, len(keys))
	err := r.placed(ctx, lastTimerRecordsSQL, func(place int, rec rendezvous.Record) {
		found[keys[place]] = rec
	}, texts(keys, func(k backend.RunTimerKey) string { return k.Tenant }), texts(keys, func(k backend.RunTimerKey) string { return k.RunID }),
		texts(keys, func(k backend.RunTimerKey) string { return k.TimerID }))
	return found, err
}

// OutstandingTimers implements [backend.TimerReader].
func (r *reader) OutstandingTimers(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	var found []rendezvous.Record
	err := r.placed(ctx, outstandingTimersSQL, func(_ int, rec rendezvous.Record) {
		found = append(found, rec)
	}, key.Tenant, key.ID, int64(limit))
	return found, err
}

// FinalFailures implements [backend.TimerReader].
func (r *reader) FinalFailures(ctx context.Context, key backend.RunKey) ([]string, error) {
	var effects []string
	var bad error
	err := r.placed(ctx, lastFailuresSQL, func(_ int, rec rendezvous.Record) {
		var d rendezvous.EffectFailedData
		if err := rendezvous.DecodeData(rec, &d); err != nil {
			bad = cmp.Or(bad, err)
		} else if !d.Retryable {
			effects = append(effects, rec.Effect)
		}
	}, key.Tenant, key.ID)
	return effects, cmp.Or(err, bad)
}

// owned are the shards that an enumeration looks at, in their order: those it names, or all.
func (r *reader) owned(o backend.Owned) []int {
	if o.Shards != nil {
		return slices.Compact(slices.Sorted(slices.Values(o.Shards)))
	}
	all := make([]int, r.shards)
	for i := range all {
		all[i] = i
	}
	return all
}

// lastText is behind every id: they are of valid UTF-8 and no longer.
var lastText = strings.Repeat("\U0010FFFF", rendezvous.MaxID/4)

// ExpiredTimers implements [backend.TimerReader].
func (r *reader) ExpiredTimers(
	ctx context.Context, asOf time.Time, o backend.Owned, after backend.TimerPosition, limit int,
) ([]*backend.Timer, error) {
	if !after.Set {
		after.FireAt = startOfTime
	}
	shards := integers(r.owned(o), func(n int) int { return n })
	at := after.Key
	if o.Tenant == "" {
		return r.timerRows(ctx, expiredTimersSQL, asOf, shards, after.FireAt, at.Tenant, at.WorkflowID, at.TimerID, int64(limit))
	}
	// Of the position's instant, all of the tenant's timers are behind a position of a tenant before it, and none behind one of a tenant after it.
	switch cmp.Compare(at.Tenant, o.Tenant) {
	case -1:
		at.WorkflowID, at.TimerID = "", ""
	case 1:
		at.WorkflowID, at.TimerID = lastText, lastText
	}
	return r.timerRows(ctx, expiredTimersOfSQL, asOf, shards, after.FireAt, at.WorkflowID, at.TimerID, int64(limit), o.Tenant)
}

// NextDue implements [backend.TimerReader].
func (r *reader) NextDue(ctx context.Context, shards []int) (map[int]time.Time, error) {
	next := make(map[int]time.Time, len(shards))
	err := r.query(ctx, nextDueSQL, func(c *columns) error {
		next[c.Integer()] = c.Instant()
		return nil
	}, integers(shards, func(n int) int { return n }))
	return next, err
}

// Heads implements [backend.TimerReader].
func (r *reader) Heads(
	ctx context.Context, o backend.Owned, status rendezvous.Status, after backend.HeadPosition, limit int,
) ([]backend.WorkflowHead, error) {
	// In each shard the range begins behind a key and ends with a tenant.
	type from struct {
		shard int
		key   backend.WorkflowKey
	}
	first, last := backend.WorkflowKey{}, lastText
	if o.Tenant != "" {
		first, last = backend.WorkflowKey{Tenant: o.Tenant}, o.Tenant
	}
	var begins []from
	for _, shard := range r.owned(o) {
		switch {
		case !after.Set || shard > after.Shard:
			begins = append(begins, from{shard, first})
		case shard == after.Shard && after.Key.Compare(first) > 0:
			begins = append(begins, from{shard, after.Key})
		case shard == after.Shard:
			begins = append(begins, from{shard, first})
		}
	}
	sql := headsSQL
	if status != "" && !status.Terminal() {
		sql = openHeadsSQL
	}
	var heads []backend.WorkflowHead
	err := r.query(ctx, sql, func(c *columns) error {
		heads = append(heads, backend.WorkflowHead{
			Shard: c.Integer(), Key: backend.WorkflowKey{Tenant: c.Text(), ID: c.Text()}, Head: c.Bigint(), Status: rendezvous.Status(c.Text()),
		})
		return nil
	}, integers(begins, func(f from) int { return f.shard }), texts(begins, func(f from) string { return f.key.Tenant }),
		texts(begins, func(f from) string { return f.key.ID }), last, string(status), int64(limit))
	return heads, err
}

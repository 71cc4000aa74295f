package memory

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// Timers implements [backend.TimerReader].
func (r *reader) Timers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	return pick(ctx, r.timers, keys, copyTimer)
}

// TimersOf implements [backend.TimerReader].
func (r *reader) TimersOf(ctx context.Context, keys []backend.WorkflowKey, until time.Time) ([]*backend.Timer, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Timer
	for _, k := range backend.SortedKeys(keys) {
		own := slices.SortedFunc(maps.Values(r.flowTimers[k]), func(a, b *backend.Timer) int {
			return cmp.Or(a.FireAt.Compare(b.FireAt), cmp.Compare(a.ArmedSeq, b.ArmedSeq), cmp.Compare(a.TimerID, b.TimerID))
		})
		for _, x := range own {
			if until.IsZero() || !x.FireAt.After(until) {
				rows = append(rows, copyTimer(x))
			}
		}
	}
	return rows, nil
}

// LastTimerRecords implements [backend.TimerReader].
func (r *reader) LastTimerRecords(ctx context.Context, keys []backend.RunTimerKey) (map[backend.RunTimerKey]rendezvous.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := make(map[backend.RunTimerKey]rendezvous.Record, len(keys))
	for _, k := range keys {
		rec := r.timerRecords[k]
		if rec == nil {
			continue
		}
		if rec.damaged != nil {
			return nil, rec.damaged
		}
		found[k] = copyRecord(rec.Record)
	}
	return found, nil
}

// OutstandingTimers implements [backend.TimerReader].
func (r *reader) OutstandingTimers(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var found []rendezvous.Record
	if armed := r.armings[key]; armed != nil {
		for o := range armed.all() {
			if len(found) >= limit {
				break
			}
			if o.rec.damaged != nil {
				return nil, o.rec.damaged
			}
			found = append(found, copyRecord(o.rec.Record))
		}
	}
	return found, nil
}

// FinalFailures implements [backend.TimerReader].
func (r *reader) FinalFailures(ctx context.Context, key backend.RunKey) ([]string, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var names []string
	for _, rec := range r.failures[key] {
		if !endsFailed(rec, r.effects[backend.WaitKey{Tenant: key.Tenant, RunID: key.ID, Effect: rec.Effect}]) {
			continue
		}
		if rec.damaged != nil {
			return nil, rec.damaged
		}
		var d rendezvous.EffectFailedData
		if err := rendezvous.DecodeData(rec.Record, &d); err != nil {
			return nil, err
		}
		if !d.Retryable {
			names = append(names, rec.Effect)
		}
	}
	slices.Sort(names)
	return names, nil
}

// endsFailed reports whether a failure is the last closing of its effect, and no attempt is open.
func endsFailed(failed *record, of []*record) bool {
	open := map[int]int{}
	for _, o := range of {
		if o.Kind.Phase() == rendezvous.PhaseOpen {
			open[o.Attempt]++
			continue
		}
		open[o.Attempt]--
		if o.Seq > failed.Seq {
			return false
		}
	}
	for _, n := range open {
		if n > 0 {
			return false
		}
	}
	return true
}

// ExpiredTimers implements [backend.TimerReader].
func (r *reader) ExpiredTimers(
	ctx context.Context, asOf time.Time, o backend.Owned, after backend.TimerPosition, limit int,
) ([]*backend.Timer, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	walk := r.firing.all()
	if after.Set {
		walk = r.firing.above(timerPlace{after.FireAt, after.Key})
	}
	var rows []*backend.Timer
	for p := range walk {
		if len(rows) >= limit || p.at.After(asOf) {
			break
		}
		x := r.timers[p.key]
		if (o.Tenant == "" || o.Tenant == x.Tenant) && within(o.Shards, x.Shard) {
			rows = append(rows, copyTimer(x))
		}
	}
	return rows, nil
}

// ListTimers implements [backend.TimerReader].
func (r *reader) ListTimers(
	ctx context.Context, key backend.WorkflowKey, class rendezvous.TimerClass, after backend.TimerPosition, limit int,
) ([]*backend.Timer, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	own := slices.SortedFunc(maps.Values(r.flowTimers[key]), func(a, b *backend.Timer) int {
		return compareTimers(timerPlace{a.FireAt, a.Key()}, timerPlace{b.FireAt, b.Key()})
	})
	last := timerPlace{after.FireAt, backend.TimerKey{Tenant: key.Tenant, WorkflowID: key.ID, TimerID: after.Key.TimerID}}
	var rows []*backend.Timer
	for _, x := range own {
		if len(rows) >= limit {
			break
		}
		if (class == "" || class == x.Class) && (!after.Set || compareTimers(timerPlace{x.FireAt, x.Key()}, last) > 0) {
			rows = append(rows, copyTimer(x))
		}
	}
	return rows, nil
}

// CountTimers implements [backend.TimerReader].
func (r *reader) CountTimers(ctx context.Context, tenant string) (map[rendezvous.TimerClass]backend.TimerCount, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	counts := map[rendezvous.TimerClass]backend.TimerCount{}
	for _, tenants := range r.ready {
		queue := tenants[tenant]
		if queue == nil {
			continue
		}
		for p := range queue.all() {
			x := r.timers[p.key]
			n := counts[x.Class]
			if x.DueAt.After(r.now) {
				n.Pending++
			} else if n.Due++; n.OldestDue.IsZero() || x.DueAt.Before(n.OldestDue) {
				n.OldestDue = x.DueAt
			}
			if x.Parks > 0 {
				n.Parked++
			}
			if x.Attempts > 0 {
				n.Failing++
			}
			counts[x.Class] = n
		}
	}
	return counts, nil
}

// NextDue implements [backend.TimerReader].
func (r *reader) NextDue(ctx context.Context, shards []int) (map[int]time.Time, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	next := map[int]time.Time{}
	for _, shard := range shards {
		note := func(at time.Time) {
			if was, ok := next[shard]; !ok || at.Before(was) {
				next[shard] = at
			}
		}
		for _, queue := range r.ready[shard] {
			first, _ := queue.first()
			note(first.at)
		}
		for x := range r.void(shard) {
			note(x.DueAt)
		}
	}
	return next, nil
}

// void yields the timers of a shard that are held under an epoch older than the shard's: such a hold holds nothing.
func (r *reader) void(shard int) iter.Seq[*backend.Timer] {
	return func(yield func(*backend.Timer) bool) {
		lease, holds := r.leases[backend.ShardKey{Pool: backend.TimerPool, Shard: shard}], r.holds[shard]
		if lease == nil || holds == nil {
			return
		}
		for h := range holds.all() {
			if h.epoch >= lease.Epoch || !yield(r.timers[h.key]) {
				return
			}
		}
	}
}

// DueTimers implements [backend.TimerTx].
func (t *transaction) DueTimers(ctx context.Context, shards []int, limit int) ([]*backend.Timer, bool, error) {
	if err := alive(ctx); err != nil {
		return nil, false, err
	}
	due, err := t.dueTimers(shards, limit)
	if err != nil {
		return nil, false, err
	}
	places, left := fair.Choose(due, limit, compareTimers)
	rows := make([]*backend.Timer, len(places))
	for i, p := range places {
		rows[i] = copyTimer(t.timers[p.key])
	}
	slices.SortFunc(rows, func(a, b *backend.Timer) int {
		return compareTimers(timerPlace{a.DueAt, a.Key()}, timerPlace{b.DueAt, b.Key()})
	})
	return rows, len(left) > 0, nil
}

// dueTimers are each tenant's first due timers in those shards, one more than a page holds at most.
func (t *transaction) dueTimers(shards []int, limit int) (map[string][]timerPlace, error) {
	queues := map[string][]fair.Fetch[timerPlace]{}
	for _, shard := range slices.Compact(slices.Sorted(slices.Values(shards))) {
		for tenant, queue := range t.ready[shard] {
			queues[tenant] = append(queues[tenant], behindIn(queue, t.now))
		}
		void := map[string]*sorted[timerPlace]{}
		for x := range t.void(shard) {
			if !x.ReadyAt.After(t.now) {
				continue
			}
			if void[x.Tenant] == nil {
				void[x.Tenant] = newSorted(compareTimers)
			}
			void[x.Tenant].insert(timerPlace{x.DueAt, x.Key()})
		}
		for tenant, queue := range void {
			queues[tenant] = append(queues[tenant], behindIn(queue, t.now))
		}
	}
	due := map[string][]timerPlace{}
	for tenant, own := range queues {
		places, err := fair.Merge(own, nil, limit+1, func(a, b *timerPlace) int { return compareTimers(*a, *b) })
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			due[tenant] = append(due[tenant], *p)
		}
	}
	return due, nil
}

// behindIn answers places up to now.
func behindIn(queue *sorted[timerPlace], now time.Time) fair.Fetch[timerPlace] {
	return func(after *timerPlace, limit int) (places []*timerPlace, err error) {
		walk := queue.all()
		if after != nil {
			walk = queue.above(*after)
		}
		for p := range walk {
			if p.at.After(now) || len(places) == limit {
				break
			}
			places = append(places, &p)
		}
		return places, nil
	}
}

// LockTimers implements [backend.TimerTx].
func (t *transaction) LockTimers(ctx context.Context, keys []backend.TimerKey) (map[backend.TimerKey]*backend.Timer, error) {
	rows, err := t.Timers(ctx, keys)
	t.holding(maps.Keys(rows))
	return rows, err
}

// HeldTimers implements [backend.TimerTx].
func (t *transaction) HeldTimers(ctx context.Context, tokens []int64) ([]*backend.Timer, error) {
	rows, err := pick(ctx, t.tokens, tokens, copyTimer)
	var held []*backend.Timer
	for _, token := range slices.Sorted(maps.Keys(rows)) {
		held = append(held, rows[token])
		t.holding(maps.Keys(map[backend.TimerKey]struct{}{rows[token].Key(): {}}))
	}
	return held, err
}

// holding notes timers whose holds may be changed.
func (t *transaction) holding(keys iter.Seq[backend.TimerKey]) {
	if t.timerLocks == nil {
		t.timerLocks = map[backend.TimerKey]struct{}{}
	}
	for k := range keys {
		t.timerLocks[k] = struct{}{}
	}
}

// changeTimers carries out what is to become of timers.
func (t *transaction) changeTimers(c *backend.Changes) {
	for _, k := range c.GoneTimers {
		t.unlinkTimer(t.timers[k])
	}
	for _, x := range c.Timers {
		old, next := t.timers[x.Key()], copyTimer(x)
		if x.Corrupt != nil {
			if old == nil {
				continue
			}
			next = copied(old)
			next.DueAt, next.ReadyAt, next.Attempts, next.LastError, next.Parks = x.DueAt, x.ReadyAt, x.Attempts, x.LastError, x.Parks
			next.Token, next.Holder, next.HoldEpoch, next.HeldUntil = x.Token, x.Holder, x.HoldEpoch, x.HeldUntil
		}
		t.unlinkTimer(old)
		t.linkTimer(next)
	}
	for _, x := range c.HeldTimers {
		old := t.timers[x.Key()]
		next := copied(old)
		next.Token, next.Holder, next.HoldEpoch, next.HeldUntil, next.ReadyAt = x.Token, x.Holder, x.HoldEpoch, x.HeldUntil, x.ReadyAt
		t.unlinkTimer(old)
		t.linkTimer(next)
	}
}

// dueDepth counts timers that are due, up to most, and answers the instant that has been due the longest among them.
func (r *reader) dueDepth(most int) (n int, oldest time.Time) {
	count := func(x *backend.Timer) {
		if n++; oldest.IsZero() || x.DueAt.Before(oldest) {
			oldest = x.DueAt
		}
	}
	for shard, tenants := range r.ready {
		for _, queue := range tenants {
			for p := range queue.all() {
				if p.at.After(r.now) || n >= most {
					break
				}
				count(r.timers[p.key])
			}
		}
		for h := range r.holds[shard].all() {
			if x := r.timers[h.key]; n < most && x.ReadyAt.After(r.now) && !x.DueAt.After(r.now) {
				count(x)
			}
		}
	}
	return n, oldest
}

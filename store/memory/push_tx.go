package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// lockPushes notes registrations that may be changed, and answers copies of them.
func (t *transaction) lockPushes(rows []*backend.Push) []*backend.Push {
	if t.pushLocks == nil {
		t.pushLocks = map[backend.PushKey]struct{}{}
	}
	for _, p := range rows {
		t.pushLocks[p.Key()] = struct{}{}
	}
	return copyPushes(rows)
}

// LockPushes implements [backend.PushTx].
func (t *transaction) LockPushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	rows, err := t.Pushes(ctx, keys)
	for _, p := range rows {
		t.lockPushes([]*backend.Push{p})
	}
	return rows, err
}

// PushesByToken implements [backend.PushTx].
func (t *transaction) PushesByToken(ctx context.Context, tokens []int64) ([]*backend.Push, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Push
	for _, token := range slices.Compact(slices.Sorted(slices.Values(tokens))) {
		if p := t.push.tokens[token]; p != nil && token != 0 {
			rows = append(rows, p)
		}
	}
	return t.lockPushes(rows), nil
}

// PushesOfClaim implements [backend.PushTx].
func (t *transaction) PushesOfClaim(ctx context.Context, owner, request string) ([]*backend.Push, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Push
	for _, p := range t.push.tokens {
		if p.LeaseOwner == owner && p.LeaseRequest == request && !p.LeaseRevoked && p.State == rendezvous.PushLive {
			rows = append(rows, p)
		}
	}
	backend.SortDue(rows)
	return t.lockPushes(rows), nil
}

// TakeDuePushes implements [backend.PushTx].
func (t *transaction) TakeDuePushes(ctx context.Context, c backend.PushClaim) (backend.PushesTaken, error) {
	if err := alive(ctx); err != nil {
		return backend.PushesTaken{}, err
	}
	if c.Only != nil {
		var rows []*backend.Push
		for _, run := range c.Only {
			if own := t.push.runPushes[run]; own != nil {
				for k := range own.all() {
					rows = append(rows, t.push.pushes[k])
				}
			}
		}
		taken, err := fair.ChoosePushes(c, rows, t.now)
		taken.Rows = t.lockPushes(taken.Rows)
		return taken, err
	}
	due := fair.DuePushes{
		Since: map[string]time.Time{}, Heads: func(tenant string, most int) ([]*backend.Push, error) { return t.gateHeads(c, tenant, most) },
		Next: func(places []fair.Place[backend.Push]) (rows []*backend.Push, err error) {
			for _, p := range places {
				rows = append(rows, t.queue(t.push.ready[lane{c.Namespace, p.Tenant}], c.At, p.After, p.Most)...)
			}
			return rows, nil
		},
	}
	for tenant, set := range t.lanes(c.PushDue) {
		if first, _ := set.first(); !first.at.After(c.At) {
			due.Since[tenant] = first.at
		}
	}
	for _, own := range t.lapsed(c.PushDue) {
		due.Lapsed = append(due.Lapsed, own...)
	}
	taken, err := fair.TakePushes(c, due)
	taken.Rows = t.lockPushes(taken.Rows)
	return taken, err
}

// gateHeads are the first due rows of each gate of a tenant.
func (t *transaction) gateHeads(c backend.PushClaim, tenant string, most int) ([]*backend.Push, error) {
	var rows []*backend.Push
	for _, set := range t.push.gates[lane{c.Namespace, tenant}] {
		rows = append(rows, t.queue(set, c.At, nil, most)...)
	}
	return rows, nil
}

// TakeAgedPushes implements [backend.PushTx].
func (t *transaction) TakeAgedPushes(ctx context.Context, before time.Time, limit int) ([]*backend.Push, bool, error) {
	if err := alive(ctx); err != nil {
		return nil, false, err
	}
	aged := map[string][]pushPlace{}
	for tenant, set := range t.push.failing {
		for p := range set.all() {
			if p.at.After(before) || len(aged[tenant]) > limit {
				break
			}
			if !t.push.pushes[p.key].Leased(t.now) {
				aged[tenant] = append(aged[tenant], p)
			}
		}
	}
	for tenant, own := range aged {
		if len(own) == 0 {
			delete(aged, tenant)
		}
	}
	places, left := fair.Choose(aged, limit, comparePushes)
	rows := make([]*backend.Push, len(places))
	for i, p := range places {
		rows[i] = t.push.pushes[p.key]
	}
	return t.lockPushes(rows), len(left) > 0, nil
}

// OldPushLog implements [backend.PushTx].
func (t *transaction) OldPushLog(ctx context.Context, before time.Time, limit int) ([]backend.PushLogKey, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var keys []backend.PushLogKey
	for e := range t.push.oldLog.all() {
		if e.At.After(before) || len(keys) == limit {
			break
		}
		keys = append(keys, e.PushLogKey)
	}
	return keys, nil
}

// LongPushLogs implements [backend.PushTx].
func (t *transaction) LongPushLogs(ctx context.Context, keep, limit int) ([]*backend.Push, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Push
	for l := range t.push.long.all() {
		if l.entries <= keep || len(rows) == limit {
			break
		}
		rows = append(rows, t.push.pushes[l.key])
	}
	return t.lockPushes(rows), nil
}

// OldestPushLog implements [backend.PushTx].
func (t *transaction) OldestPushLog(ctx context.Context, key backend.PushKey, incarnation int64, n int) ([]backend.PushLogKey, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var keys []backend.PushLogKey
	if own := t.push.log[key]; own != nil {
		for e := range own.all() {
			if e.Incarnation == incarnation && !e.Kept && len(keys) < n {
				keys = append(keys, e.PushLogKey)
			}
		}
	}
	return keys, nil
}

// GonePushes implements [backend.PushTx].
func (t *transaction) GonePushes(ctx context.Context, limit int) ([]*backend.Push, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Push
	for p := range t.push.gone.all() {
		if p.at.After(t.now) || len(rows) == limit {
			break
		}
		rows = append(rows, t.push.pushes[p.key])
	}
	return t.lockPushes(rows), nil
}

// checkPushLocks: a registration is changed only under its own lock, comes, goes, rests and wakes only under its workflow's too, and its row is locked last (R7).
func (t *transaction) checkPushLocks(c *backend.Changes, held map[backend.WorkflowKey]struct{}) error {
	flow := func(p *backend.Push) error {
		if _, ok := held[p.Flow()]; !ok {
			return misuse(fmt.Sprintf("has registration %q of run %q of tenant %q come, go, rest or wake without its workflow's lock", p.ID, p.RunID, p.Tenant))
		}
		return nil
	}
	for _, p := range c.NewPushes {
		if err := flow(p); err != nil {
			return err
		}
	}
	for _, p := range c.Pushes {
		if _, ok := t.pushLocks[p.Key()]; !ok {
			return misuse(fmt.Sprintf("changes registration %q of run %q of tenant %q without its lock", p.ID, p.RunID, p.Tenant))
		}
		old := t.push.pushes[p.Key()]
		if old == nil || p.Corrupt != nil {
			continue
		}
		rests, comes := p.State == rendezvous.PushIdle && old.State != p.State, (p.State == backend.PushGone) != (old.State == backend.PushGone)
		if rests || comes {
			if err := flow(p); err != nil {
				return err
			}
		}
	}
	for _, k := range c.GonePushes {
		if _, ok := t.pushLocks[k]; !ok {
			return misuse(fmt.Sprintf("ends registration %q of run %q of tenant %q without its lock", k.ID, k.RunID, k.Tenant))
		}
		if old := t.push.pushes[k]; old != nil && old.State != backend.PushGone {
			if err := flow(old); err != nil {
				return err
			}
		}
	}
	return nil
}

// stalePushes reports whether something to insert is there, or something to change is not.
func (t *transaction) stalePushes(c *backend.Changes) bool {
	entries := map[backend.PushLogKey]struct{}{}
	for _, e := range c.PushLog {
		entries[e.PushLogKey] = struct{}{}
	}
	return len(entries) < len(c.PushLog) || taken(t.push.pushes, c.NewPushes) || absent(t.push.pushes, c.Pushes) ||
		slices.ContainsFunc(c.GonePushes, func(k backend.PushKey) bool { return t.push.pushes[k] == nil }) ||
		slices.ContainsFunc(c.PushLog, func(e *backend.PushLogEntry) bool { return t.push.entry(e.PushLogKey) != nil })
}

// wakes tells which of the wakes will find an idle registration.
func (t *transaction) wakes(c *backend.Changes) {
	for _, w := range c.Wakes {
		w.Woke = len(t.idle(w)) > 0
	}
}

func (t *transaction) idle(w *backend.PushWake) []*backend.Push {
	var rows []*backend.Push
	own := t.push.runPushes[w.Run]
	if own == nil {
		return nil
	}
	for k := range own.all() {
		if p := t.push.pushes[k]; p.State == rendezvous.PushIdle && p.Takes&w.Kinds != 0 {
			rows = append(rows, p)
		}
	}
	return rows
}

// changePushes carries out what is to become of registrations and logs.
func (t *transaction) changePushes(c *backend.Changes) {
	for _, w := range c.Wakes {
		for _, p := range t.idle(w) {
			next := *p
			next.State, next.NextAttemptAt = rendezvous.PushLive, w.Now
			t.push.unlinkPush(p)
			t.push.linkPush(&next)
		}
	}
	for _, k := range c.GonePushes {
		t.push.unlinkPush(t.push.pushes[k])
	}
	for _, p := range c.NewPushes {
		t.push.linkPush(copyPush(p))
	}
	for _, p := range c.Pushes {
		t.changePush(p)
	}
	for _, k := range c.GonePushLog {
		t.push.unlinkEntry(k)
	}
	for _, e := range c.PushLog {
		t.push.linkEntry(copied(e))
	}
}

// changePush writes a row: settings only where they changed, and of one that does not decode only its schedule and lease.
func (t *transaction) changePush(p *backend.Push) {
	old := t.push.pushes[p.Key()]
	next := *old
	if p.Corrupt == nil {
		next = *copyPush(p)
		next.Corrupt = nil
		if !p.Resettled {
			next.Gate, next.Takes, next.Settings = old.Gate, old.Takes, old.Settings
		}
	} else {
		next.NextAttemptAt, next.LeaseToken, next.LeaseOwner, next.LeaseRequest = p.NextAttemptAt, p.LeaseToken, p.LeaseOwner, p.LeaseRequest
		next.LeaseUntil, next.LeaseRevoked = p.LeaseUntil, p.LeaseRevoked
	}
	t.push.unlinkPush(old)
	t.push.linkPush(&next)
}

// prunePushes takes the registrations of a run that retention ends, and their logs.
func (t *transaction) prunePushes(run backend.RunKey) {
	if own := t.push.runPushes[run]; own != nil {
		for _, k := range slices.Collect(own.all()) {
			t.push.unlinkPush(t.push.pushes[k])
		}
	}
	for k, own := range t.push.log {
		if k.Run() == run {
			for _, e := range slices.Collect(own.all()) {
				t.push.unlinkEntry(e.PushLogKey)
			}
		}
	}
}

package memory

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Pushes implements [backend.PushReader].
func (r *reader) Pushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return pick(ctx, r.push.pushes, keys, copyPush)
}

// PushesOf implements [backend.PushReader].
func (r *reader) PushesOf(ctx context.Context, runs []backend.RunKey) ([]*backend.Push, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Push
	for _, run := range sortedRuns(runs) {
		if own := r.push.runPushes[run]; own != nil {
			for k := range own.all() {
				rows = append(rows, copyPush(r.push.pushes[k]))
			}
		}
	}
	return rows, nil
}

// lapsed are the live rows of a namespace whose lease has expired and that are due but for that, by tenant, in due order.
func (r *reader) lapsed(d backend.PushDue) map[string][]*backend.Push {
	found := map[string][]*backend.Push{}
	for p := range r.push.leased.all() {
		if p.at.After(r.now) {
			break
		}
		x := r.push.pushes[p.key]
		if x.Namespace == d.Namespace && !x.NextAttemptAt.After(d.At) && (d.Tenant == "" || d.Tenant == x.Tenant) {
			found[x.Tenant] = append(found[x.Tenant], x)
		}
	}
	for _, own := range found {
		backend.SortDue(own)
	}
	return found
}

// queue answers a tenant's unleased due rows behind one.
func (r *reader) queue(set *sorted[pushPlace], at time.Time, after *backend.Push, limit int) []*backend.Push {
	if set == nil {
		return nil
	}
	walk := set.all()
	if after != nil {
		walk = set.above(pushPlace{after.NextAttemptAt, after.Key()})
	}
	var rows []*backend.Push
	for p := range walk {
		if p.at.After(at) || len(rows) == limit {
			break
		}
		rows = append(rows, r.push.pushes[p.key])
	}
	return rows
}

// DuePushes implements [backend.PushReader].
func (r *reader) DuePushes(ctx context.Context, d backend.PushDue, limit int) ([]*backend.Push, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	own := r.queue(r.push.ready[lane{d.Namespace, d.Tenant}], d.At, nil, limit)
	return copyPushes(backend.MergeDue(own, r.lapsed(d)[d.Tenant], limit)), nil
}

func copyPushes(rows []*backend.Push) []*backend.Push {
	copies := make([]*backend.Push, len(rows))
	for i, p := range rows {
		copies[i] = copyPush(p)
	}
	return copies
}

// lanes are the tenants' queues of a namespace.
func (r *reader) lanes(d backend.PushDue) iter.Seq2[string, *sorted[pushPlace]] {
	return func(yield func(string, *sorted[pushPlace]) bool) {
		for l, set := range r.push.ready {
			if l.namespace == d.Namespace && (d.Tenant == "" || d.Tenant == l.tenant) && !yield(l.tenant, set) {
				return
			}
		}
	}
}

// CountDuePushes implements [backend.PushReader].
func (r *reader) CountDuePushes(ctx context.Context, d backend.PushDue, most int) (int, error) {
	if err := alive(ctx); err != nil {
		return 0, err
	}
	n := 0
	for _, own := range r.lapsed(d) {
		n += len(own)
	}
	for _, set := range r.lanes(d) {
		for p := range set.all() {
			if p.at.After(d.At) || n >= most {
				break
			}
			n++
		}
	}
	return min(n, most), nil
}

// NextPush implements [backend.PushReader].
func (r *reader) NextPush(ctx context.Context, d backend.PushDue) (time.Time, error) {
	if err := alive(ctx); err != nil {
		return time.Time{}, err
	}
	var next time.Time
	for _, set := range r.lanes(d) {
		for p := range set.above(pushPlace{at: d.At.Add(time.Microsecond)}) { // no key is empty: none stands there
			if next.IsZero() || p.at.Before(next) {
				next = p.at
			}
			break
		}
	}
	return next, nil
}

func passesPush(p *backend.Push, f backend.PushFilter) bool {
	return (f.Reason == "" || f.Reason == p.Reason) && (f.Gate == "" || f.Gate == p.Gate)
}

// ListParkedPushes implements [backend.PushReader]. There is no index by key for it: each page puts all parked rows in order.
func (r *reader) ListParkedPushes(
	ctx context.Context, tenant string, f backend.PushFilter, after backend.PushKey, p backend.Span,
) ([]*backend.Push, backend.PushKey, error) {
	if err := alive(ctx); err != nil {
		return nil, backend.PushKey{}, err
	}
	var keys []backend.PushKey
	if set := r.push.parked[tenant]; set != nil {
		for place := range set.all() {
			if after == (backend.PushKey{}) || place.key.Compare(after) > 0 {
				keys = append(keys, place.key)
			}
		}
	}
	slices.SortFunc(keys, backend.PushKey.Compare)
	page := backend.Listing[backend.Push, backend.PushKey]{Limit: p.Limit, At: (*backend.Push).Key}
	for i, k := range keys {
		x := r.push.pushes[k]
		if page.Add(x, passesPush(x, f) || x.Corrupt != nil, i == p.Look-1) {
			break
		}
	}
	return copyPushes(page.Rows), page.Next, nil
}

// LongestParkedPushes implements [backend.PushReader].
func (r *reader) LongestParkedPushes(
	ctx context.Context, tenant string, f backend.PushFilter, after backend.ParkedPushPosition, p backend.Span,
) ([]*backend.Push, backend.ParkedPushPosition, error) {
	if err := alive(ctx); err != nil {
		return nil, backend.ParkedPushPosition{}, err
	}
	page := backend.Listing[backend.Push, backend.ParkedPushPosition]{Limit: p.Limit, At: backend.ParkedPushAt}
	if set := r.push.parked[tenant]; set != nil {
		walk := set.all()
		if after.Set {
			walk = set.above(pushPlace{after.At, after.Key})
		}
		looked := 0
		for place := range walk {
			looked++
			x := r.push.pushes[place.key]
			row := &backend.Push{Tenant: x.Tenant, RunID: x.RunID, ID: x.ID, ParkedAt: x.ParkedAt}
			if page.Add(row, passesPush(x, f), looked == p.Look) {
				break
			}
		}
	}
	return page.Rows, page.Next, nil
}

// DuePushRuns implements [backend.PushReader].
func (r *reader) DuePushRuns(ctx context.Context, before time.Time, limit int) ([]backend.DuePushRun, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var due []*backend.Push
	for _, n := range [...]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
		d := backend.PushDue{Namespace: n, At: before}
		lapsed := r.lapsed(d)
		for _, own := range lapsed {
			due = append(due, own[:min(len(own), limit)]...)
		}
		for _, set := range r.lanes(d) {
			due = append(due, r.queue(set, before, nil, limit)...)
		}
	}
	return backend.RunsOfDue(due, limit), nil
}

// PushLog implements [backend.PushReader].
func (r *reader) PushLog(ctx context.Context, key backend.PushKey, incarnation, before int64, limit int) ([]*backend.PushLogEntry, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.PushLogEntry
	if own := r.push.log[key]; own != nil {
		for e := range own.back() {
			if incarnation == 0 {
				incarnation = e.Incarnation
			}
			if e.Incarnation == incarnation && (before == 0 || e.No < before) && len(rows) < limit {
				rows = append(rows, copied(e))
			}
		}
	}
	return rows, nil
}

// PushLogged implements [backend.PushReader].
func (r *reader) PushLogged(ctx context.Context, key backend.PushKey, incarnation int64, entryID string) (*backend.PushLogEntry, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	if own := r.push.log[key]; own != nil {
		for e := range own.all() {
			if e.Incarnation == incarnation && e.EntryID == entryID {
				return copied(e), nil
			}
		}
	}
	return nil, nil
}

// pushDepth counts due, failing and parked registrations, up to most, and tells since when the longest due is.
func (r *reader) pushDepth(most int, out *backend.Depths) {
	for _, n := range [...]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
		d := backend.PushDue{Namespace: n, At: r.now}
		note := func(at time.Time) {
			if out.DuePushes++; out.OldestDuePush.IsZero() || at.Before(out.OldestDuePush) {
				out.OldestDuePush = at
			}
		}
		for _, own := range r.lapsed(d) {
			for _, p := range own {
				note(p.NextAttemptAt)
			}
		}
		for _, set := range r.lanes(d) {
			for p := range set.all() {
				if p.at.After(r.now) {
					break
				}
				note(p.at)
			}
		}
	}
	for _, set := range r.push.failing {
		out.FailingPushes += set.len()
	}
	for _, set := range r.push.parked {
		out.ParkedPushes += set.len()
	}
	for _, n := range [...]*int{&out.DuePushes, &out.FailingPushes, &out.ParkedPushes} {
		*n = min(*n, most)
	}
}

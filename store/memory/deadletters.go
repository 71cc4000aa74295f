package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// DeadLetters implements [backend.Reader]. All indexes are one here.
func (r *reader) DeadLetters(ctx context.Context, tenant string, w backend.DeadWalk, limit int) ([]*backend.Event, int64, error) {
	if err := alive(ctx); err != nil {
		return nil, 0, err
	}
	order := r.tenant(tenant).dead
	next := func(_ backend.DeadIndex, after int64, n int) ([]int64, error) {
		walk := order.above(after)
		if !w.Up {
			walk = order.below(after)
		}
		var found []int64
		for number := range walk {
			if len(found) == n {
				break
			}
			found = append(found, number)
		}
		return found, nil
	}
	stored := func([]int64) (map[int64]*backend.Event, error) { return r.eventsByNum, nil }
	rows, after, err := w.Page(limit, next, stored)
	for i, e := range rows {
		rows[i] = copyEvent(e, false)
	}
	return rows, after, err
}

// CountDead implements [backend.Reader].
func (r *reader) CountDead(ctx context.Context, tenant string, f backend.DeadFilter, most int) (map[rendezvous.DeadReason]int, bool, error) {
	if err := alive(ctx); err != nil {
		return nil, false, err
	}
	counts, n := map[rendezvous.DeadReason]int{}, 0
	for number := range r.tenant(tenant).dead.all() {
		e := r.eventsByNum[number]
		if !f.Passes(e) {
			continue
		}
		if n++; most > 0 && n > most {
			return counts, true, nil
		}
		counts[e.DeadReason]++
	}
	return counts, false, nil
}

// EventsOfOp implements [backend.Reader].
func (r *reader) EventsOfOp(ctx context.Context, tenant, id string, purged bool, after int64, limit int) ([]*backend.Event, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Event
	if s := r.ops[op{tenant, id}]; s != nil {
		for number := range s.above(after) {
			if len(rows) == limit {
				break
			}
			if e := r.eventsByNum[number]; e.Purged == purged {
				rows = append(rows, copyEvent(e, false))
			}
		}
	}
	return rows, nil
}

// OverdueEvents implements [backend.Tx].
func (t *transaction) OverdueEvents(ctx context.Context, o backend.Overdue, limit int) (backend.OverdueEvents, error) {
	if err := alive(ctx); err != nil {
		return backend.OverdueEvents{}, err
	}
	q := fair.Queues{Tenants: t.overdueTenants(o), Limit: limit, Near: backend.MostNear, Look: backend.MostLooked, Fetch: func(ranges []fair.Range) ([][]fair.KeyRow, error) {
		rows := make([][]fair.KeyRow, len(ranges))
		for i, r := range ranges {
			rows[i] = t.overdueIn(r, o)
		}
		return rows, nil
	}}
	due, near, more, err := q.Take()
	return backend.OverdueEvents{Due: t.copies(due), Near: t.copies(near), More: more}, err
}

func (t *transaction) copies(numbers []int64) []*backend.Event {
	rows := make([]*backend.Event, len(numbers))
	for i, n := range numbers {
		rows[i] = copyEvent(t.eventsByNum[n], false)
	}
	return rows
}

// overdueTenants are those with something due, the longest due first.
func (t *transaction) overdueTenants(o backend.Overdue) []string {
	late := map[string]int64{}
	for name := range t.tables.tenants {
		if o.Tenant != "" && o.Tenant != name {
			continue
		}
		for _, own := range []bool{false, true} {
			for _, r := range t.overdueIn(fair.Range{Tenant: name, Own: own, Most: 1}, o) {
				late[name] = max(late[name], r.Late+1)
			}
		}
	}
	var names []string
	for name := range late {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(late[b], late[a]), cmp.Compare(a, b)) })
	return names
}

// overdueIn is the next rows of one range.
func (t *transaction) overdueIn(r fair.Range, o backend.Overdue) []fair.KeyRow {
	order, bound := t.tenant(r.Tenant).ageing, o.Since
	if r.Own {
		order, bound = t.tenant(r.Tenant).expiring, o.At
	}
	walk := order.all()
	if r.After != nil {
		walk = order.above(instant{time.UnixMicro(bound.UnixMicro() - r.After.Late).UTC(), r.After.Number})
	}
	var rows []fair.KeyRow
	for x := range walk {
		if len(rows) == r.Most || x.at.After(bound) {
			break
		}
		e := t.eventsByNum[x.number]
		near := !r.Own && t.near(e)
		rows = append(rows, fair.KeyRow{
			Late: bound.UnixMicro() - x.at.UnixMicro(), Number: x.number, Near: near, Held: near && e.TakeUntil.After(t.now),
		})
	}
	return rows
}

// near reports whether an open wait stands where the event does.
func (t *transaction) near(e *backend.Event) bool {
	for _, k := range e.MatchKeys() {
		if s := t.meets[meeting{e.Tenant, e.Type, k}]; s != nil && s.waits.len() > 0 {
			return true
		}
	}
	return false
}

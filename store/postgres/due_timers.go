package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// DueTimers implements [backend.TimerTx]. Where all that is due fits, nobody's share needs to be known.
func (t *transaction) DueTimers(ctx context.Context, shards []int, limit int) ([]*backend.Timer, bool, error) {
	shards = slices.Compact(slices.Sorted(slices.Values(shards)))
	rows, err := t.timerRows(ctx, dueTimersSQL, t.now, integers(shards, func(n int) int { return n }), int64(limit)+1)
	if err != nil {
		return nil, false, err
	}
	more := len(rows) > limit
	if more {
		if rows, more, err = t.fairTimers(ctx, shards, limit); err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(rows, func(a, b *backend.Timer) int { return cmp.Or(a.DueAt.Compare(b.DueAt), a.Key().Compare(b.Key())) })
	return rows, more, nil
}

// timerQueue is what a tenant has due in a shard: its first timer, and since when that could be taken.
type timerQueue struct {
	shard int
	since time.Time
	key   backend.TimerKey
}

func (q timerQueue) compare(o timerQueue) int {
	return cmp.Or(q.since.Compare(o.since), q.key.Compare(o.key))
}

func (t *transaction) fairTimers(ctx context.Context, shards []int, limit int) ([]*backend.Timer, bool, error) {
	tenants, queues, err := t.timerQueues(ctx, shards)
	if err != nil {
		return nil, false, err
	}
	// A tenant's places go to those that could be taken the longest.
	since := func(x *backend.Timer) time.Time {
		if x.ReadyAt.After(t.now) { // held by an owner that was deposed since
			return x.DueAt
		}
		return x.ReadyAt
	}
	longest := func(a, b *backend.Timer) int { return cmp.Or(since(a).Compare(since(b)), a.Key().Compare(b.Key())) }
	tenantOf := func(x *backend.Timer) string { return x.Tenant }
	share := 0
	return fair.Rows(tenants, limit, tenantOf, longest, func(places []fair.Place[backend.Timer]) ([]*backend.Timer, error) {
		var among []int
		first, last := make([]int, len(places)), make([]int, len(places))
		for i, p := range places {
			// The first n of many queues stand in the n queues whose heads are the first: others are not looked at.
			n := p.Most
			if p.After == nil {
				share = p.Most
			} else {
				n += share
			}
			first[i] = len(among) + 1
			for _, q := range queues[p.Tenant][:min(n, len(queues[p.Tenant]))] {
				among = append(among, q.shard)
			}
			last[i] = len(among)
		}
		tenants, after, most := placeColumns(places, since)
		at := func(id func(backend.TimerKey) string) array {
			return texts(places, func(p fair.Place[backend.Timer]) string {
				if p.After == nil {
					return ""
				}
				return id(p.After.Key())
			})
		}
		number := func(n int) int { return n }
		return t.timerRows(ctx, dueTimersOfSQL, t.now, integers(among, number), tenants, after, at(timerFlow), at(timerID), most,
			integers(first, number), integers(last, number))
	})
}

// timerQueues are the tenants that have timers to take, the longest so first, and for each the shards that have any, likewise.
func (t *transaction) timerQueues(ctx context.Context, shards []int) (tenants []string, queues map[string][]timerQueue, err error) {
	queues = map[string][]timerQueue{}
	err = t.query(ctx, dueTimerTenantsSQL, func(c *columns) error {
		tenant := c.Text()
		queues[tenant] = append(queues[tenant], timerQueue{c.Integer(), c.Instant(), backend.TimerKey{Tenant: tenant, WorkflowID: c.Text(), TimerID: c.Text()}})
		return nil
	}, t.now, integers(shards, func(n int) int { return n }))
	for tenant, own := range queues {
		slices.SortFunc(own, timerQueue.compare)
		tenants = append(tenants, tenant)
	}
	slices.SortFunc(tenants, func(a, b string) int { return queues[a][0].compare(queues[b][0]) })
	return tenants, queues, err
}

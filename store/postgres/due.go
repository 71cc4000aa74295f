package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// dueTenants are tenants with something due, the longest due first, one more than limit at most.
func (t *transaction) dueTenants(ctx context.Context, sql string, shards []int, limit int) ([]string, error) {
	var tenants []string
	err := t.query(ctx, sql, func(c *columns) error {
		tenants = append(tenants, c.Text())
		return nil
	}, t.now, int64(limit)+1, integersOrNull(shards))
	return tenants, err
}

func placeColumns[R any](places []fair.Place[R], after func(last *R) time.Time) (tenants, instant, most array) {
	return texts(places, func(p fair.Place[R]) string { return p.Tenant }),
		instants(places, func(p fair.Place[R]) time.Time {
			if p.After == nil {
				return startOfTime
			}
			return after(p.After)
		}),
		bigints(places, func(p fair.Place[R]) int64 { return int64(p.Most) })
}

// DueParked implements [backend.Tx].
func (t *transaction) DueParked(ctx context.Context, shards []int, limit int) ([]*backend.Wait, bool, error) {
	tenants, err := t.dueTenants(ctx, parkedTenantsSQL, shards, limit)
	if err != nil {
		return nil, false, err
	}
	compare := func(a, b *backend.Wait) int {
		return cmp.Or(a.NextAttemptAt.Compare(b.NextAttemptAt), cmp.Compare(a.Number, b.Number))
	}
	return fair.Rows(tenants, limit, placeTenant, compare, func(places []fair.Place[backend.Wait]) ([]*backend.Wait, error) {
		tenants, after, most := placeColumns(places, func(last *backend.Wait) time.Time { return last.NextAttemptAt })
		numbers := bigints(places, func(p fair.Place[backend.Wait]) int64 {
			if p.After == nil {
				return firstNumber
			}
			return p.After.Number
		})
		return t.waitRows(ctx, parkedDueSQL, t.now, tenants, after, numbers, most, integersOrNull(shards))
	})
}

// DueWoken implements [backend.Tx].
func (t *transaction) DueWoken(ctx context.Context, shards []int, limit int) ([]*backend.Woken, bool, error) {
	tenants, err := t.dueTenants(ctx, wokenTenantsSQL, shards, limit)
	if err != nil {
		return nil, false, err
	}
	compare := func(a, b *backend.Woken) int { return cmp.Or(a.NextNoticeAt.Compare(b.NextNoticeAt), byMark(a, b)) }
	tenantOf := func(m *backend.Woken) string { return m.Tenant }
	return fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Woken]) ([]*backend.Woken, error) {
		tenants, after, most := placeColumns(places, func(last *backend.Woken) time.Time { return last.NextNoticeAt })
		ids := texts(places, func(p fair.Place[backend.Woken]) string {
			if p.After == nil {
				return ""
			}
			return p.After.WorkflowID
		})
		var rows []*backend.Woken
		err := t.query(ctx, wokenDueSQL, func(c *columns) error {
			m, err := row.Woken(c)
			rows = append(rows, m)
			return err
		}, t.now, tenants, after, ids, most, integersOrNull(shards))
		return rows, err
	})
}

// unmetSlice is how many key rows one call of UnmetEvents looks at: what bounds a pass over a large stock of events nobody waits for.
const unmetSlice = 20_000

// UnmetEvents implements [backend.Tx].
func (t *transaction) UnmetEvents(ctx context.Context, before time.Time, after int64, limit int) ([]*backend.Event, int64, error) {
	due, next, err := t.unmet(ctx, before, after)
	if err != nil || len(due) == 0 {
		return nil, next, err
	}
	numbers, left := fair.Numbers(due, limit)
	if left != 0 {
		next = left - 1
	}
	rows, err := t.eventRows(ctx, takeUnmetSQL, bigints(numbers, func(n int64) int64 { return n }), t.now)
	return rows, next, err
}

// unmet looks at one slice: the numbers left apart, by tenant and rising, and where the next slice begins, 0 when this one was the last.
func (t *transaction) unmet(ctx context.Context, before time.Time, after int64) (due map[string][]int64, next int64, err error) {
	due = map[string][]int64{}
	err = t.query(ctx, unmetSQL, func(c *columns) error {
		if c.Absent() { // the slice itself; an empty one ends nowhere
			if !c.Absent() {
				if last := c.Bigint(); c.Count() == unmetSlice {
					next = last - 1 // an event's key rows may have been cut apart
				}
			}
			return nil
		}
		tenant := c.Text()
		due[tenant] = append(due[tenant], c.Bigint())
		return nil
	}, t.now, before, after, int64(unmetSlice))
	for _, own := range due {
		slices.Sort(own)
	}
	return due, next, err
}

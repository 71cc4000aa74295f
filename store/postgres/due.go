package postgres

import (
	"cmp"
	"context"
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

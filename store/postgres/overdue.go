package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// OverdueEvents implements [backend.Tx].
func (t *transaction) OverdueEvents(ctx context.Context, o backend.Overdue, limit int) (backend.OverdueEvents, error) {
	none := backend.OverdueEvents{}
	tenants, err := t.overdueTenants(ctx, o, limit)
	if err != nil {
		return none, err
	}
	q := fair.Queues{Tenants: tenants, Limit: limit, Near: backend.MostNear, Look: backend.MostLooked, Fetch: func(ranges []fair.Range) ([][]fair.KeyRow, error) {
		return t.overdueIn(ctx, ranges, o)
	}}
	due, near, more, err := q.Take()
	if err != nil || len(due)+len(near) == 0 {
		return backend.OverdueEvents{More: more}, err
	}
	numbers := append(slices.Clone(due), near...)
	rows, err := t.eventRows(ctx, takeOverdueSQL, bigints(numbers, func(n int64) int64 { return n }), orStart(o.Since), o.At)
	page := backend.OverdueEvents{More: more}
	slices.Sort(near)
	for _, e := range rows {
		if _, is := slices.BinarySearch(near, e.Number); is {
			page.Near = append(page.Near, e)
		} else {
			page.Due = append(page.Due, e)
		}
	}
	return page, err
}

// orStart is an instant before all, where there is none.
func orStart(t time.Time) time.Time {
	if t.IsZero() {
		return startOfTime
	}
	return t
}

// overdueTenants are those with something due, the longest due first, one more than limit at most.
func (t *transaction) overdueTenants(ctx context.Context, o backend.Overdue, limit int) ([]string, error) {
	if o.Tenant != "" {
		return []string{o.Tenant}, nil
	}
	var tenants []string
	err := t.query(ctx, overdueTenantsSQL, func(c *columns) error {
		tenants = append(tenants, c.Text())
		return nil
	}, orStart(o.Since), o.At, int64(limit)+1)
	return tenants, err
}

// overdueIn is the next key rows of ranges.
func (t *transaction) overdueIn(ctx context.Context, ranges []fair.Range, o backend.Overdue) ([][]fair.KeyRow, error) {
	end := func(r fair.Range) time.Time {
		if r.Own {
			return o.At
		}
		return orStart(o.Since)
	}
	rows := make([][]fair.KeyRow, len(ranges))
	err := t.query(ctx, overdueSQL, func(c *columns) error {
		place := c.Bigint() - 1
		rows[place] = append(rows[place], fair.KeyRow{
			Late: end(ranges[place]).UnixMicro() - c.Instant().UnixMicro(), Number: c.Bigint(), Near: c.Boolean(), Held: c.Boolean(),
		})
		return nil
	}, texts(ranges, func(r fair.Range) string { return r.Tenant }), booleans(ranges, func(r fair.Range) bool { return r.Own }), instants(ranges, end),
		instants(ranges, func(r fair.Range) time.Time {
			if r.After == nil {
				return startOfTime
			}
			return time.UnixMicro(end(r).UnixMicro() - r.After.Late)
		}), bigints(ranges, func(r fair.Range) int64 {
			if r.After == nil {
				return firstNumber
			}
			return r.After.Number
		}), bigints(ranges, func(r fair.Range) int64 { return int64(r.Most) }), t.now)
	return rows, err
}

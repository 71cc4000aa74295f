package postgres

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// unmetRows is how many rows one look of UnmetEvents goes over: what bounds a pass over a large stock of events nobody waits for.
const unmetRows = 20_000

// UnmetEvents implements [backend.Tx].
func (t *transaction) UnmetEvents(ctx context.Context, l backend.UnmetLook, limit int) (backend.UnmetPage, error) {
	u := unmet{t, ctx, l.Before}
	numbers, page, err := fair.Unmet{Rows: unmetRows, Firsts: u.firsts, Fetch: u.fetch, Slice: u.slice}.Look(l, limit)
	if err != nil || len(numbers) == 0 {
		return page, err
	}
	page.Rows, err = t.eventRows(ctx, takeUnmetSQL, bigints(numbers, func(n int64) int64 { return n }), t.now)
	return page, err
}

// unmet is one look for unmet events.
type unmet struct {
	*transaction
	ctx    context.Context
	before time.Time
}

func (u unmet) firsts(waits bool, after backend.Mark, most int) (rows []fair.KeyRow, err error) {
	sql := newEventTenantsSQL
	if waits {
		sql = newWaitTenantsSQL
	}
	err = u.query(u.ctx, sql, func(c *columns) error {
		rows = append(rows, fair.KeyRow{Tenant: c.Text(), Late: u.before.UnixMicro() - c.Instant().UnixMicro(), Number: c.Bigint()})
		return nil
	}, after.At, after.Number, u.before, int64(most))
	return rows, err
}

func (u unmet) fetch(waits bool, ranges []fair.Range) (rows []fair.KeyRow, err error) {
	sql := newEventsSQL
	if waits {
		sql = newWaitsSQL
	}
	err = u.query(u.ctx, sql, func(c *columns) error {
		r := ranges[c.Bigint()-1]
		row := fair.KeyRow{Tenant: r.Tenant, Own: r.Own, Late: u.before.UnixMicro() - c.Instant().UnixMicro(), Number: c.Bigint()}
		if met := !c.Absent(); met {
			row.Event = c.Bigint()
		} else {
			row.Near, row.Held = true, true
		}
		rows = append(rows, row)
		return nil
	}, texts(ranges, func(r fair.Range) string { return r.Tenant }), booleans(ranges, func(r fair.Range) bool { return r.Own }),
		instants(ranges, func(r fair.Range) time.Time { return time.UnixMicro(u.before.UnixMicro() - r.After.Late) }),
		bigints(ranges, func(r fair.Range) int64 { return r.After.Number }), bigints(ranges, func(r fair.Range) int64 { return int64(r.Most) }), u.before, u.now)
	return rows, err
}

func (u unmet) slice(after backend.KeyPlace, rows int) (met []backend.KeyPlace, end *backend.KeyPlace, err error) {
	err = u.query(u.ctx, unmetSQL, func(c *columns) error {
		last := c.Boolean()
		p := backend.KeyPlace{Tenant: c.Text(), Namespace: c.Text(), Value: c.Text(), Type: c.Text(), Number: c.Bigint()}
		if last {
			end = &p
		} else {
			met = append(met, p)
		}
		return nil
	}, u.now, u.before, after.Tenant, after.Namespace, after.Value, after.Type, after.Number, int64(rows))
	return met, end, err
}

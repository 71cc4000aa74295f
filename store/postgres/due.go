package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// place is where in a tenant's queue a page goes on, and how many rows the tenant gets.
type place struct {
	tenant string
	after  time.Time
	number int64  // of waits
	id     string // of marks
	most   int64
}

// fairly takes limit due rows fairly by tenant (S3). tenants are those that have any, the longest due first; take answers rows behind the places it is
// given, each locked; position is where a tenant's queue begins, or goes on behind a row. With T ≤ limit tenants each gets its ⌊limit/T⌋ places in a first round, the rest goes to the longest due in a second; with more tenants
// than places each place is another tenant's. A second round locks some rows that are not handed out: they are free again after the commit.
func fairly[R any](tenants []string, limit int, position func(tenant string, last *R) place, tenantOf func(*R) string, compare func(a, b *R) int,
	take func(places []place) ([]*R, error),
) (rows []*R, more bool, err error) {
	if len(tenants) == 0 || limit <= 0 {
		return nil, len(tenants) > 0, nil
	}
	if len(tenants) > limit {
		tenants, more = tenants[:limit], true
	}
	share := limit / len(tenants)
	places := make([]place, len(tenants))
	for i, t := range tenants {
		places[i] = position(t, nil)
		places[i].most = int64(share)
	}
	if rows, err = take(places); err != nil {
		return nil, false, err
	}
	places = places[:0]
	for t, own := range byTenant(rows, tenantOf) {
		if len(own) == share {
			p := position(t, own[share-1])
			p.most = int64(limit + 1 - len(rows)) // one more tells whether more was due
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return rows, more, nil
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.tenant, b.tenant) })
	rest, err := take(places)
	if err != nil {
		return nil, false, err
	}
	if room := limit - len(rows); len(rest) > room {
		rest, more = rest[:room], true
	}
	rows = append(rows, rest...)
	slices.SortFunc(rows, compare)
	return rows, more, nil
}

func byTenant[R any](rows []*R, tenantOf func(*R) string) map[string][]*R {
	own := map[string][]*R{}
	for _, row := range rows {
		own[tenantOf(row)] = append(own[tenantOf(row)], row)
	}
	return own
}

// dueTenants are tenants with something due, the longest due first, one more than limit at most.
func (t *transaction) dueTenants(ctx context.Context, sql string, limit int) ([]string, error) {
	var tenants []string
	err := t.query(ctx, sql, func(c *columns) error {
		tenants = append(tenants, c.text())
		return nil
	}, t.now, int64(limit)+1)
	return tenants, err
}

func placeColumns(places []place) (tenants, after, most array) {
	return texts(places, func(p place) string { return p.tenant }), instants(places, func(p place) time.Time { return p.after }),
		bigints(places, func(p place) int64 { return p.most })
}

// DueParked implements [backend.Tx].
func (t *transaction) DueParked(ctx context.Context, limit int) ([]*backend.Wait, bool, error) {
	tenants, err := t.dueTenants(ctx, parkedTenantsSQL, limit)
	if err != nil {
		return nil, false, err
	}
	position := func(tenant string, last *backend.Wait) place {
		if last == nil {
			return place{tenant: tenant, after: startOfTime, number: firstNumber}
		}
		return place{tenant: tenant, after: last.NextAttemptAt, number: last.Number}
	}
	compare := func(a, b *backend.Wait) int {
		return cmp.Or(a.NextAttemptAt.Compare(b.NextAttemptAt), cmp.Compare(a.Number, b.Number))
	}
	return fairly(tenants, limit, position, placeTenant, compare, func(places []place) ([]*backend.Wait, error) {
		tenants, after, most := placeColumns(places)
		return t.waitRows(ctx, parkedDueSQL, t.now, tenants, after, bigints(places, func(p place) int64 { return p.number }), most)
	})
}

// DueWoken implements [backend.Tx].
func (t *transaction) DueWoken(ctx context.Context, limit int) ([]*backend.Woken, bool, error) {
	tenants, err := t.dueTenants(ctx, wokenTenantsSQL, limit)
	if err != nil {
		return nil, false, err
	}
	position := func(tenant string, last *backend.Woken) place {
		if last == nil {
			return place{tenant: tenant, after: startOfTime}
		}
		return place{tenant: tenant, after: last.NextNoticeAt, id: last.WorkflowID}
	}
	compare := func(a, b *backend.Woken) int { return cmp.Or(a.NextNoticeAt.Compare(b.NextNoticeAt), byMark(a, b)) }
	tenantOf := func(m *backend.Woken) string { return m.Tenant }
	return fairly(tenants, limit, position, tenantOf, compare, func(places []place) ([]*backend.Woken, error) {
		tenants, after, most := placeColumns(places)
		var rows []*backend.Woken
		err := t.query(ctx, wokenDueSQL, func(c *columns) error {
			m, err := decodeWoken(c)
			rows = append(rows, m)
			return err
		}, t.now, tenants, after, texts(places, func(p place) string { return p.id }), most)
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
	numbers, left := fairNumbers(due, limit)
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
		if c.absent() { // the slice itself; an empty one ends nowhere
			if !c.absent() {
				if last := c.bigint(); c.count() == unmetSlice {
					next = last - 1 // an event's key rows may have been cut apart
				}
			}
			return nil
		}
		tenant := c.text()
		due[tenant] = append(due[tenant], c.bigint())
		return nil
	}, t.now, before, after, int64(unmetSlice))
	for _, own := range due {
		slices.Sort(own)
	}
	return due, next, err
}

// fairNumbers chooses limit numbers fairly by tenant, rising, and answers the lowest that got no place, 0 for none.
func fairNumbers(due map[string][]int64, limit int) (numbers []int64, left int64) {
	share := max(limit/len(due), 1)
	var rest []int64
	for _, own := range due {
		n := min(share, len(own))
		numbers, rest = append(numbers, own[:n]...), append(rest, own[n:]...)
	}
	slices.Sort(numbers)
	if len(numbers) > limit { // more tenants than places
		numbers, rest = numbers[:limit], append(rest, numbers[limit:]...)
	}
	slices.Sort(rest)
	n := min(limit-len(numbers), len(rest))
	numbers, rest = append(numbers, rest[:n]...), rest[n:]
	slices.Sort(numbers)
	if len(rest) > 0 {
		left = rest[0]
	}
	return numbers, left
}

package sqlite

import (
	"cmp"
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// Dead letters by age. Parameters 1 to 5 are the end of the range, the tenant, the position behind which the page begins, and its limit; of the tenants that
// have any, found like those in due.go, the end, the position and the limit.
const (
	oldLettersSQL = `
SELECT` + eventColumns + barePayload + ` FROM events e INDEXED BY events_died
WHERE e.tenant = ?2` + isLetter + ` AND e.dead_at <= ?1 AND (e.dead_at, e.number) > (?3, ?4)
ORDER BY e.dead_at, e.number LIMIT ?5 + 0`
	oldLetterTenantsSQL = `
WITH RECURSIVE tenants (tenant) AS (
	SELECT ''
	UNION ALL
	SELECT (SELECT e.tenant FROM events e INDEXED BY events_died WHERE e.tenant > tenants.tenant` + isLetter + ` ORDER BY e.tenant LIMIT 1)
	FROM tenants WHERE tenants.tenant IS NOT NULL
), queues AS MATERIALIZED (
	SELECT tenants.tenant, (
		SELECT e.dead_at FROM events e INDEXED BY events_died
		WHERE e.tenant = tenants.tenant` + isLetter + ` AND e.dead_at <= ?1 AND (e.dead_at, e.number) > (?2, ?3)
		ORDER BY e.dead_at, e.number LIMIT 1) AS first
	FROM tenants
)
SELECT tenant FROM queues WHERE first IS NOT NULL ORDER BY first, tenant LIMIT ?4 + 0`
)

// OldLetters implements [backend.Tx]. No row is ever locked by another transaction: there is none.
func (t *transaction) OldLetters(ctx context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	begin, number := start, start
	if after.Set {
		begin, number = after.At.UnixMicro(), after.Number
	}
	tenants, err := t.dueTenants(ctx, oldLetterTenantsSQL, before, begin, number, limit+1)
	if err != nil {
		return nil, false, err
	}
	tenantOf := func(e *backend.Event) string { return e.Tenant }
	compare := func(a, b *backend.Event) int {
		return cmp.Or(a.DeadAt.Compare(b.DeadAt), cmp.Compare(a.Number, b.Number))
	}
	return fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Event]) ([]*backend.Event, error) {
		var rows []*backend.Event
		for _, p := range places {
			at, n := begin, number
			if p.After != nil {
				at, n = p.After.DeadAt.UnixMicro(), p.After.Number
			}
			own, err := t.eventRows(ctx, oldLettersSQL, before, p.Tenant, at, n, p.Most)
			if err != nil {
				return nil, err
			}
			rows = append(rows, own...)
		}
		return rows, nil
	})
}

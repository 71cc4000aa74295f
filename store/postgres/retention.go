package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// OldLetters implements [backend.Tx].
func (t *transaction) OldLetters(ctx context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	begin, number := startOfTime, int64(firstNumber)
	if after.Set {
		begin, number = after.At, after.Number
	}
	var tenants []string
	err := t.query(ctx, oldLetterTenantsSQL, func(c *columns) error {
		tenants = append(tenants, c.Text())
		return nil
	}, before, begin, number, int64(limit)+1)
	if err != nil {
		return nil, false, err
	}
	tenantOf := func(e *backend.Event) string { return e.Tenant }
	compare := func(a, b *backend.Event) int { return cmp.Or(a.DeadAt.Compare(b.DeadAt), byNumber(a, b)) }
	return fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Event]) ([]*backend.Event, error) {
		return t.eventRows(ctx, oldLettersSQL, before,
			texts(places, func(p fair.Place[backend.Event]) string { return p.Tenant }),
			instants(places, func(p fair.Place[backend.Event]) time.Time {
				if p.After == nil {
					return begin
				}
				return p.After.DeadAt
			}),
			bigints(places, func(p fair.Place[backend.Event]) int64 {
				if p.After == nil {
					return number
				}
				return p.After.Number
			}),
			bigints(places, func(p fair.Place[backend.Event]) int64 { return int64(p.Most) }))
	})
}

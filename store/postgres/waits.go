package postgres

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

func waitTenant(k backend.WaitKey) string { return k.Tenant }
func waitRun(k backend.WaitKey) string    { return k.RunID }
func waitEffect(k backend.WaitKey) string { return k.Effect }

// Waits implements [backend.Reader].
func (r *reader) Waits(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Wait, error) {
	found := make(map[backend.WaitKey]*backend.Wait, len(keys))
	err := r.query(ctx, waitsSQL, func(c *columns) error {
		w := row.Wait(c)
		found[w.Key()] = w
		return nil
	}, texts(keys, waitTenant), texts(keys, waitRun), texts(keys, waitEffect))
	return found, err
}

// WaitsOf implements [backend.Reader].
func (r *reader) WaitsOf(ctx context.Context, keys []backend.RunKey) ([]*backend.Wait, error) {
	keys = backend.SortedKeys(keys)
	return r.waitRows(ctx, waitsOfSQL, texts(keys, runTenant), texts(keys, runID))
}

// ParkedOf implements [backend.Reader].
func (r *reader) ParkedOf(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return r.counts(ctx, parkedOfSQL, keys)
}

// OpenWaits implements [backend.Reader].
func (r *reader) OpenWaits(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error) {
	found := make([][]*backend.Wait, len(lookups))
	err := r.query(ctx, openWaitsSQL, func(c *columns) error {
		place := c.Bigint() - 1
		found[place] = append(found[place], row.Wait(c))
		return nil
	}, lookupColumns(lookups)...)
	return found, err
}

// ListWaits implements [backend.Reader].
func (r *reader) ListWaits(ctx context.Context, tenant string, f backend.WaitFilter, after int64, p backend.Span) ([]*backend.Wait, int64, error) {
	page := backend.Listing[backend.Wait, int64]{Limit: p.Limit, At: backend.NumberAt}
	args := filterColumns(tenant, after, p.Limit, f)
	if f.RunID != "" {
		_, err := fill(ctx, r, &page, row.Wait, listRunWaitsSQL, append(args, f.RunID)...)
		return page.Rows, page.Next, err
	}
	_, err := fill(ctx, r, &page, row.Wait, listWaitsSQL, append(args, int64(p.Look))...)
	return page.Rows, page.Next, err
}

// fill adds what a statement says to a page, and reports whether it is done: before each row, whether it passes and whether it is the last to be looked at.
func fill[R, P any](
	ctx context.Context, r *reader, page *backend.Listing[R, P], decode func(c *row.Columns) *R, sql string, args ...any,
) (done bool, err error) {
	err = r.query(ctx, sql, func(c *columns) error {
		passes, last := c.Boolean(), c.Boolean()
		done = page.Add(decode(c), passes, last) // of the last row
		return nil
	}, args...)
	return done, err
}

// filterColumns are the first eight parameters of every list of waits. It reads one row more, which tells whether the page is the last.
func filterColumns(tenant string, after int64, limit int, f backend.WaitFilter) []any {
	var key rendezvous.Key
	if f.Key != nil {
		key = *f.Key
	}
	return []any{tenant, after, int64(limit) + 1, f.Type, string(f.State), f.Key != nil, key.Namespace, key.Value}
}

// ListParked implements [backend.Reader].
func (r *reader) ListParked(
	ctx context.Context, tenant string, f backend.WaitFilter, after backend.ParkedPosition, p backend.Span,
) ([]*backend.Wait, backend.ParkedPosition, error) {
	page := backend.Listing[backend.Wait, backend.ParkedPosition]{Limit: p.Limit, At: backend.ParkedAt}
	start := backend.ParkedPosition{At: startOfTime, Number: firstNumber}
	read := func(sql string, from backend.ParkedPosition) (bool, error) {
		args := filterColumns(tenant, from.Number, p.Limit-len(page.Rows), f)
		return fill(ctx, r, &page, row.Wait, sql, append(args, int64(p.Look), f.RunID, from.At)...)
	}
	if !after.Set || !after.Quarantined {
		from := after
		if !after.Set {
			from = start
		}
		if done, err := read(listParkedSQL, from); done || err != nil {
			return page.Rows, page.Next, err
		}
		after = start
	}
	_, err := read(listStuckSQL, after)
	return page.Rows, page.Next, err
}

// ListQuarantined implements [backend.Reader].
func (r *reader) ListQuarantined(ctx context.Context, tenant string, after backend.ParkedPosition, limit int) ([]*backend.Wait, error) {
	if !after.Set {
		after.At, after.Number = startOfTime, firstNumber
	}
	return r.waitRows(ctx, listQuarantinedSQL, tenant, after.At, after.Number, int64(limit))
}

func (r *reader) waitRows(ctx context.Context, sql string, args ...any) ([]*backend.Wait, error) {
	var rows []*backend.Wait
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Wait(c))
		return nil
	}, args...)
	return rows, err
}

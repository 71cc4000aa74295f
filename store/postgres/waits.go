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
func (r *reader) ListWaits(ctx context.Context, tenant string, f backend.WaitFilter, after int64, limit int) ([]*backend.Wait, error) {
	args := filterColumns(tenant, after, limit, f)
	if f.RunID != "" {
		return r.waitRows(ctx, listRunWaitsSQL, append(args, f.RunID)...)
	}
	return r.waitRows(ctx, listWaitsSQL, args...)
}

// filterColumns are the first eight parameters of every list of waits.
func filterColumns(tenant string, after int64, limit int, f backend.WaitFilter) []any {
	var key rendezvous.Key
	if f.Key != nil {
		key = *f.Key
	}
	return []any{tenant, after, int64(limit), f.Type, string(f.State), f.Key != nil, key.Namespace, key.Value}
}

// ListParked implements [backend.Reader].
func (r *reader) ListParked(
	ctx context.Context, tenant string, f backend.WaitFilter, after backend.ParkedPosition, limit int,
) ([]*backend.Wait, error) {
	start := backend.ParkedPosition{At: startOfTime, Number: firstNumber}
	position := func(sql string, p backend.ParkedPosition, limit int) ([]*backend.Wait, error) {
		return r.waitRows(ctx, sql, append(filterColumns(tenant, p.Number, limit, f), f.RunID, p.At)...)
	}
	var rows []*backend.Wait
	if !after.Set || !after.Quarantined {
		from := after
		if !after.Set {
			from = start
		}
		var err error
		if rows, err = position(listParkedSQL, from, limit); err != nil || len(rows) == limit {
			return rows, err
		}
		after = start
	}
	stuck, err := position(listStuckSQL, after, limit-len(rows))
	return append(rows, stuck...), err
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

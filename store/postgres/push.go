package postgres

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

func pushTenant(k backend.PushKey) string { return k.Tenant }
func pushRun(k backend.PushKey) string    { return k.RunID }
func pushID(k backend.PushKey) string     { return k.ID }

func (r *reader) pushRows(ctx context.Context, sql string, args ...any) ([]*backend.Push, error) {
	var rows []*backend.Push
	err := r.query(ctx, sql, func(c *columns) error {
		rows = append(rows, row.Push(c))
		return nil
	}, args...)
	return rows, err
}

func (r *reader) pushesByKey(ctx context.Context, sql string, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	found := make(map[backend.PushKey]*backend.Push, len(keys))
	if len(keys) == 0 {
		return found, nil
	}
	rows, err := r.pushRows(ctx, sql, texts(keys, pushTenant), texts(keys, pushRun), texts(keys, pushID))
	for _, p := range rows {
		found[p.Key()] = p
	}
	return found, err
}

// Pushes implements [backend.PushReader].
func (r *reader) Pushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return r.pushesByKey(ctx, pushesSQL, keys)
}

// PushesOf implements [backend.PushReader].
func (r *reader) PushesOf(ctx context.Context, runs []backend.RunKey) ([]*backend.Push, error) {
	runs = backend.SortedKeys(runs)
	return r.pushRows(ctx, pushesOfSQL, texts(runs, runTenant), texts(runs, runID))
}

// places are rows with what says where they stand in due order, and with their workflow.
func (r *reader) places(ctx context.Context, sql string, args ...any) ([]*backend.Push, error) {
	var rows []*backend.Push
	err := r.query(ctx, sql, func(c *columns) error {
		p := &backend.Push{Tenant: c.Text(), RunID: c.Text(), ID: c.Text(), WorkflowID: c.Text(), Gate: c.Text(), NextAttemptAt: c.Instant()}
		rows = append(rows, p)
		return c.Corrupt("push registration", "tenant", p.Tenant, "run", p.RunID, "id", p.ID)
	}, args...)
	return rows, err
}

// duePlaces are the places of unleased due rows behind others.
func (r *reader) duePlaces(ctx context.Context, sql string, d backend.PushDue, places []fair.Place[backend.Push]) ([]*backend.Push, error) {
	return r.places(ctx, sql, append([]any{string(d.Namespace), d.At}, pushPlaceColumns(places, func(p *backend.Push) time.Time { return p.NextAttemptAt })...)...)
}

// pushPlaceColumns are tenants, the instants, runs and ids behind which they go on, and how many they get.
func pushPlaceColumns(places []fair.Place[backend.Push], at func(*backend.Push) time.Time) []any {
	tenants, after, most := placeColumns(places, at)
	id := func(of func(*backend.Push) string) array {
		return texts(places, func(p fair.Place[backend.Push]) string {
			if p.After == nil {
				return ""
			}
			return of(p.After)
		})
	}
	return []any{tenants, after, id(func(p *backend.Push) string { return p.RunID }), id(func(p *backend.Push) string { return p.ID }), most}
}

// lapsedPlaces are the places of rows that are due but for a lease that has run out, in due order.
func (r *reader) lapsedPlaces(ctx context.Context, d backend.PushDue) ([]*backend.Push, error) {
	rows, err := r.places(ctx, lapsedPushesSQL, string(d.Namespace), d.At, r.now, d.Tenant, int64(backend.MostLapsedPushes))
	backend.SortDue(rows)
	return rows, err
}

// whole reads the rows of places, in their order.
func (r *reader) whole(ctx context.Context, places []*backend.Push, read func(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error)) (
	[]*backend.Push, error,
) {
	keys := make([]backend.PushKey, len(places))
	for i, p := range places {
		keys[i] = p.Key()
	}
	found, err := read(ctx, keys)
	var rows []*backend.Push
	for _, k := range keys {
		if p := found[k]; p != nil {
			rows = append(rows, p)
		}
	}
	return rows, err
}

// DuePushes implements [backend.PushReader].
func (r *reader) DuePushes(ctx context.Context, d backend.PushDue, limit int) ([]*backend.Push, error) {
	rows, err := r.duePlaces(ctx, duePushesSQL, d, []fair.Place[backend.Push]{{Tenant: d.Tenant, Most: limit}})
	if err != nil {
		return nil, err
	}
	lapsed, err := r.lapsedPlaces(ctx, d)
	if err != nil {
		return nil, err
	}
	return r.whole(ctx, backend.MergeDue(rows, lapsed, limit), r.Pushes)
}

// CountDuePushes implements [backend.PushReader].
func (r *reader) CountDuePushes(ctx context.Context, d backend.PushDue, most int) (int, error) {
	n, _, err := r.countDue(ctx, d, most)
	return n, err
}

func (r *reader) countDue(ctx context.Context, d backend.PushDue, most int) (n int, oldest time.Time, err error) {
	err = r.query(ctx, countDuePushesSQL, func(c *columns) error {
		n, oldest = int(c.Bigint()), c.InstantOrNone()
		return nil
	}, string(d.Namespace), d.At, r.now, d.Tenant, int64(most))
	return n, oldest, err
}

// NextPush implements [backend.PushReader].
func (r *reader) NextPush(ctx context.Context, d backend.PushDue) (next time.Time, err error) {
	err = r.query(ctx, nextPushSQL, func(c *columns) error { next = c.InstantOrNone(); return nil }, string(d.Namespace), d.At, d.Tenant)
	return next, err
}

// ListParkedPushes implements [backend.PushReader].
func (r *reader) ListParkedPushes(
	ctx context.Context, tenant string, f backend.PushFilter, after backend.PushKey, p backend.Span,
) ([]*backend.Push, backend.PushKey, error) {
	page := backend.Listing[backend.Push, backend.PushKey]{Limit: p.Limit, At: (*backend.Push).Key}
	err := r.query(ctx, listParkedPushesSQL, func(c *columns) error {
		passes, last := c.Boolean(), c.Boolean()
		x := row.Push(c)
		page.Add(x, passes || x.Corrupt != nil, last)
		return nil
	}, tenant, string(f.Reason), f.Gate, after.RunID, after.ID, int64(p.Look), int64(p.Limit)+1)
	return page.Rows, page.Next, err
}

// LongestParkedPushes implements [backend.PushReader].
func (r *reader) LongestParkedPushes(
	ctx context.Context, tenant string, f backend.PushFilter, after backend.ParkedPushPosition, p backend.Span,
) ([]*backend.Push, backend.ParkedPushPosition, error) {
	if !after.Set {
		after.At = startOfTime
	}
	page := backend.Listing[backend.Push, backend.ParkedPushPosition]{Limit: p.Limit, At: backend.ParkedPushAt}
	err := r.query(ctx, longestParkedPushesSQL, func(c *columns) error {
		passes, last := c.Boolean(), c.Boolean()
		x, err := row.ParkedPush(c)
		page.Add(x, passes, last)
		return err
	}, tenant, string(f.Reason), f.Gate, after.At, after.Key.RunID, after.Key.ID, int64(p.Look), int64(p.Limit)+1)
	return page.Rows, page.Next, err
}

// pushTenants are the tenants of a namespace that have unleased due rows, and since when.
func (r *reader) pushTenants(ctx context.Context, d backend.PushDue) (map[string]time.Time, error) {
	tenants := map[string]time.Time{}
	err := r.query(ctx, pushTenantsSQL, func(c *columns) error {
		tenant := c.Text()
		tenants[tenant] = c.Instant()
		return nil
	}, string(d.Namespace), d.At)
	return tenants, err
}

// DuePushRuns implements [backend.PushReader].
func (r *reader) DuePushRuns(ctx context.Context, before time.Time, limit int) ([]backend.DuePushRun, error) {
	var due []*backend.Push
	for _, n := range [...]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
		d := backend.PushDue{Namespace: n, At: before}
		lapsed, err := r.lapsedPlaces(ctx, d)
		if err != nil {
			return nil, err
		}
		tenants, err := r.pushTenants(ctx, d)
		if err != nil {
			return nil, err
		}
		due = append(due, lapsed...)
		var places []fair.Place[backend.Push]
		for tenant := range tenants {
			places = append(places, fair.Place[backend.Push]{Tenant: tenant, Most: limit})
		}
		rows, err := r.duePlaces(ctx, duePushesSQL, d, places)
		if err != nil {
			return nil, err
		}
		due = append(due, rows...)
	}
	return backend.RunsOfDue(due, limit), nil
}

// PushLog implements [backend.PushReader].
func (r *reader) PushLog(ctx context.Context, key backend.PushKey, incarnation, before int64, limit int) ([]*backend.PushLogEntry, error) {
	if before == 0 {
		before = rendezvous.MaxSeq
	}
	return r.logRows(ctx, pushLogSQL, key.Tenant, key.RunID, key.ID, incarnation, before, int64(limit))
}

func (r *reader) logRows(ctx context.Context, sql string, args ...any) ([]*backend.PushLogEntry, error) {
	var rows []*backend.PushLogEntry
	err := r.query(ctx, sql, func(c *columns) error {
		e, err := row.PushLogEntry(c)
		rows = append(rows, e)
		return err
	}, args...)
	return rows, err
}

// PushLogged implements [backend.PushReader].
func (r *reader) PushLogged(ctx context.Context, key backend.PushKey, incarnation int64, entryID string) (*backend.PushLogEntry, error) {
	rows, err := r.logRows(ctx, pushLoggedSQL, key.Tenant, key.RunID, key.ID, incarnation, entryID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// pushDepth counts due and parked registrations, up to most, and tells since when the longest due is.
func (r *reader) pushDepth(ctx context.Context, most int, d *backend.Depths) error {
	for _, n := range [...]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
		due, oldest, err := r.countDue(ctx, backend.PushDue{Namespace: n, At: r.now}, most)
		if err != nil {
			return err
		}
		d.DuePushes = min(d.DuePushes+due, most)
		if !oldest.IsZero() && (d.OldestDuePush.IsZero() || oldest.Before(d.OldestDuePush)) {
			d.OldestDuePush = oldest
		}
	}
	return r.query(ctx, pushDepthsSQL, func(c *columns) error {
		d.FailingPushes, d.ParkedPushes = int(c.Bigint()), int(c.Bigint())
		return nil
	}, int64(most))
}

// scanPushLog is a page of the walk over all attempt logs.
func (r *reader) scanPushLog(ctx context.Context, after backend.Position, limit, maxBytes int) (*backend.Page, error) {
	rows, err := r.logRows(ctx, scanPushLogSQL, after.Tenant, after.ID, after.Part, after.Incarnation, after.Number, int64(max(limit, 0)))
	p := &backend.Page{}
	for _, e := range rows {
		if p.AddPushLog(e); p.Bytes >= maxBytes {
			break
		}
	}
	return p, err
}

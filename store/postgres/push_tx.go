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

// LockPushes implements [backend.PushTx].
func (t *transaction) LockPushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return t.pushesByKey(ctx, lockPushesSQL, backend.SortedKeys(keys))
}

// tryLockPushes locks those rows that nobody has locked.
func (t *transaction) tryLockPushes(ctx context.Context, keys []backend.PushKey) (map[backend.PushKey]*backend.Push, error) {
	return t.pushesByKey(ctx, tryLockPushesSQL, backend.SortedKeys(keys))
}

// PushesByToken implements [backend.PushTx]. Rows are locked in the order of their keys, as settlements lock them (R7), and looked at again.
func (t *transaction) PushesByToken(ctx context.Context, tokens []int64) ([]*backend.Push, error) {
	tokens = slices.Compact(slices.Sorted(slices.Values(tokens)))
	var keys []backend.PushKey
	err := t.query(ctx, pushesByTokenSQL, func(c *columns) error {
		keys = append(keys, backend.PushKey{Tenant: c.Text(), RunID: c.Text(), ID: c.Text()})
		return nil
	}, bigints(tokens, func(n int64) int64 { return n }))
	if err != nil {
		return nil, err
	}
	found, err := t.LockPushes(ctx, keys)
	var rows []*backend.Push
	for _, p := range found {
		if _, asked := slices.BinarySearch(tokens, p.LeaseToken); asked && p.LeaseToken != 0 {
			rows = append(rows, p)
		}
	}
	return rows, err
}

// PushesOfClaim implements [backend.PushTx].
func (t *transaction) PushesOfClaim(ctx context.Context, owner, request string) ([]*backend.Push, error) {
	return t.pushRows(ctx, pushesOfClaimSQL, owner, request)
}

// TakeDuePushes implements [backend.PushTx]. Rows are locked as they are looked at, so that claimers at once go on behind each other; those of a look at many
// gates, or whose lease has run out, only when they are chosen.
func (t *transaction) TakeDuePushes(ctx context.Context, c backend.PushClaim) (backend.PushesTaken, error) {
	if c.Only != nil {
		rows, err := t.PushesOf(ctx, c.Only)
		if err != nil {
			return backend.PushesTaken{}, err
		}
		chosen, err := fair.ChoosePushes(c, rows, t.now)
		return t.lockDue(ctx, c, chosen, err)
	}
	tenants, err := t.pushTenants(ctx, c.PushDue)
	if err != nil {
		return backend.PushesTaken{}, err
	}
	lapsed, err := t.lapsedPlaces(ctx, c.PushDue)
	if err != nil {
		return backend.PushesTaken{}, err
	}
	chosen, err := fair.TakePushes(c, fair.DuePushes{
		Since: tenants, Lapsed: lapsed,
		Next: func(places []fair.Place[backend.Push]) ([]*backend.Push, error) {
			return t.duePlaces(ctx, takeDuePushesSQL, c.PushDue, places)
		},
		Heads: func(tenant string, most int) ([]*backend.Push, error) {
			return t.places(ctx, gatePushesSQL, string(c.Namespace), c.At, tenant, backend.MostPushGates, int64(most))
		},
	})
	return t.lockDue(ctx, c, chosen, err)
}

// lockDue locks what was chosen, as far as nobody else has, and judges it again. Where some fall out, what is left may be of any gate.
func (t *transaction) lockDue(ctx context.Context, c backend.PushClaim, chosen backend.PushesTaken, err error) (backend.PushesTaken, error) {
	if err != nil || len(chosen.Rows) == 0 {
		return chosen, err
	}
	rows, err := t.whole(ctx, chosen.Rows, t.tryLockPushes)
	rows = slices.DeleteFunc(rows, func(p *backend.Push) bool { return !p.Due(c.At, t.now) })
	if len(rows) < len(chosen.Rows) {
		chosen.Crowded = nil
	}
	chosen.Rows = rows
	return chosen, err
}

// TakeAgedPushes implements [backend.PushTx].
func (t *transaction) TakeAgedPushes(ctx context.Context, before time.Time, limit int) ([]*backend.Push, bool, error) {
	var tenants []string
	err := t.query(ctx, agedPushTenantsSQL, func(c *columns) error { tenants = append(tenants, c.Text()); return nil }, before, t.now, int64(limit)+1)
	if err != nil {
		return nil, false, err
	}
	since := func(p *backend.Push) time.Time { return p.FailingSince }
	compare := func(a, b *backend.Push) int { return cmp.Or(since(a).Compare(since(b)), a.Key().Compare(b.Key())) }
	return fair.Rows(tenants, limit, backend.TenantOfPush, compare, func(places []fair.Place[backend.Push]) ([]*backend.Push, error) {
		return t.pushRows(ctx, agedPushesSQL, append([]any{before, t.now}, pushPlaceColumns(places, since)...)...)
	})
}

func (t *transaction) logKeys(ctx context.Context, sql string, args ...any) ([]backend.PushLogKey, error) {
	var keys []backend.PushLogKey
	err := t.query(ctx, sql, func(c *columns) error {
		keys = append(keys, row.PushLogKey(c))
		return nil
	}, args...)
	return keys, err
}

// OldPushLog implements [backend.PushTx].
func (t *transaction) OldPushLog(ctx context.Context, before time.Time, limit int) ([]backend.PushLogKey, error) {
	return t.logKeys(ctx, oldPushLogSQL, before, int64(limit))
}

// LongPushLogs implements [backend.PushTx].
func (t *transaction) LongPushLogs(ctx context.Context, keep, limit int) ([]*backend.Push, error) {
	return t.pushRows(ctx, longPushLogsSQL, keep, int64(limit))
}

// OldestPushLog implements [backend.PushTx].
func (t *transaction) OldestPushLog(ctx context.Context, key backend.PushKey, incarnation int64, n int) ([]backend.PushLogKey, error) {
	return t.logKeys(ctx, oldestPushLogSQL, key.Tenant, key.RunID, key.ID, incarnation, int64(n))
}

// GonePushes implements [backend.PushTx].
func (t *transaction) GonePushes(ctx context.Context, limit int) ([]*backend.Push, error) {
	return t.pushRows(ctx, gonePushesSQL, t.now, int64(limit))
}

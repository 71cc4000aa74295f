package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

func byPush(a, b *backend.Push) int { return a.Key().Compare(b.Key()) }

// pushes are the last rows that are locked (R7).
func (w *writes) pushes(c *backend.Changes) {
	if len(c.Wakes) > 0 {
		*w = append(*w, write{
			sql: wakePushesSQL,
			args: []any{
				texts(c.Wakes, func(x *backend.PushWake) string { return x.Run.Tenant }),
				texts(c.Wakes, func(x *backend.PushWake) string { return x.Run.ID }),
				bigints(c.Wakes, func(x *backend.PushWake) int64 { return int64(x.Kinds) }),
				instants(c.Wakes, func(x *backend.PushWake) time.Time { return x.Now }),
			},
			read: func(rows pgx.Rows) error { return woken(rows, c.Wakes) },
		})
	}
	gone := backend.SortedKeys(c.GonePushes)
	w.add(deletePushesSQL, len(gone), true, texts(gone, pushTenant), texts(gone, pushRun), texts(gone, pushID))
	fresh := sorted(c.NewPushes, byPush)
	w.add(insertPushesSQL, len(fresh), true, append(append(append(pushKeyColumns(fresh), pushColumns(fresh)...),
		texts(fresh, func(p *backend.Push) string { return p.WorkflowID }),
		texts(fresh, func(p *backend.Push) string { return string(p.Namespace) }),
	), settingsColumns(fresh)...)...)
	var sound, damaged, resettled []*backend.Push
	for _, p := range sorted(c.Pushes, byPush) {
		if p.Corrupt != nil {
			damaged = append(damaged, p)
			continue
		}
		if sound = append(sound, p); p.Resettled {
			resettled = append(resettled, p)
		}
	}
	w.add(updatePushesSQL, len(sound), true, append(pushKeyColumns(sound), pushColumns(sound)...)...)
	w.add(resettlePushesSQL, len(resettled), true, append(pushKeyColumns(resettled), settingsColumns(resettled)...)...)
	w.add(updateCorruptPushesSQL, len(damaged), false, append(pushKeyColumns(damaged),
		instants(damaged, func(p *backend.Push) time.Time { return p.NextAttemptAt }),
		bigints(damaged, func(p *backend.Push) int64 { return p.LeaseToken }),
		texts(damaged, func(p *backend.Push) string { return p.LeaseOwner }),
		texts(damaged, func(p *backend.Push) string { return p.LeaseRequest }),
		instants(damaged, func(p *backend.Push) time.Time { return p.LeaseUntil }),
		booleans(damaged, func(p *backend.Push) bool { return p.LeaseRevoked }),
	)...)
	w.pushLog(c)
}

// woken notes which of the wakes found an idle registration.
func woken(rows pgx.Rows, wakes []*backend.PushWake) error {
	for rows.Next() {
		var place int64
		if err := rows.Scan(&place); err != nil {
			return err
		}
		wakes[place-1].Woke = true
	}
	return rows.Err()
}

func pushKeyColumns(rows []*backend.Push) []any {
	return []any{
		texts(rows, func(p *backend.Push) string { return p.Tenant }),
		texts(rows, func(p *backend.Push) string { return p.RunID }),
		texts(rows, func(p *backend.Push) string { return p.ID }),
	}
}

// pushColumns are the columns that nearly every verb changes, in the order of both statements.
func pushColumns(rows []*backend.Push) []any {
	return []any{
		bigints(rows, func(p *backend.Push) int64 { return p.Incarnation }),
		bigints(rows, func(p *backend.Push) int64 { return p.Version }),
		instants(rows, func(p *backend.Push) time.Time { return p.CreatedAt }),
		bigints(rows, func(p *backend.Push) int64 { return p.NextSeq }),
		integers(rows, func(p *backend.Push) int { return p.NextIndex }),
		texts(rows, func(p *backend.Push) string { return string(p.State) }),
		instants(rows, func(p *backend.Push) time.Time { return p.NextAttemptAt }),
		integers(rows, func(p *backend.Push) int { return p.Attempts }),
		instants(rows, func(p *backend.Push) time.Time { return p.FailingSince }),
		integers(rows, func(p *backend.Push) int { return p.Rejects }),
		bigints(rows, func(p *backend.Push) int64 { return p.AttemptNo }),
		integers(rows, func(p *backend.Push) int { return p.Lost }),
		texts(rows, func(p *backend.Push) string { return p.Error }),
		instants(rows, func(p *backend.Push) time.Time { return p.ParkedAt }),
		texts(rows, func(p *backend.Push) string { return string(p.Reason) }),
		bigints(rows, func(p *backend.Push) int64 { return p.LeaseToken }),
		texts(rows, func(p *backend.Push) string { return p.LeaseOwner }),
		texts(rows, func(p *backend.Push) string { return p.LeaseRequest }),
		instants(rows, func(p *backend.Push) time.Time { return p.LeaseUntil }),
		booleans(rows, func(p *backend.Push) bool { return p.LeaseRevoked }),
		bigints(rows, func(p *backend.Push) int64 { return p.EndedToken }),
		texts(rows, func(p *backend.Push) string { return p.EndedAs }),
		texts(rows, func(p *backend.Push) string { return p.SettleID }),
		blobs(rows, func(p *backend.Push) []byte { return p.SettleOutcome }),
		texts(rows, func(p *backend.Push) string { return p.UnparkOp }),
		bigints(rows, func(p *backend.Push) int64 { return p.Skipped }),
		integers(rows, func(p *backend.Push) int { return p.Logged }),
		blobs(rows, func(p *backend.Push) []byte { return backend.EncodePushAttempt(p.Last) }),
	}
}

// settingsColumns are the columns of what callers set.
func settingsColumns(rows []*backend.Push) []any {
	return []any{
		texts(rows, func(p *backend.Push) string { return p.Gate }),
		bigints(rows, func(p *backend.Push) int64 { return int64(p.Takes) }),
		blobs(rows, func(p *backend.Push) []byte { return backend.EncodePushSettings(p.Settings) }),
	}
}

func (w *writes) pushLog(c *backend.Changes) {
	gone := backend.SortedKeys(c.GonePushLog)
	w.add(deletePushLogSQL, len(gone), false,
		texts(gone, func(k backend.PushLogKey) string { return k.Tenant }),
		texts(gone, func(k backend.PushLogKey) string { return k.RunID }),
		texts(gone, func(k backend.PushLogKey) string { return k.ID }),
		bigints(gone, func(k backend.PushLogKey) int64 { return k.Incarnation }),
		bigints(gone, func(k backend.PushLogKey) int64 { return k.No }),
	)
	rows := c.PushLog
	w.add(insertPushLogSQL, len(rows), true,
		texts(rows, func(e *backend.PushLogEntry) string { return e.Tenant }),
		texts(rows, func(e *backend.PushLogEntry) string { return e.RunID }),
		texts(rows, func(e *backend.PushLogEntry) string { return e.ID }),
		bigints(rows, func(e *backend.PushLogEntry) int64 { return e.Incarnation }),
		bigints(rows, func(e *backend.PushLogEntry) int64 { return e.No }),
		texts(rows, func(e *backend.PushLogEntry) string { return e.EntryID }),
		instants(rows, func(e *backend.PushLogEntry) time.Time { return e.At }),
		booleans(rows, func(e *backend.PushLogEntry) bool { return e.Kept }),
		blobs(rows, func(e *backend.PushLogEntry) []byte { return backend.EncodePushAttempt(&e.Attempt) }),
	)
}

package postgres

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

func byTimer(a, b *backend.Timer) int { return a.Key().Compare(b.Key()) }

func byShard(a, b *backend.ShardLease) int {
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Shard, b.Shard))
}

func byMember(a, b *backend.Member) int { return a.Key().Compare(b.Key()) }

// timerOf is the timer that a record is about, "" for none.
func timerOf(r *backend.Record) string {
	switch r.Kind {
	case rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.TimerCancelled:
		var d struct {
			TimerID string `json:"timer_id"`
		}
		if json.Unmarshal(r.Data, &d) == nil {
			return d.TimerID
		}
	}
	return ""
}

func (w *writes) timers(c *backend.Changes) {
	gone := backend.SortedKeys(c.GoneTimers)
	w.add(deleteTimersSQL, len(gone), false, texts(gone, timerTenant), texts(gone, timerFlow), texts(gone, timerID))
	var sound, damaged []*backend.Timer
	for _, t := range sorted(c.Timers, byTimer) {
		if t.Corrupt == nil {
			sound = append(sound, t)
		} else {
			damaged = append(damaged, t)
		}
	}
	w.add(writeTimersSQL, len(sound), true, append(timerKeyColumns(sound),
		texts(sound, func(t *backend.Timer) string { return t.RunID }),
		texts(sound, func(t *backend.Timer) string { return string(t.Class) }),
		texts(sound, func(t *backend.Timer) string { return t.Effect }),
		integers(sound, func(t *backend.Timer) int { return t.Shard }),
		instants(sound, func(t *backend.Timer) time.Time { return t.FireAt }),
		bigints(sound, func(t *backend.Timer) int64 { return t.ArmedSeq }),
		instants(sound, func(t *backend.Timer) time.Time { return t.DueAt }),
		instants(sound, func(t *backend.Timer) time.Time { return t.ReadyAt }),
		integers(sound, func(t *backend.Timer) int { return t.Attempts }),
		texts(sound, func(t *backend.Timer) string { return t.LastError }),
		integers(sound, func(t *backend.Timer) int { return t.Parks }),
		bigints(sound, func(t *backend.Timer) int64 { return t.Token }),
		texts(sound, func(t *backend.Timer) string { return t.Holder }),
		bigints(sound, func(t *backend.Timer) int64 { return t.HoldEpoch }),
		instants(sound, func(t *backend.Timer) time.Time { return t.HeldUntil }),
		texts(sound, func(t *backend.Timer) string { return t.Trace.Parent }),
		texts(sound, func(t *backend.Timer) string { return t.Trace.State }),
	)...)
	w.add(updateCorruptTimersSQL, len(damaged), false, append(holdColumns(damaged),
		instants(damaged, func(t *backend.Timer) time.Time { return t.DueAt }),
		integers(damaged, func(t *backend.Timer) int { return t.Attempts }),
		texts(damaged, func(t *backend.Timer) string { return t.LastError }),
		integers(damaged, func(t *backend.Timer) int { return t.Parks }),
	)...)
	held := sorted(c.HeldTimers, byTimer)
	w.add(holdTimersSQL, len(held), true, holdColumns(held)...)
}

func timerKeyColumns(rows []*backend.Timer) []any {
	return []any{
		texts(rows, func(t *backend.Timer) string { return t.Tenant }),
		texts(rows, func(t *backend.Timer) string { return t.WorkflowID }),
		texts(rows, func(t *backend.Timer) string { return t.TimerID }),
	}
}

// holdColumns are the keys of timers, their holds, and when they can be taken by these.
func holdColumns(rows []*backend.Timer) []any {
	return append(
		timerKeyColumns(rows),
		bigints(rows, func(t *backend.Timer) int64 { return t.Token }),
		texts(rows, func(t *backend.Timer) string { return t.Holder }),
		bigints(rows, func(t *backend.Timer) int64 { return t.HoldEpoch }),
		instants(rows, func(t *backend.Timer) time.Time { return t.HeldUntil }),
		instants(rows, func(t *backend.Timer) time.Time { return t.ReadyAt }),
	)
}

func (w *writes) shards(c *backend.Changes) {
	news, leases := sorted(c.NewShardLeases, byShard), sorted(c.ShardLeases, byShard)
	w.add(insertShardLeasesSQL, len(news), true, leaseColumns(news)...)
	w.add(updateShardLeasesSQL, len(leases), true, leaseColumns(leases)...)
	gone := backend.SortedKeys(c.GoneMembers)
	w.add(deleteMembersSQL, len(gone), false,
		texts(gone, func(k backend.MemberKey) string { return k.Pool }),
		texts(gone, func(k backend.MemberKey) string { return k.Incarnation }),
	)
	members := sorted(c.Members, byMember)
	w.add(writeMembersSQL, len(members), true,
		texts(members, func(m *backend.Member) string { return m.Pool }),
		texts(members, func(m *backend.Member) string { return m.Incarnation }),
		texts(members, func(m *backend.Member) string { return m.Address }),
		instants(members, func(m *backend.Member) time.Time { return m.StartedAt }),
		booleans(members, func(m *backend.Member) bool { return m.Draining }),
		instants(members, func(m *backend.Member) time.Time { return m.ExpiresAt }),
	)
}

func leaseColumns(rows []*backend.ShardLease) []any {
	return []any{
		texts(rows, func(l *backend.ShardLease) string { return l.Pool }),
		integers(rows, func(l *backend.ShardLease) int { return l.Shard }),
		texts(rows, func(l *backend.ShardLease) string { return l.Owner }),
		bigints(rows, func(l *backend.ShardLease) int64 { return l.Epoch }),
		instants(rows, func(l *backend.ShardLease) time.Time { return l.ExpiresAt }),
		booleans(rows, func(l *backend.ShardLease) bool { return l.Serving }),
		texts(rows, func(l *backend.ShardLease) string { return l.Address }),
	}
}

package sqlite

import "github.com/rendezvous-events/rendezvous/store/backend"

const (
	putTimerSQL = `
INSERT INTO timers (
	run_id, class, effect, shard, fire_at, armed_seq, due_at, ready_at, attempts, last_error, parks, token, holder, hold_epoch, held_until, trace_parent,
	trace_state, tenant, workflow_id, timer_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, workflow_id, timer_id) DO UPDATE SET
	run_id = excluded.run_id, class = excluded.class, effect = excluded.effect, shard = excluded.shard, fire_at = excluded.fire_at,
	armed_seq = excluded.armed_seq, due_at = excluded.due_at, ready_at = excluded.ready_at, attempts = excluded.attempts, last_error = excluded.last_error,
	parks = excluded.parks, token = excluded.token, holder = excluded.holder, hold_epoch = excluded.hold_epoch, held_until = excluded.held_until,
	trace_parent = excluded.trace_parent, trace_state = excluded.trace_state`
	updateCorruptTimerSQL = `
UPDATE timers SET due_at = ?, attempts = ?, last_error = ?, parks = ?, ready_at = ?, token = ?, holder = ?, hold_epoch = ?, held_until = ?
WHERE tenant = ? AND workflow_id = ? AND timer_id = ?`
	holdTimerSQL = `
UPDATE timers SET ready_at = ?, token = ?, holder = ?, hold_epoch = ?, held_until = ? WHERE tenant = ? AND workflow_id = ? AND timer_id = ?`
	deleteTimerSQL = `DELETE FROM timers WHERE tenant = ? AND workflow_id = ? AND timer_id = ?`

	insertShardLeaseSQL = `INSERT INTO shard_leases (owner, epoch, expires_at, serving, address, pool, shard) VALUES (?, ?, ?, ?, ?, ?, ?)`
	updateShardLeaseSQL = `UPDATE shard_leases SET owner = ?, epoch = ?, expires_at = ?, serving = ?, address = ? WHERE pool = ? AND shard = ?`
	putMemberSQL        = `
INSERT INTO members (pool, incarnation, address, started_at, draining, expires_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (pool, incarnation) DO UPDATE SET
	address = excluded.address, started_at = excluded.started_at, draining = excluded.draining, expires_at = excluded.expires_at`
	deleteMemberSQL = `DELETE FROM members WHERE pool = ? AND incarnation = ?`
)

func (w *writer) timers(c *backend.Changes) {
	for _, k := range c.GoneTimers {
		w.any(deleteTimerSQL, k.Tenant, k.WorkflowID, k.TimerID)
	}
	for _, x := range c.Timers {
		if x.Corrupt != nil {
			args := append([]any{x.DueAt, x.Attempts, x.LastError, x.Parks}, holdArgs(x)...)
			w.any(updateCorruptTimerSQL, append(args, x.Tenant, x.WorkflowID, x.TimerID)...)
			continue
		}
		w.any(putTimerSQL, x.RunID, string(x.Class), x.Effect, x.Shard, x.FireAt, x.ArmedSeq, x.DueAt, x.ReadyAt, x.Attempts, x.LastError, x.Parks, x.Token,
			x.Holder, x.HoldEpoch, x.HeldUntil, x.Trace.Parent, x.Trace.State, x.Tenant, x.WorkflowID, x.TimerID)
	}
	for _, x := range c.HeldTimers {
		w.any(holdTimerSQL, append(holdArgs(x), x.Tenant, x.WorkflowID, x.TimerID)...)
	}
}

// holdArgs are the columns of a hold.
func holdArgs(x *backend.Timer) []any {
	return []any{x.ReadyAt, x.Token, x.Holder, x.HoldEpoch, x.HeldUntil}
}

func (w *writer) shards(c *backend.Changes) {
	for _, l := range c.NewShardLeases {
		w.one(insertShardLeaseSQL, l.Owner, l.Epoch, l.ExpiresAt, l.Serving, l.Address, l.Pool, l.Shard)
	}
	for _, l := range c.ShardLeases {
		w.one(updateShardLeaseSQL, l.Owner, l.Epoch, l.ExpiresAt, l.Serving, l.Address, l.Pool, l.Shard)
	}
	for _, k := range c.GoneMembers {
		w.any(deleteMemberSQL, k.Pool, k.Incarnation)
	}
	for _, m := range c.Members {
		w.any(putMemberSQL, m.Pool, m.Incarnation, m.Address, m.StartedAt, m.Draining, m.ExpiresAt)
	}
}

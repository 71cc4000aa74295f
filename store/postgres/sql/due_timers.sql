-- Timers of some shards that can be taken now, whichever they are.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
FROM unnest($2::integer[]) AS s (shard)
CROSS JOIN LATERAL (
    (SELECT t.ready_at AS since, t.* FROM timers t WHERE t.shard = s.shard AND t.ready_at <= $1 ORDER BY t.ready_at LIMIT $3)
    UNION ALL
    (
        -- Held by an owner that was deposed since.
        SELECT t.due_at AS since, t.*
        FROM (SELECT * FROM shard_leases l WHERE l.pool = 'timer' AND l.shard = s.shard OFFSET 0) l
        CROSS JOIN LATERAL (SELECT * FROM timers t WHERE - t.shard = - s.shard AND t.held_until IS NOT NULL AND t.hold_epoch < l.epoch OFFSET 0) t
        WHERE t.ready_at > $1 AND t.due_at <= $1
        LIMIT $3
    )
) t
-- In no order: so that shards behind are not looked at once there is enough.
LIMIT $3

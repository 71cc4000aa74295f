-- A page of one tenant's timers of some shards that fire until an instant: one range for each shard.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
FROM unnest($2::integer[]) AS s (shard)
CROSS JOIN LATERAL (
    SELECT * FROM timers t
    WHERE t.shard + 0 = s.shard AND t.tenant COLLATE "POSIX" = $7 AND t.fire_at <= $1
        AND (t.fire_at, t.workflow_id, t.timer_id) > ($3::timestamptz, $4::text, $5::text)
    ORDER BY t.fire_at, t.workflow_id, t.timer_id
    LIMIT $6
) t
ORDER BY t.fire_at, t.workflow_id, t.timer_id
LIMIT $6

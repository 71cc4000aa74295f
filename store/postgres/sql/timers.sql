-- Timers by key.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant, workflow_id, timer_id)
CROSS JOIN LATERAL (
    SELECT * FROM timers t WHERE t.tenant = k.tenant AND t.workflow_id = k.workflow_id AND t.timer_id = k.timer_id OFFSET 0
) t

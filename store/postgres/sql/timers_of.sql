-- All timers of workflows that fire until an instant; a run has some 2,000 at most.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
FROM unnest($1::text[], $2::text[]) AS k (tenant, workflow_id)
-- Apart, so that no plan walks the shard's timers in their order to find those of one workflow.
CROSS JOIN LATERAL (SELECT * FROM timers t WHERE t.tenant = k.tenant AND t.workflow_id = k.workflow_id OFFSET 0) t
WHERE t.fire_at <= $3
ORDER BY t.tenant, t.workflow_id, t.fire_at, t.armed_seq, t.timer_id

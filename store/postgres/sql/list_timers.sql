-- A page of one workflow's timers by (fire_at, timer id); a run has some 2,000 at most.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
-- Apart, so that no plan walks the shard's timers in their order to find those of one workflow.
FROM (SELECT * FROM timers WHERE tenant = $1 AND workflow_id = $2 OFFSET 0) t
WHERE (t.fire_at, t.timer_id) > ($4::timestamptz, $5::text) AND ($3 = '' OR t.class = $3)
ORDER BY t.fire_at, t.timer_id
LIMIT $6

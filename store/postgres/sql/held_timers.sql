-- Timers by the token of their hold, locked and read as they are under the lock.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
FROM timers t
-- The predicate of the index is spelt out: the planner cannot know that no token asked for is 0.
WHERE t.token = ANY ($1::bigint[]) AND t.token <> 0
-- Whoever holds a timer gives it back at once (TM-31): it waits for those who look at the row, in the order of keys (R7).
ORDER BY t.tenant COLLATE "POSIX", t.workflow_id COLLATE "POSIX", t.timer_id COLLATE "POSIX"
FOR NO KEY UPDATE

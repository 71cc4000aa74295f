-- Timers by the token of their hold, locked likewise, in the order of tokens.
SELECT
    t.tenant, t.workflow_id, t.timer_id, t.run_id, t.class, t.effect, t.shard, t.fire_at, t.armed_seq, t.due_at, t.ready_at, t.attempts, t.last_error, t.parks,
    t.token, t.holder, t.hold_epoch, t.held_until, t.trace_parent, t.trace_state
FROM unnest($1::bigint[]) AS k (token)
CROSS JOIN LATERAL (
    -- The predicate of the index is spelt out: the planner cannot know that no token asked for is 0.
    SELECT * FROM timers t WHERE t.token = k.token AND t.token <> 0 FOR NO KEY UPDATE SKIP LOCKED
) t

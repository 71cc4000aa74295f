-- Waits by key.
SELECT
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at,
    w.last_error, w.take, w.take_until, w.take_settled, w.quarantined_at
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant, run_id, effect)
CROSS JOIN LATERAL (SELECT * FROM waits w WHERE w.tenant = k.tenant AND w.run_id = k.run_id AND w.effect = k.effect OFFSET 0) w

-- A page of quarantined waits by (quarantined_at, number).
SELECT
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at,
    w.last_error, w.take, w.take_until, w.take_settled, w.quarantined_at
FROM waits w
WHERE w.tenant COLLATE "POSIX" = $1 AND w.quarantined_at IS NOT NULL AND (w.quarantined_at, w.number) > ($2::timestamptz, $3::bigint)
ORDER BY w.quarantined_at, w.number
LIMIT $4

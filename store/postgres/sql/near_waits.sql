-- Open waits under each key, whatever their type.
SELECT k.place,
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at,
    w.last_error, w.take, w.take_until, w.take_settled, w.quarantined_at
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS k (namespace, value, place)
CROSS JOIN LATERAL (
    SELECT i.type, i.number
    FROM wait_keys i
    WHERE i.tenant = $1 AND i.namespace = k.namespace AND i.value = k.value
    ORDER BY i.type, i.number
    LIMIT $4
) i
CROSS JOIN LATERAL (SELECT * FROM waits w WHERE w.tenant COLLATE "POSIX" = $1 AND w.number = i.number OFFSET 0) w
ORDER BY k.place, i.type, i.number

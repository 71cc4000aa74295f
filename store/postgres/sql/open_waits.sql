-- The match index from the side of events: open waits under each key, the lowest numbers first.
SELECT k.place,
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at,
    w.last_error, w.take, w.take_until, w.take_settled, w.quarantined_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
    WITH ORDINALITY AS k (tenant, namespace, value, type, after, most, place)
CROSS JOIN LATERAL (
    SELECT i.number
    FROM wait_keys i
    WHERE i.tenant = k.tenant AND i.namespace = k.namespace AND i.value = k.value AND i.type = k.type AND i.number > k.after
    ORDER BY i.number
    LIMIT k.most
) i
CROSS JOIN LATERAL (SELECT * FROM waits w WHERE w.tenant COLLATE "POSIX" = k.tenant AND w.number = i.number OFFSET 0) w
ORDER BY k.place, i.number

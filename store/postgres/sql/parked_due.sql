-- Parked waits to work now, for each tenant its own number of them behind its own position, locked; rows locked by others are passed over.
SELECT
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at,
    w.last_error, w.take, w.take_until, w.take_settled, w.quarantined_at
FROM unnest($2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[]) AS k (tenant, after, number, most)
CROSS JOIN LATERAL (
    SELECT w.*
    FROM waits w CROSS JOIN LATERAL (SELECT * FROM workflows f WHERE f.tenant = w.tenant AND f.workflow_id = w.workflow_id OFFSET 0) f
    WHERE w.tenant COLLATE "POSIX" = k.tenant AND (w.next_attempt_at, w.number) > (k.after, k.number)
        AND w.held_number IS NOT NULL AND w.quarantined_at IS NULL AND w.next_attempt_at <= $1
        AND ($6::integer[] IS NULL OR w.shard = ANY ($6))
        -- In nobody's hands.
        AND (w.take_settled OR w.take_until IS NULL OR w.take_until <= $1)
        -- Its run is the current one, unsealed and under no live lease.
        AND f.run_id = w.run_id AND f.closed_at IS NULL AND (f.lease_owner = '' OR f.lease_expires <= $1)
    ORDER BY w.next_attempt_at, w.number
    LIMIT k.most
    FOR NO KEY UPDATE OF w SKIP LOCKED
) w
ORDER BY w.next_attempt_at, w.number

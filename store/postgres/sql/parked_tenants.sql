-- Tenants that have parked waits to work now, the longest due first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of waits.
    (SELECT w.tenant FROM waits w WHERE w.held_number IS NOT NULL AND w.quarantined_at IS NULL ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    UNION ALL
    SELECT (
        SELECT w.tenant FROM waits w
        WHERE w.held_number IS NOT NULL AND w.quarantined_at IS NULL AND w.tenant COLLATE "POSIX" > t.tenant
        ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT t.tenant
FROM t
-- What cannot be worked now is passed over here already: a tenant without anything to work takes no share (S1, S3).
CROSS JOIN LATERAL (
    SELECT w.next_attempt_at, w.number
    FROM waits w CROSS JOIN LATERAL (SELECT * FROM workflows f WHERE f.tenant = w.tenant AND f.workflow_id = w.workflow_id OFFSET 0) f
    WHERE w.tenant COLLATE "POSIX" = t.tenant AND w.held_number IS NOT NULL AND w.quarantined_at IS NULL AND w.next_attempt_at <= $1
        AND ($3::integer[] IS NULL OR w.shard = ANY ($3))
        -- In nobody's hands.
        AND (w.take_settled OR w.take_until IS NULL OR w.take_until <= $1)
        -- Its run is the current one, unsealed and under no live lease.
        AND f.run_id = w.run_id AND f.closed_at IS NULL AND (f.lease_owner = '' OR f.lease_expires <= $1)
    ORDER BY w.next_attempt_at, w.number
    LIMIT 1
) first
ORDER BY first.next_attempt_at, first.number
LIMIT $2

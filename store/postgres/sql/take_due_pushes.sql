-- Likewise, locked; rows locked by others are passed over.
SELECT p.tenant, p.run_id, p.id, p.workflow_id, p.gate, p.next_attempt_at
FROM unnest($3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bigint[]) AS k (tenant, after, run_id, id, most)
CROSS JOIN LATERAL (
    SELECT *
    FROM push_registrations p
    WHERE p.namespace = $1 AND p.tenant COLLATE "POSIX" = k.tenant AND p.state = 'live' AND p.lease_until IS NULL AND p.next_attempt_at <= $2
        AND (p.next_attempt_at, p.run_id, p.id) > (k.after, k.run_id, k.id)
    ORDER BY p.next_attempt_at, p.run_id, p.id
    LIMIT k.most
    FOR NO KEY UPDATE SKIP LOCKED
) p

-- Marks due for a notice, for each tenant its own number of them behind its own position, locked; rows locked by others are passed over.
SELECT
    m.tenant, m.workflow_id, m.run_id, m.queue, m.since, m.cause, m.seq, m.notices, m.next_notice_at, m.links
FROM unnest($2::text[], $3::timestamptz[], $4::text[], $5::bigint[]) AS k (tenant, after, workflow_id, most)
CROSS JOIN LATERAL (
    SELECT m.*
    FROM woken m CROSS JOIN LATERAL (SELECT * FROM workflows f WHERE f.tenant = m.tenant AND f.workflow_id = m.workflow_id OFFSET 0) f
    WHERE m.tenant COLLATE "POSIX" = k.tenant AND (m.next_notice_at, m.workflow_id) > (k.after, k.workflow_id)
        AND m.next_notice_at <= $1 AND ($6::integer[] IS NULL OR f.shard = ANY ($6))
        -- Its run is the current one, running, and under no live lease.
        AND f.run_id = m.run_id AND f.status = 'running' AND (f.lease_owner = '' OR f.lease_expires <= $1)
    ORDER BY m.next_notice_at, m.workflow_id
    LIMIT k.most
    FOR NO KEY UPDATE OF m SKIP LOCKED
) m
ORDER BY m.next_notice_at, m.tenant, m.workflow_id

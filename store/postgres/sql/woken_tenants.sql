-- Tenants that have marks due for a notice, the longest due first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of marks.
    (SELECT m.tenant FROM woken m ORDER BY m.tenant COLLATE "POSIX" LIMIT 1)
    UNION ALL
    SELECT (SELECT m.tenant FROM woken m WHERE m.tenant COLLATE "POSIX" > t.tenant ORDER BY m.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT t.tenant
FROM t
CROSS JOIN LATERAL (
    SELECT m.next_notice_at, m.workflow_id
    FROM woken m CROSS JOIN LATERAL (SELECT * FROM workflows f WHERE f.tenant = m.tenant AND f.workflow_id = m.workflow_id OFFSET 0) f
    WHERE m.tenant COLLATE "POSIX" = t.tenant AND m.next_notice_at <= $1 AND ($3::integer[] IS NULL OR f.shard = ANY ($3))
        -- Its run is the current one, running, and under no live lease.
        AND f.run_id = m.run_id AND f.status = 'running' AND (f.lease_owner = '' OR f.lease_expires <= $1)
    ORDER BY m.next_notice_at, m.workflow_id
    LIMIT 1
) first
ORDER BY first.next_notice_at, t.tenant
LIMIT $2

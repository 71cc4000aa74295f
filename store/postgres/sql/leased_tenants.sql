-- Tenants that have owners whose lease ran out, behind a place in the order of all, the longest over first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of leases.
    (SELECT w.tenant FROM workflows w WHERE w.lease_owner <> '' ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    UNION ALL
    SELECT (
        SELECT w.tenant FROM workflows w
        WHERE w.lease_owner <> '' AND w.tenant COLLATE "POSIX" > t.tenant
        ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT t.tenant
FROM t
CROSS JOIN LATERAL (
    SELECT w.lease_expires
    FROM workflows w
    WHERE w.tenant COLLATE "POSIX" = t.tenant AND w.lease_owner <> '' AND w.lease_expires <= $1
        AND (w.lease_expires, w.workflow_id) > (
            CASE WHEN t.tenant < $4::text THEN $3::timestamptz + interval '1 us' ELSE $3::timestamptz END, CASE WHEN t.tenant = $4::text THEN $5::text ELSE '' END)
        AND ($6::integer[] IS NULL OR w.shard = ANY ($6))
    ORDER BY w.lease_expires, w.workflow_id
    LIMIT 1
) first
ORDER BY first.lease_expires, t.tenant
LIMIT $2

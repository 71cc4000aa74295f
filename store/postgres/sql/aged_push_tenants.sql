-- The tenants with live push registrations that nobody sends for and that have been failing since an instant or earlier, the longest so first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index.
    (
        SELECT p.tenant
        FROM push_registrations p
        WHERE p.state = 'live' AND p.failing_since IS NOT NULL
        ORDER BY p.tenant COLLATE "POSIX", p.failing_since
        LIMIT 1
    )
    UNION ALL
    SELECT n.tenant
    FROM t
    CROSS JOIN LATERAL (
        SELECT n.tenant
        FROM push_registrations n
        WHERE n.tenant COLLATE "POSIX" > t.tenant AND n.state = 'live' AND n.failing_since IS NOT NULL
        ORDER BY n.tenant COLLATE "POSIX", n.failing_since
        LIMIT 1
    ) n
)
SELECT t.tenant
FROM t
CROSS JOIN LATERAL (
    SELECT p.failing_since
    FROM push_registrations p
    WHERE p.tenant COLLATE "POSIX" = t.tenant AND p.state = 'live' AND p.failing_since IS NOT NULL AND p.failing_since <= $1
        AND (p.lease_until IS NULL OR p.lease_until <= $2)
    ORDER BY p.failing_since
    LIMIT 1
) p
ORDER BY p.failing_since, t.tenant
LIMIT $3

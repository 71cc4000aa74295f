-- The tenants of a namespace with unleased push registrations that are due, and since when.
WITH RECURSIVE t (tenant, first) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of registrations.
    (
        SELECT p.tenant, p.next_attempt_at
        FROM push_registrations p
        WHERE p.namespace = $1 AND p.state = 'live' AND p.lease_until IS NULL
        ORDER BY p.tenant COLLATE "POSIX", p.next_attempt_at
        LIMIT 1
    )
    UNION ALL
    SELECT n.tenant, n.next_attempt_at
    FROM t
    CROSS JOIN LATERAL (
        SELECT n.tenant, n.next_attempt_at
        FROM push_registrations n
        WHERE n.namespace = $1 AND n.tenant COLLATE "POSIX" > t.tenant AND n.state = 'live' AND n.lease_until IS NULL
        ORDER BY n.tenant COLLATE "POSIX", n.next_attempt_at
        LIMIT 1
    ) n
)
SELECT t.tenant, t.first FROM t WHERE t.first <= $2

-- How many push registrations of a namespace are due, up to a maximum, and the longest due of those that were counted.
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
SELECT count(*), min(d.next_attempt_at)
FROM (
    (
        SELECT p.next_attempt_at
        FROM t
        CROSS JOIN LATERAL (
            SELECT p.next_attempt_at
            FROM push_registrations p
            WHERE p.namespace = $1 AND p.tenant COLLATE "POSIX" = t.tenant AND p.state = 'live' AND p.lease_until IS NULL AND p.next_attempt_at <= $2
            ORDER BY p.next_attempt_at
            LIMIT $5
        ) p
        WHERE $4 = '' OR t.tenant = $4
        LIMIT $5
    )
    UNION ALL
    -- But for a send lease that has run out.
    (
        SELECT p.next_attempt_at
        FROM push_registrations p
        WHERE p.namespace = $1 AND p.state = 'live' AND p.lease_until IS NOT NULL AND p.lease_until <= $3 AND p.next_attempt_at <= $2
            AND ($4 = '' OR p.tenant = $4)
        ORDER BY p.lease_until
        LIMIT $5
    )
    LIMIT $5
) d

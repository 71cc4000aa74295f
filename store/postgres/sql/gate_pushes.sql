-- The places of the first unleased due push registrations of each gate of a tenant, as many of each.
WITH RECURSIVE g (gate, n) AS (
    -- A walk from gate to gate over the index.
    (
        SELECT p.gate, 1
        FROM push_registrations p
        WHERE p.namespace = $1 AND p.tenant COLLATE "POSIX" = $3 AND p.state = 'live' AND p.lease_until IS NULL
        ORDER BY p.gate COLLATE "POSIX"
        LIMIT 1
    )
    UNION ALL
    SELECT n.gate, g.n + 1
    FROM g
    CROSS JOIN LATERAL (
        SELECT n.gate
        FROM push_registrations n
        WHERE n.namespace = $1 AND n.tenant COLLATE "POSIX" = $3 AND n.gate COLLATE "POSIX" > g.gate AND n.state = 'live' AND n.lease_until IS NULL
        ORDER BY n.gate COLLATE "POSIX"
        LIMIT 1
    ) n
    WHERE g.n < $4::integer
)
SELECT p.tenant, p.run_id, p.id, p.workflow_id, p.gate, p.next_attempt_at
FROM g
CROSS JOIN LATERAL (
    SELECT *
    FROM push_registrations p
    WHERE p.namespace = $1 AND p.tenant COLLATE "POSIX" = $3 AND p.gate COLLATE "POSIX" = g.gate AND p.state = 'live' AND p.lease_until IS NULL
        AND p.next_attempt_at <= $2
    ORDER BY p.next_attempt_at, p.run_id, p.id
    LIMIT $5
) p

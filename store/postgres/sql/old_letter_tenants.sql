-- Tenants that have old dead letters, the longest dead first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of letters.
    (SELECT e.tenant FROM events e WHERE (CASE WHEN NOT e.purged THEN e.dead_at END) IS NOT NULL ORDER BY e.tenant COLLATE "POSIX" LIMIT 1)
    UNION ALL
    SELECT (
        SELECT e.tenant FROM events e
        WHERE (CASE WHEN NOT e.purged THEN e.dead_at END) IS NOT NULL AND e.tenant COLLATE "POSIX" > t.tenant
        ORDER BY e.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT t.tenant
FROM t
CROSS JOIN LATERAL (
    SELECT e.dead_at, e.number
    FROM events e
    WHERE e.tenant COLLATE "POSIX" = t.tenant AND ((CASE WHEN NOT e.purged THEN e.dead_at END), e.number) > ($2::timestamptz, $3::bigint)
        AND (CASE WHEN NOT e.purged THEN e.dead_at END) IS NOT NULL AND (CASE WHEN NOT e.purged THEN e.dead_at END) <= $1
    ORDER BY (CASE WHEN NOT e.purged THEN e.dead_at END), e.number
    LIMIT 1
) first
ORDER BY first.dead_at, first.number
LIMIT $4

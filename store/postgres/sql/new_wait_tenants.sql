-- Tenants with waits that became matchable behind a mark, and the first of each: the earliest first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of waits.
    (SELECT w.tenant FROM waits w WHERE w.held_number IS NULL ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    UNION ALL
    SELECT (SELECT w.tenant FROM waits w WHERE w.held_number IS NULL AND w.tenant COLLATE "POSIX" > t.tenant ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT t.tenant, w.open_since, w.number
FROM t
CROSS JOIN LATERAL (
    SELECT w.open_since, w.number
    FROM waits w
    WHERE w.tenant COLLATE "POSIX" = t.tenant AND w.held_number IS NULL AND (w.open_since, w.number) > ($1, $2) AND w.open_since <= $3
    ORDER BY w.open_since, w.number
    LIMIT 1
) w
ORDER BY w.open_since, w.number
LIMIT $4

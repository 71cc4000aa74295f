-- Tenants with live events that became matchable behind a mark, and the first of each: the earliest first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of events.
    (SELECT i.tenant FROM event_keys i ORDER BY i.tenant COLLATE "POSIX" LIMIT 1)
    UNION ALL
    SELECT (SELECT i.tenant FROM event_keys i WHERE i.tenant COLLATE "POSIX" > t.tenant ORDER BY i.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT f.tenant, f.live_since, f.number
FROM (
    SELECT DISTINCT ON (t.tenant) t.tenant, i.live_since, i.number
    FROM t
    CROSS JOIN unnest(ARRAY[false, true]) AS o (own)
    CROSS JOIN LATERAL (
        SELECT i.live_since, i.number
        FROM event_keys i
        WHERE i.tenant COLLATE "POSIX" = t.tenant AND (i.expires_at IS NOT NULL) = o.own AND (i.live_since, i.number) > ($1, $2) AND i.live_since <= $3
        ORDER BY i.live_since, i.number
        LIMIT 1
    ) i
    ORDER BY t.tenant, i.live_since, i.number
) f
ORDER BY f.live_since, f.number
LIMIT $4

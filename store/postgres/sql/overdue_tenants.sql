-- Tenants with live events that fell due, the longest due first.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the primary key: its cost is the number of tenants, not of events.
    (SELECT i.tenant FROM event_keys i ORDER BY i.tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT i.tenant FROM event_keys i WHERE i.tenant > t.tenant ORDER BY i.tenant LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT t.tenant
FROM t
LEFT JOIN LATERAL (
    SELECT $1::timestamptz - i.live_since AS late
    FROM event_keys i
    WHERE i.tenant COLLATE "POSIX" = t.tenant AND i.expires_at IS NULL AND i.live_since <= $1
    ORDER BY i.live_since
    LIMIT 1
) a ON true
LEFT JOIN LATERAL (
    SELECT $2::timestamptz - i.expires_at AS late
    FROM event_keys i
    WHERE i.tenant COLLATE "POSIX" = t.tenant AND i.expires_at IS NOT NULL AND i.expires_at <= $2
    ORDER BY i.expires_at
    LIMIT 1
) x ON true
WHERE a.late IS NOT NULL OR x.late IS NOT NULL
ORDER BY greatest(a.late, x.late) DESC, t.tenant
LIMIT $3

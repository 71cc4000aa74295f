-- A tenant's dead letters that pass a filter by reason, as many as asked for from the lowest number on. One of the branches is for the index asked for; the
-- others are not carried out.
SELECT e.dead_reason, count(*), max(e.number)
FROM (
    SELECT e.dead_reason, e.number
    FROM (
        (SELECT e.number FROM events e
        WHERE $3::text = '' AND e.tenant COLLATE "POSIX" = $1::text AND e.dead_at IS NOT NULL AND NOT e.purged
        ORDER BY e.number)
        UNION ALL
        (SELECT e.number FROM events e
        WHERE $3::text = 'type' AND e.tenant COLLATE "POSIX" = $1::text AND e.type = $6 AND e.dead_at IS NOT NULL AND NOT e.purged
        ORDER BY e.number)
        UNION ALL
        (SELECT e.number FROM events e
        WHERE $3::text = 'reason' AND e.dead_reason = $5 AND e.tenant COLLATE "POSIX" = $1::text AND e.dead_at IS NOT NULL AND NOT e.purged
        ORDER BY e.number)
        UNION ALL
        (SELECT i.number FROM dead_keys i
        WHERE $3::text = 'key' AND i.tenant = $1::text AND i.namespace = $4::text AND i.value = $12::text
        ORDER BY i.number)
    ) i
    CROSS JOIN LATERAL (
        SELECT * FROM events e
        WHERE e.number = i.number
            AND ($5::text = '' OR e.dead_reason = $5) AND ($6::text = '' OR e.type = $6) AND ($7::text = '' OR e.source = $7)
            AND ($8::timestamptz IS NULL OR e.received_at >= $8) AND ($9::timestamptz IS NULL OR e.received_at <= $9)
            AND ($10::timestamptz IS NULL OR e.dead_at >= $10) AND ($11::timestamptz IS NULL OR e.dead_at <= $11)
        OFFSET 0
    ) e
    LIMIT $2
) e
GROUP BY e.dead_reason

-- The next dead letters of a tenant by number, from the lowest on. One of the branches is for the index asked for; the others are not carried out.
-- Beside each stands whether it passes the rest of the filter: where the index answers all of it ($7), nothing is looked up for that.
SELECT
    i.number,
    $7::boolean OR coalesce((
        SELECT ($8::text = '' OR e.dead_reason = $8) AND ($9::text = '' OR e.type = $9) AND ($10::text = '' OR e.source = $10)
            AND ($11::timestamptz IS NULL OR e.received_at >= $11) AND ($12::timestamptz IS NULL OR e.received_at <= $12)
            AND ($13::timestamptz IS NULL OR e.dead_at >= $13) AND ($14::timestamptz IS NULL OR e.dead_at <= $14)
        FROM events e
        WHERE e.number = i.number
    ), false)
FROM (
    (SELECT e.number FROM events e
    WHERE $4::text = '' AND e.tenant COLLATE "POSIX" = $1::text AND e.dead_at IS NOT NULL AND NOT e.purged AND e.number > $2::bigint
    ORDER BY e.number
    LIMIT $3::bigint)
    UNION ALL
    (SELECT e.number FROM events e
    WHERE $4::text = 'type' AND e.tenant COLLATE "POSIX" = $1::text AND e.type = $5::text AND e.dead_at IS NOT NULL AND NOT e.purged AND e.number > $2::bigint
    ORDER BY e.number
    LIMIT $3::bigint)
    UNION ALL
    (SELECT e.number FROM events e
    WHERE $4::text = 'reason' AND e.dead_reason = $5::text AND e.tenant COLLATE "POSIX" = $1::text AND e.dead_at IS NOT NULL AND NOT e.purged AND e.number > $2::bigint
    ORDER BY e.number
    LIMIT $3::bigint)
    UNION ALL
    (SELECT i.number FROM dead_keys i
    WHERE $4::text = 'key' AND i.tenant = $1::text AND i.namespace = $5::text AND i.value = $6::text AND i.number > $2::bigint
    ORDER BY i.number
    LIMIT $3::bigint)
) i

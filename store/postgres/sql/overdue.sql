-- What falls due, for each range its own number of key rows behind its own position.
SELECT k.place, i.at, i.number, i.near, i.near AND EXISTS (SELECT FROM events e WHERE e.number = i.number AND e.take_until > $7)
FROM unnest($1::text[], $2::boolean[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::bigint[])
    WITH ORDINALITY AS k (tenant, own, until, after, number, most, place)
CROSS JOIN LATERAL (
    -- Those without an expiry of their own, by age.
    (SELECT i.live_since AS at, i.number,
        -- An event is near where an open wait stands under its key and type; a targeted one where its run has an open wait of its type.
        CASE WHEN i.namespace <> '' THEN EXISTS (
                SELECT FROM wait_keys w WHERE w.tenant = i.tenant AND w.namespace = i.namespace AND w.value = i.value AND w.type = i.type)
            ELSE i.value <> '' AND EXISTS (
                SELECT FROM waits w WHERE w.tenant = i.tenant AND w.run_id = i.value AND w.type = i.type AND w.held_number IS NULL)
        END AS near
    FROM event_keys i
    WHERE NOT k.own AND i.tenant COLLATE "POSIX" = k.tenant AND i.expires_at IS NULL
        AND i.live_since <= k.until AND (i.live_since, i.number) > (k.after, k.number)
    ORDER BY i.live_since, i.number
    LIMIT k.most)
    UNION ALL
    -- The others by their expiry: from that instant on they meet nobody.
    (SELECT i.expires_at, i.number, false
    FROM event_keys i
    WHERE k.own AND i.tenant COLLATE "POSIX" = k.tenant AND i.expires_at IS NOT NULL
        AND i.expires_at <= k.until AND (i.expires_at, i.number) > (k.after, k.number)
    ORDER BY i.expires_at, i.number
    LIMIT k.most)
) i
ORDER BY k.place, i.at, i.number

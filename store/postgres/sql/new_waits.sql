-- Waits that became matchable, for each range its own number behind its own place, and the lowest event that each was left apart from. Ranges of events with an
-- expiry of their own are none of theirs.
SELECT k.place, w.open_since, w.number, met.number
FROM unnest($1::text[], $2::boolean[], $3::timestamptz[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS k (tenant, own, after, number, most, place)
CROSS JOIN LATERAL (
    SELECT w.tenant, w.run_id, w.type, w.keys, w.open_since, w.number
    FROM waits w
    WHERE NOT k.own AND w.tenant COLLATE "POSIX" = k.tenant AND w.held_number IS NULL
        AND (w.open_since, w.number) > (k.after, k.number) AND w.open_since <= $6
    ORDER BY w.open_since, w.number
    LIMIT k.most
) w
CROSS JOIN LATERAL (
    SELECT min(e.number) AS number
    FROM (
        -- The first few under each of its keys; what hides behind those is found by its own age.
        SELECT i.number
        FROM generate_series(1, cardinality(w.keys), 2) AS p (place)
        CROSS JOIN LATERAL (
            SELECT i.number
            FROM event_keys i
            WHERE i.tenant = w.tenant AND i.namespace = w.keys[p.place] AND i.value = w.keys[p.place + 1] AND i.type = w.type AND i.live_since <= $6
            ORDER BY i.number
            LIMIT 4
        ) i
        UNION ALL
        -- And those that are targeted at its run.
        (SELECT i.number
        FROM event_keys i
        WHERE i.tenant = w.tenant AND i.namespace = '' AND i.value = w.run_id AND i.type = w.type AND i.live_since <= $6
        ORDER BY i.number
        LIMIT 4)
    ) i
    CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = i.number OFFSET 0) e
    WHERE e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= $7) AND (e.expires_at IS NULL OR e.expires_at > $7)
) met
ORDER BY k.place, w.open_since, w.number

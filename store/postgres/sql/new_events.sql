-- Live events that became matchable, for each range its own number of key rows behind its own place, and each again where it was left apart from a wait.
SELECT k.place, i.live_since, i.number, CASE WHEN i.met AND EXISTS (
    SELECT FROM events e
    WHERE e.number = i.number AND e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= $7) AND (e.expires_at IS NULL OR e.expires_at > $7)
    ) THEN i.number END
FROM unnest($1::text[], $2::boolean[], $3::timestamptz[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS k (tenant, own, after, number, most, place)
CROSS JOIN LATERAL (
    SELECT i.live_since, i.number,
        CASE WHEN i.namespace <> '' THEN EXISTS (
                SELECT FROM wait_keys w
                WHERE w.tenant = i.tenant AND w.namespace = i.namespace AND w.value = i.value AND w.type = i.type AND w.open_since <= $6)
            -- A targeted event looks at the waits of its run, whatever their keys.
            ELSE i.value <> '' AND EXISTS (
                SELECT FROM waits w
                WHERE w.tenant = i.tenant AND w.run_id = i.value AND w.type = i.type AND w.held_number IS NULL AND w.open_since <= $6)
        END AS met
    FROM event_keys i
    WHERE i.tenant COLLATE "POSIX" = k.tenant AND (i.expires_at IS NOT NULL) = k.own
        AND (i.live_since, i.number) > (k.after, k.number) AND i.live_since <= $6
    ORDER BY i.live_since, i.number
    LIMIT k.most
) i
ORDER BY k.place, i.live_since, i.number

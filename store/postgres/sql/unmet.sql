-- A slice of all live events by their key rows, and those of it that were left apart from a wait they could have met. Its cost is the slice, not the stock.
WITH slice AS MATERIALIZED (
    SELECT i.tenant, i.namespace, i.value, i.type, i.number, i.live_since
    FROM event_keys i
    WHERE (i.tenant, i.namespace, i.value, i.type, i.number) > ($3, $4, $5, $6, $7)
    ORDER BY i.tenant, i.namespace, i.value, i.type, i.number
    LIMIT $8
), met AS (
    SELECT s.tenant, s.namespace, s.value, s.type, s.number
    FROM slice s
    WHERE s.live_since <= $2
        AND CASE WHEN s.namespace <> '' THEN EXISTS (
                SELECT FROM wait_keys i
                WHERE i.tenant = s.tenant AND i.namespace = s.namespace AND i.value = s.value AND i.type = s.type AND i.open_since <= $2)
            -- A targeted event looks at the waits of its run, whatever their keys.
            ELSE s.value <> '' AND EXISTS (
                SELECT FROM waits w
                WHERE w.tenant = s.tenant AND w.run_id = s.value AND w.type = s.type AND w.held_number IS NULL AND w.open_since <= $2)
        END
), found AS (
    -- Where the slice ends, if it is not the last one.
    (SELECT true AS last, s.tenant, s.namespace, s.value, s.type, s.number
    FROM slice s
    WHERE (SELECT count(*) FROM slice) = $8
    ORDER BY s.tenant DESC, s.namespace DESC, s.value DESC, s.type DESC, s.number DESC
    LIMIT 1)
    UNION ALL
    SELECT false, m.tenant, m.namespace, m.value, m.type, m.number
    FROM met m
    CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = m.number OFFSET 0) e
    WHERE e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= $1) AND (e.expires_at IS NULL OR e.expires_at > $1)
)
SELECT f.last, f.tenant, f.namespace, f.value, f.type, f.number
FROM found f
ORDER BY f.tenant, f.namespace, f.value, f.type, f.number

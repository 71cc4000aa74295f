-- A slice of the live events by number, and those of it that were left apart from a wait they could have met. Its cost is the slice, not the stock.
WITH slice AS MATERIALIZED (
    SELECT i.tenant, i.namespace, i.value, i.type, i.number, i.live_since
    FROM event_keys i
    WHERE i.number + 0 > $3 -- as in the index event_keys_number
    ORDER BY i.number + 0
    LIMIT $4
), met AS (
    SELECT DISTINCT s.tenant, s.number
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
)
-- First the slice itself: how many key rows it has and where it ends.
SELECT NULL::text AS tenant, max(s.number) AS number, count(*) AS rows FROM slice s
UNION ALL
SELECT m.tenant, m.number, 0
FROM met m
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = m.number OFFSET 0) e
WHERE e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= $1) AND (e.expires_at IS NULL OR e.expires_at > $1)

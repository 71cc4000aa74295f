-- Events that are live again, lately, and those of them that were left apart from a wait they could have met. Its cost is the news, not the stock.
WITH slice AS MATERIALIZED (
    SELECT e.live_since, e.number
    FROM events e
    WHERE e.live_since <> e.received_at AND (e.live_since, e.number) > ($3, $4) -- as in the index events_again
    ORDER BY e.live_since, e.number
    LIMIT $5
)
-- First where the walk ended, and whether that was its bound.
(SELECT 2 AS walk, s.live_since, s.number, NULL::text AS tenant, (count(*) OVER () = $5)::integer::bigint AS event
FROM slice s
ORDER BY s.live_since DESC, s.number DESC
LIMIT 1)
UNION ALL
SELECT 2, s.live_since, s.number, e.tenant, s.number
FROM slice s
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = s.number OFFSET 0) e
WHERE s.live_since <= $2 AND e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= $1) AND (e.expires_at IS NULL OR e.expires_at > $1)
    AND EXISTS (
        SELECT FROM event_keys i
        WHERE i.number + 0 = s.number -- as in the index event_keys_number
            AND CASE WHEN i.namespace <> '' THEN EXISTS (
                    SELECT FROM wait_keys w
                    WHERE w.tenant = i.tenant AND w.namespace = i.namespace AND w.value = i.value AND w.type = i.type AND w.open_since <= $2)
                -- A targeted event looks at the waits of its run, whatever their keys.
                ELSE i.value <> '' AND EXISTS (
                    SELECT FROM waits w
                    WHERE w.tenant = i.tenant AND w.run_id = i.value AND w.type = i.type AND w.held_number IS NULL AND w.open_since <= $2)
            END
    )

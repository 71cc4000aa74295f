-- Waits that are new, and those that are open again, lately, with the lowest event that each was left apart from. Its cost is the news, not the stock.
WITH RECURSIVE t (tenant) AS (
    -- A walk from tenant to tenant over the index: its cost is the number of tenants, not of waits.
    (SELECT w.tenant FROM waits w ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    UNION ALL
    SELECT (SELECT w.tenant FROM waits w WHERE w.tenant COLLATE "POSIX" > t.tenant ORDER BY w.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
), bound (number) AS (
    -- However many tenants there are and however long nobody looked, so many numbers are looked through.
    SELECT least($3 + 10 * $6, coalesce(pg_sequence_last_value('wait_number'), 0))
), slice AS MATERIALIZED (
    (SELECT 1 AS walk, NULL::timestamptz AS at, w.*
    FROM bound b
    CROSS JOIN t
    CROSS JOIN LATERAL (
        SELECT w.number, w.tenant, w.run_id, w.type, w.keys, w.from_source, w.held_number IS NULL AND w.open_since <= $2 AS open
        FROM waits w
        WHERE w.tenant COLLATE "POSIX" = t.tenant AND w.number > $3 AND w.number <= b.number
        ORDER BY w.number
        LIMIT $6
    ) w
    ORDER BY w.number
    LIMIT $6)
    UNION ALL
    (SELECT 3, w.open_since, w.number, w.tenant, w.run_id, w.type, w.keys, w.from_source, w.held_number IS NULL AND w.open_since <= $2
    FROM waits w
    WHERE w.open_since <> w.registered_at AND (w.open_since, w.number) > ($4, $5) -- as in the index waits_again
    ORDER BY w.open_since, w.number
    LIMIT $6)
)
-- First where each walk ended, and whether that was its bound.
SELECT 1 AS walk, NULL::timestamptz AS at, CASE WHEN n.rows = $6 THEN n.last ELSE b.number END AS number, NULL::text AS tenant,
    (n.rows = $6 OR b.number < coalesce(pg_sequence_last_value('wait_number'), 0))::integer::bigint AS event
FROM bound b
CROSS JOIN LATERAL (SELECT count(*) AS rows, max(s.number) AS last FROM slice s WHERE s.walk = 1 AND b.number > $3) n
WHERE b.number > $3
UNION ALL
(SELECT 3, s.at, s.number, NULL, (count(*) OVER () = $6)::integer::bigint
FROM slice s
WHERE s.walk = 3
ORDER BY s.at DESC, s.number DESC
LIMIT 1)
UNION ALL
SELECT s.walk, s.at, s.number, s.tenant, met.number
FROM slice s
CROSS JOIN LATERAL (
    SELECT i.number
    FROM (
        -- The first few under each of its keys: what stands behind many that are in hand, or another source's, is found by its own age, or by the walk through all.
        SELECT i.number
        FROM generate_series(1, cardinality(s.keys), 2) AS p (place)
        CROSS JOIN LATERAL (
            SELECT i.number
            FROM event_keys i
            WHERE i.tenant = s.tenant AND i.namespace = s.keys[p.place] AND i.value = s.keys[p.place + 1] AND i.type = s.type AND i.live_since <= $2
            ORDER BY i.number
            LIMIT 20
        ) i
        UNION ALL
        -- And those that are targeted at its run.
        (SELECT i.number
        FROM event_keys i
        WHERE i.tenant = s.tenant AND i.namespace = '' AND i.value = s.run_id AND i.type = s.type AND i.live_since <= $2
        ORDER BY i.number
        LIMIT 20)
    ) i
    CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = i.number OFFSET 0) e
    WHERE e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= $1) AND (e.expires_at IS NULL OR e.expires_at > $1)
        AND (s.from_source = '' OR s.from_source = e.source)
    ORDER BY i.number
    LIMIT 1
) met
WHERE s.open

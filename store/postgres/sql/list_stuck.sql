-- A page of quarantined waits in the order of parked ones, (next_attempt_at, number). They are few: an operator is to look at each.
SELECT
    w.passes, w.last,
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at, w.last_error, w.take,
    w.take_until, w.take_settled, w.quarantined_at
FROM (
    SELECT w.*,
        row_number() OVER (ORDER BY w.next_attempt_at, w.number) = $9::bigint AS last,
        ($10 = '' OR w.run_id = $10)
            AND ($4 = '' OR w.type = $4)
            AND ($5 = '' OR $5 = CASE WHEN w.held_number IS NULL THEN 'open' WHEN w.quarantined_at IS NULL THEN 'parked' ELSE 'quarantined' END)
            -- A key is two neighbours of the flat list; the first of them stands at an odd place.
            AND (NOT $6::boolean OR EXISTS (
                SELECT FROM generate_series(1, cardinality(w.keys), 2) AS p (place) WHERE w.keys[p.place] = $7 AND w.keys[p.place + 1] = $8)) AS passes
    FROM waits w
    WHERE w.tenant COLLATE "POSIX" = $1 AND w.quarantined_at IS NOT NULL AND (w.next_attempt_at, w.number) > ($11::timestamptz, $2::bigint)
    ORDER BY w.next_attempt_at, w.number
    LIMIT $9
) w
WHERE w.passes OR w.last
ORDER BY w.next_attempt_at, w.number
LIMIT $3

-- A page of a tenant's waits by number: those that pass, and the last that it may look at.
SELECT
    w.passes, w.last,
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at, w.last_error, w.take,
    w.take_until, w.take_settled, w.quarantined_at
FROM (
    SELECT w.*,
        row_number() OVER (ORDER BY w.number) = $9::bigint AS last,
        ($4 = '' OR w.type = $4)
            AND ($5 = '' OR $5 = CASE WHEN w.held_number IS NULL THEN 'open' WHEN w.quarantined_at IS NULL THEN 'parked' ELSE 'quarantined' END)
            -- A key is two neighbours of the flat list; the first of them stands at an odd place.
            AND (NOT $6::boolean OR EXISTS (
                SELECT FROM generate_series(1, cardinality(w.keys), 2) AS p (place) WHERE w.keys[p.place] = $7 AND w.keys[p.place + 1] = $8)) AS passes
    FROM waits w
    WHERE w.tenant COLLATE "POSIX" = $1 AND w.number > $2
    ORDER BY w.number
    LIMIT $9
) w
WHERE w.passes OR w.last
ORDER BY w.number
LIMIT $3

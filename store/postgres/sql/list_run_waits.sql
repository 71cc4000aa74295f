-- A page of one run's waits by number; a run has at most 1,000.
SELECT
    true, false,
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at,
    w.last_error, w.take, w.take_until, w.take_settled, w.quarantined_at
-- Apart, so that no plan walks the tenant's waits in their order to find those of one run.
FROM (SELECT * FROM waits WHERE tenant = $1 AND run_id = $9 OFFSET 0) w
WHERE w.number > $2
    AND ($4 = '' OR w.type = $4)
    AND ($5 = '' OR $5 = CASE WHEN w.held_number IS NULL THEN 'open' WHEN w.quarantined_at IS NULL THEN 'parked' ELSE 'quarantined' END)
    -- A key is two neighbours of the flat list; the first of them stands at an odd place.
    AND (NOT $6::boolean OR EXISTS (
        SELECT FROM generate_series(1, cardinality(w.keys), 2) AS p (place) WHERE w.keys[p.place] = $7 AND w.keys[p.place + 1] = $8))
ORDER BY w.number
LIMIT $3

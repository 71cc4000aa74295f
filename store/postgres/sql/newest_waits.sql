-- Of a tenant's newest waits, open or parked, those of a type. Every row says how many were looked at; where none is of the type there is one row without a wait.
WITH walk AS MATERIALIZED (
    SELECT w.number, w.type
    FROM waits w
    WHERE w.tenant COLLATE "POSIX" = $1
    ORDER BY w.number DESC
    LIMIT $4
)
SELECT l.looked, w.number IS NOT NULL,
    w.number, w.version, w.tenant, w.run_id, w.effect, w.workflow_id, w.shard, w.attempt, w.type, w.keys, w.from_source, w.trace_parent, w.trace_state,
    w.registered_at, w.deadline, w.open_since, w.held_number, w.held_source, w.held_id, w.claim_number, w.parked_at, w.attempts, w.next_attempt_at,
    w.last_error, w.take, w.take_until, w.take_settled, w.quarantined_at
FROM (SELECT count(*) AS looked FROM walk) l
LEFT JOIN (SELECT i.number FROM walk i WHERE i.type = $2 ORDER BY i.number DESC LIMIT $3) i ON true
LEFT JOIN LATERAL (SELECT * FROM waits w WHERE w.tenant COLLATE "POSIX" = $1 AND w.number = i.number OFFSET 0) w ON true
ORDER BY i.number DESC

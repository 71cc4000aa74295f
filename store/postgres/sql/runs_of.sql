-- A workflow's runs in the order of the chain, those behind a position.
SELECT
    r.tenant, r.run_id, r.workflow_id, r.previous_run, r.next_run, r.status, r.first_seq, r.last_seq, r.started_at, r.closed_at, r.sealed_at, r.outcome,
    r.start_digest, r.retired
FROM runs r
WHERE r.tenant COLLATE "POSIX" = $1 AND r.workflow_id = $2 AND r.first_seq > $3
ORDER BY r.first_seq
LIMIT $4

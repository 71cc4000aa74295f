-- Runs by key.
SELECT
    r.tenant, r.run_id, r.workflow_id, r.previous_run, r.next_run, r.status, r.first_seq, r.last_seq, r.started_at, r.closed_at, r.sealed_at, r.outcome,
    r.start_digest, r.retired
FROM unnest($1::text[], $2::text[]) AS k (tenant, run_id)
CROSS JOIN LATERAL (SELECT * FROM runs r WHERE r.tenant = k.tenant AND r.run_id = k.run_id OFFSET 0) r

-- New runs. One that is there already is a violation of the primary key.
INSERT INTO runs (
    tenant, run_id, workflow_id, previous_run, next_run, status, first_seq, last_seq, started_at, closed_at, sealed_at, outcome, start_digest, retired)
SELECT
    n.tenant, n.run_id, n.workflow_id, n.previous_run, n.next_run, n.status, n.first_seq, n.last_seq, n.started_at, n.closed_at, n.sealed_at,
    n.outcome, n.start_digest, n.retired
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::timestamptz[], $10::timestamptz[],
    $11::timestamptz[], $12::text[], $13::bytea[], $14::bytea[])
AS n (
    tenant, run_id, workflow_id, previous_run, next_run, status, first_seq, last_seq, started_at, closed_at, sealed_at, outcome, start_digest, retired)
-- None of an id that a remnant has.
WHERE NOT EXISTS (SELECT FROM remnants x WHERE x.tenant = n.tenant AND x.run_id = n.run_id)

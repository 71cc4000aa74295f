-- What the end of a run changes in its row.
UPDATE runs r SET
    next_run = n.next_run, status = n.status, last_seq = n.last_seq, closed_at = n.closed_at, sealed_at = n.sealed_at, outcome = n.outcome,
    retired = n.retired
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::bytea[])
AS n (
    tenant, run_id, next_run, status, last_seq, closed_at, sealed_at, outcome, retired)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE r.tenant = ANY (ARRAY[n.tenant]) AND r.run_id = n.run_id

-- First outcomes of named batches. One that is there already is a violation of the primary key.
INSERT INTO batches (
    tenant, run_id, batch_id, digest, first_seq, last_seq, outcome)
SELECT
    n.tenant, n.run_id, n.batch_id, n.digest, n.first_seq, n.last_seq, n.outcome
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bytea[])
AS n (
    tenant, run_id, batch_id, digest, first_seq, last_seq, outcome)

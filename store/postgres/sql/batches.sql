-- First outcomes of named batches.
SELECT b.tenant, b.run_id, b.batch_id, b.digest, b.first_seq, b.last_seq, b.outcome
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant, run_id, batch_id)
CROSS JOIN LATERAL (SELECT * FROM batches b WHERE b.tenant = k.tenant AND b.run_id = k.run_id AND b.batch_id = k.batch_id OFFSET 0) b

-- The walk over all named batches: their keys and sizes, by primary key.
SELECT b.tenant, b.run_id, b.batch_id, 0::bigint, octet_length(b.outcome)::bigint, false
FROM batches b
WHERE (b.tenant, b.run_id, b.batch_id) > ($1::text, $2::text, $3::text)
ORDER BY b.tenant, b.run_id, b.batch_id
LIMIT $4::bigint

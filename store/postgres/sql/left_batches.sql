-- Batches that pruned runs left.
SELECT k.tenant, k.run_id, b.batch_id
FROM unnest($1::text[], $2::text[]) AS k (tenant, run_id)
CROSS JOIN LATERAL (
    SELECT b.batch_id FROM batches b
    WHERE b.tenant = k.tenant AND b.run_id = k.run_id
    ORDER BY b.batch_id
    LIMIT $3::bigint
) b
LIMIT $3::bigint

-- Batches of pruned runs.
DELETE FROM batches b USING unnest($1::text[], $2::text[], $3::text[]) AS n (tenant, run_id, batch_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE b.tenant = ANY (ARRAY[n.tenant]) AND b.run_id = n.run_id AND b.batch_id = n.batch_id

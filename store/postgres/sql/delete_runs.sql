-- Their runs.
DELETE FROM runs r USING unnest($1::text[], $2::text[]) AS n (tenant, run_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE r.tenant = ANY (ARRAY[n.tenant]) AND r.run_id = n.run_id

-- Remnants of which nothing is left.
DELETE FROM remnants x USING unnest($1::text[], $2::text[]) AS n (tenant, run_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE x.tenant = ANY (ARRAY[n.tenant]) AND x.run_id = n.run_id

-- The push registrations of runs.
DELETE FROM push_registrations p USING unnest($1::text[], $2::text[]) AS n (tenant, run_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE p.tenant = ANY (ARRAY[n.tenant]) AND p.run_id = n.run_id

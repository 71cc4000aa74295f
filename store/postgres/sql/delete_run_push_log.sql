-- The attempt logs of the registrations of runs.
DELETE FROM push_log l USING unnest($1::text[], $2::text[]) AS n (tenant, run_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE l.tenant = ANY (ARRAY[n.tenant]) AND l.run_id = n.run_id

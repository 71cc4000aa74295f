-- Entries of attempt logs.
DELETE FROM push_log l USING unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS n (tenant, run_id, id, incarnation, attempt_no)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE l.tenant = ANY (ARRAY[n.tenant]) AND l.run_id = n.run_id AND l.id = n.id AND l.incarnation = n.incarnation AND l.attempt_no = n.attempt_no

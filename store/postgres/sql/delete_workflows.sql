-- Workflows that are pruned, locked before.
DELETE FROM workflows w USING unnest($1::text[], $2::text[]) AS n (tenant, workflow_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE w.tenant = ANY (ARRAY[n.tenant]) AND w.workflow_id = n.workflow_id

-- Marks of runs that somebody drives now, or that ended.
DELETE FROM woken m USING unnest($1::text[], $2::text[]) AS n (tenant, workflow_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE m.tenant = ANY (ARRAY[n.tenant]) AND m.workflow_id = n.workflow_id

-- Armings that are over.
DELETE FROM timers t USING unnest($1::text[], $2::text[], $3::text[]) AS n (tenant, workflow_id, timer_id)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE t.tenant = ANY (ARRAY[n.tenant]) AND t.workflow_id = n.workflow_id AND t.timer_id = n.timer_id

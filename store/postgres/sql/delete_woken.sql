-- Marks of runs that somebody drives now, or that ended.
DELETE FROM woken m USING unnest($1::text[], $2::text[]) AS n (tenant, workflow_id)
WHERE m.tenant = n.tenant AND m.workflow_id = n.workflow_id

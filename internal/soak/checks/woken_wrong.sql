-- What is woken is a workflow's current run that goes on.
SELECT format('%s/%s run %s', k.tenant, k.workflow_id, k.run_id)
FROM woken k LEFT JOIN workflows w USING (tenant, workflow_id)
WHERE w.run_id IS DISTINCT FROM k.run_id OR w.closed_at IS NOT NULL

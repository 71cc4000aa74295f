-- A run whose start was answered is there, and one whose end was answered is sealed.
SELECT format('%s/%s of %s, ended: %s', s.tenant, s.run_id, s.workflow_id, s.ended)
FROM soak.started s LEFT JOIN runs r USING (tenant, run_id)
WHERE r.run_id IS NULL OR r.workflow_id <> s.workflow_id OR (s.ended AND r.sealed_at IS NULL)

-- Leases that nobody holds any more are ended.
SELECT format('%s/%s by %s until %s', tenant, workflow_id, lease_owner, lease_expires)
FROM workflows WHERE lease_owner <> ''

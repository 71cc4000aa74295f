-- The walk over all workflows: their keys, by primary key.
SELECT w.tenant, w.workflow_id, '', 0::bigint, 0::bigint, false
FROM workflows w
WHERE (w.tenant, w.workflow_id) > ($1::text, $2::text)
ORDER BY w.tenant, w.workflow_id
LIMIT $3::bigint

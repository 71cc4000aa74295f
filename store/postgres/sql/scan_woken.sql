-- The walk over all marks of woken runs: their keys, by primary key.
SELECT m.tenant, m.workflow_id, '', 0::bigint, 0::bigint, false
FROM woken m
WHERE (m.tenant, m.workflow_id) > ($1::text, $2::text)
ORDER BY m.tenant, m.workflow_id
LIMIT $3::bigint

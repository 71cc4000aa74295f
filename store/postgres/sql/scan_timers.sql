-- The walk over all timers: their keys, by primary key.
SELECT t.tenant, t.workflow_id, t.timer_id, 0::bigint, 0::bigint, false
FROM timers t
WHERE (t.tenant, t.workflow_id, t.timer_id) > ($1::text, $2::text, $3::text)
ORDER BY t.tenant, t.workflow_id, t.timer_id
LIMIT $4::bigint

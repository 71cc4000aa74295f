-- The walk over all waits: their keys, by primary key.
SELECT w.tenant, w.run_id, w.effect, 0::bigint, 0::bigint, false
FROM waits w
WHERE (w.tenant, w.run_id, w.effect) > ($1::text, $2::text, $3::text)
ORDER BY w.tenant, w.run_id, w.effect
LIMIT $4::bigint

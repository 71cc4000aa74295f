-- The walk over all runs: their keys and sizes, by primary key.
SELECT r.tenant, r.run_id, '', 0::bigint, coalesce(octet_length(r.retired), 0)::bigint, false
FROM runs r
WHERE (r.tenant, r.run_id) > ($1::text, $2::text)
ORDER BY r.tenant, r.run_id
LIMIT $3::bigint

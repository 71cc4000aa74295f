-- The walk over all remnants: their keys, by primary key.
SELECT x.tenant, x.run_id, '', 0::bigint, 0::bigint, false
FROM remnants x
WHERE (x.tenant, x.run_id) > ($1::text, $2::text)
ORDER BY x.tenant, x.run_id
LIMIT $3::bigint

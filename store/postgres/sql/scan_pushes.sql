-- The walk over all push registrations: their keys, by primary key, and the sizes of what callers set.
SELECT p.tenant, p.run_id, p.id, 0::bigint, octet_length(p.settings)::bigint, false
FROM push_registrations p
WHERE (p.tenant, p.run_id, p.id) > ($1::text, $2::text, $3::text)
ORDER BY p.tenant, p.run_id, p.id
LIMIT $4::bigint

-- The next dead letters of a tenant by number, from the highest down. One of the branches is for the index asked for; the others are not carried out.
(SELECT e.number FROM events e
WHERE $4::text = '' AND e.tenant COLLATE "POSIX" = $1::text AND e.dead_at IS NOT NULL AND NOT e.purged AND e.number < $2::bigint
ORDER BY e.number DESC
LIMIT $3::bigint)
UNION ALL
(SELECT e.number FROM events e
WHERE $4::text = 'type' AND e.tenant COLLATE "POSIX" = $1::text AND e.type = $5::text AND e.dead_at IS NOT NULL AND NOT e.purged AND e.number < $2::bigint
ORDER BY e.number DESC
LIMIT $3::bigint)
UNION ALL
(SELECT e.number FROM events e
WHERE $4::text = 'reason' AND e.dead_reason = $5::text AND e.tenant COLLATE "POSIX" = $1::text AND e.dead_at IS NOT NULL AND NOT e.purged AND e.number < $2::bigint
ORDER BY e.number DESC
LIMIT $3::bigint)
UNION ALL
(SELECT i.number FROM dead_keys i
WHERE $4::text = 'key' AND i.tenant = $1::text AND i.namespace = $5::text AND i.value = $6::text AND i.number < $2::bigint
ORDER BY i.number DESC
LIMIT $3::bigint)

-- The first entries of a log that are not kept for good.
SELECT l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no
FROM push_log l
WHERE l.tenant = $1 AND l.run_id = $2 AND l.id = $3 AND l.incarnation = $4 AND NOT l.kept
ORDER BY l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no
LIMIT $5

-- A pool's members.
SELECT m.pool, m.incarnation, m.address, m.started_at, m.draining, m.expires_at
FROM members m
WHERE m.pool = $1
ORDER BY m.incarnation

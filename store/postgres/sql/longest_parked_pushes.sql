-- A page of the places of parked push registrations, the longest parked first: those that pass, and the last that it may look at.
SELECT p.passes, p.last_one, p.tenant, p.run_id, p.id, p.parked_at
FROM (
    SELECT p.*,
        row_number() OVER (ORDER BY p.parked_at, p.run_id, p.id) = $7::bigint AS last_one,
        ($2 = '' OR p.reason = $2) AND ($3 = '' OR p.gate = $3) AS passes
    FROM push_registrations p
    WHERE p.tenant COLLATE "POSIX" = $1 AND p.state = 'parked' AND (p.parked_at, p.run_id, p.id) > ($4::timestamptz, $5::text, $6::text)
    ORDER BY p.parked_at, p.run_id, p.id
    LIMIT $7
) p
WHERE p.passes OR p.last_one
ORDER BY p.parked_at, p.run_id, p.id
LIMIT $8

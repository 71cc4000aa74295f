-- How many live push registrations are failing, and how many are parked, each up to a maximum. The orders only choose the index to walk.
SELECT
    (SELECT count(*)
        FROM (
            SELECT FROM push_registrations p WHERE p.state = 'live' AND p.failing_since IS NOT NULL
            ORDER BY p.tenant COLLATE "POSIX", p.failing_since, p.run_id, p.id LIMIT $1
        ) i),
    (SELECT count(*) FROM (SELECT FROM push_registrations p WHERE p.state = 'parked' ORDER BY p.tenant COLLATE "POSIX", p.run_id, p.id LIMIT $1) i)

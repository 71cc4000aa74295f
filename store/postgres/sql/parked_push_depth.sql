-- How many push registrations are parked, up to a maximum. The order only chooses the index to walk.
SELECT count(*) FROM (SELECT FROM push_registrations p WHERE p.state = 'parked' ORDER BY p.tenant COLLATE "POSIX", p.run_id, p.id LIMIT $1) i

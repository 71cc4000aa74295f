-- Entries of attempt logs that are not kept for good, the oldest first.
SELECT l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no FROM push_log l WHERE NOT l.kept AND l.at <= $1 ORDER BY l.at LIMIT $2

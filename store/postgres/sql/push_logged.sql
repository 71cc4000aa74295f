-- An entry of an attempt log by its id.
SELECT l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no, l.entry_id, l.at, l.kept, l.entry
FROM push_log l
WHERE l.tenant COLLATE "POSIX" = $1 AND l.run_id = $2 AND l.id = $3 AND l.incarnation = $4 AND l.entry_id = $5 AND l.entry_id <> ''

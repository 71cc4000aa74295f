-- The walk over all attempt logs, by primary key.
SELECT l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no, l.entry_id, l.at, l.kept, l.entry
FROM push_log l
WHERE (l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no) > ($1::text, $2::text, $3::text, $4::bigint, $5::bigint)
ORDER BY l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no
LIMIT $6::bigint

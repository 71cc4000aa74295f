-- A page of a push registration's attempt log, the newest first; of its latest incarnation where none is named.
SELECT l.tenant, l.run_id, l.id, l.incarnation, l.attempt_no, l.entry_id, l.at, l.kept, l.entry
FROM push_log l
WHERE l.tenant = $1 AND l.run_id = $2 AND l.id = $3 AND l.attempt_no < $5 AND l.incarnation = CASE
    WHEN $4::bigint <> 0 THEN $4
    ELSE (
        SELECT x.incarnation
        FROM push_log x
        WHERE x.tenant = $1 AND x.run_id = $2 AND x.id = $3
        ORDER BY x.tenant DESC, x.run_id DESC, x.id DESC, x.incarnation DESC
        LIMIT 1
    ) END
ORDER BY l.tenant DESC, l.run_id DESC, l.id DESC, l.incarnation DESC, l.attempt_no DESC
LIMIT $6

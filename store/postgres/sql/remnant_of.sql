-- A remnant of a run, or of a workflow.
(SELECT x.tenant, x.run_id, x.workflow_id, x.first_seq, x.last_seq
FROM remnants x
WHERE x.tenant = $1::text AND x.run_id = $2::text)
UNION ALL
(SELECT x.tenant, x.run_id, x.workflow_id, x.first_seq, x.last_seq
FROM remnants x
WHERE x.tenant COLLATE "POSIX" = $3::text AND x.workflow_id = $4::text
LIMIT 1)
LIMIT 1

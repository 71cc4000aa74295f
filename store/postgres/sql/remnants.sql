-- Some remnants, locked; those locked by others are passed over.
SELECT x.tenant, x.run_id, x.workflow_id, x.first_seq, x.last_seq
FROM remnants x
ORDER BY x.tenant, x.run_id
LIMIT $1
FOR UPDATE SKIP LOCKED

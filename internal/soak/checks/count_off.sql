-- A workflow's row counts the open waits of its current run.
SELECT format('%s/%s counts %s, has %s', f.tenant, f.workflow_id, f.open_waits, count(w.number))
FROM workflows f LEFT JOIN waits w ON w.tenant = f.tenant AND w.workflow_id = f.workflow_id AND w.run_id = f.run_id
GROUP BY f.tenant, f.workflow_id, f.open_waits
HAVING count(w.number) <> f.open_waits

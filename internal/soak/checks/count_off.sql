-- A workflow's row counts the open waits and the live armings of its current run.
SELECT format('%s/%s counts %s waits, has %s', f.tenant, f.workflow_id, f.open_waits, count(w.number))
FROM workflows f LEFT JOIN waits w ON w.tenant = f.tenant AND w.workflow_id = f.workflow_id AND w.run_id = f.run_id
GROUP BY f.tenant, f.workflow_id, f.open_waits
HAVING count(w.number) <> f.open_waits
UNION ALL
SELECT format('%s/%s counts %s armings, has %s', f.tenant, f.workflow_id, f.live_timers, count(t.timer_id))
FROM workflows f LEFT JOIN timers t ON t.tenant = f.tenant AND t.workflow_id = f.workflow_id AND t.run_id = f.run_id
GROUP BY f.tenant, f.workflow_id, f.live_timers
HAVING count(t.timer_id) <> f.live_timers

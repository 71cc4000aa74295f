-- A wait that the history of a running run leaves open has a row; a row has such a wait. A reopening opens none: they are registered again.
SELECT format('%s/%s %s has no row', h.tenant, h.run_id, h.effect)
FROM history h JOIN runs r USING (tenant, run_id)
WHERE h.kind = 'wait.registered' AND r.sealed_at IS NULL
    AND NOT EXISTS (SELECT FROM history c WHERE c.tenant = h.tenant AND c.run_id = h.run_id AND c.effect = h.effect AND c.attempt = h.attempt AND c.closes)
    AND NOT EXISTS (SELECT FROM history o WHERE o.tenant = h.tenant AND o.run_id = h.run_id AND o.kind = 'run.reopened' AND o.seq > h.seq)
    AND NOT EXISTS (SELECT FROM waits w WHERE w.tenant = h.tenant AND w.run_id = h.run_id AND w.effect = h.effect)
UNION ALL
SELECT format('%s/%s %s has a row and is closed, ended or was never registered', w.tenant, w.run_id, w.effect)
FROM waits w LEFT JOIN runs r USING (tenant, run_id)
WHERE r.run_id IS NULL OR r.sealed_at IS NOT NULL
    OR NOT EXISTS (SELECT FROM history h WHERE h.tenant = w.tenant AND h.run_id = w.run_id AND h.effect = w.effect AND h.attempt = w.attempt AND h.kind = 'wait.registered')
    OR EXISTS (SELECT FROM history c WHERE c.tenant = w.tenant AND c.run_id = w.run_id AND c.effect = w.effect AND c.attempt = w.attempt AND c.closes)

-- timers.md section 5: a wait is open for an event that was received before its deadline, and for no other, however late either is worked. An event counts as received
-- in time here when its acceptance was known in time: one that was being stored at the deadline nobody was told of.
SELECT format('%s/%s %s answered by an event received %s after its deadline', h.tenant, h.run_id, h.effect, (h.data::jsonb ->> 'received_at')::timestamptz - a.fire_at)
FROM soak.armings a JOIN history h ON h.tenant = a.tenant AND h.workflow_id = a.workflow_id AND h.seq = a.ended
WHERE a.class = 'wait' AND a.how = 'wait.answered' AND (h.data::jsonb ->> 'received_at')::timestamptz >= a.fire_at
UNION ALL
SELECT format('%s/%s %s timed out, its event was accepted %s before', r.tenant, r.run_id, r.effect, a.fire_at - e.at)
FROM soak.races r JOIN soak.armings a ON a.tenant = r.tenant AND a.run_id = r.run_id AND a.class = 'wait' AND a.name = r.effect
JOIN soak.accepted e ON e.tenant = r.tenant AND e.source = r.source AND e.id = r.id
WHERE a.how = 'wait.timed_out' AND e.at < a.fire_at

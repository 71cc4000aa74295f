-- I6: where an event says it was answered, the history holds that answer.
SELECT format('%s/%s/%s says %s seq %s', e.tenant, e.source, e.id, e.workflow_id, e.seq)
FROM events e LEFT JOIN history h ON h.tenant = e.tenant AND h.workflow_id = e.workflow_id AND h.seq = e.seq
    AND h.kind = 'wait.answered' AND h.run_id = e.run_id AND h.effect = e.effect
    AND h.data::jsonb ->> 'event_source' = e.source AND h.data::jsonb ->> 'event_id' = e.id
WHERE e.state = 'consumed' AND h.seq IS NULL

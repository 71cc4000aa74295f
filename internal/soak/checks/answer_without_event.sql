-- I6: what a history holds as an answer is an event that was consumed by just that.
SELECT format('%s/%s seq %s holds %s', h.tenant, h.workflow_id, h.seq, h.data)
FROM history h LEFT JOIN events e ON e.tenant = h.tenant AND e.source = h.data::jsonb ->> 'event_source' AND e.id = h.data::jsonb ->> 'event_id'
    AND e.state = 'consumed' AND e.workflow_id = h.workflow_id AND e.seq = h.seq
WHERE h.kind = 'wait.answered' AND e.number IS NULL

-- I3: an event answers at most one wait.
SELECT format('%s/%s/%s %s times', tenant, data::jsonb ->> 'event_source', data::jsonb ->> 'event_id', count(*))
FROM history
WHERE kind = 'wait.answered'
GROUP BY tenant, data::jsonb ->> 'event_source', data::jsonb ->> 'event_id'
HAVING count(*) > 1

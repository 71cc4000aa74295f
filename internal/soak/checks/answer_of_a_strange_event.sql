-- M1..M3: type and source fit, the key that met is one of the wait's and one of the event's; the payload is the event's own, whole.
SELECT format('%s/%s seq %s', h.tenant, h.workflow_id, h.seq)
FROM history h
JOIN events e ON e.tenant = h.tenant AND e.source = h.data::jsonb ->> 'event_source' AND e.id = h.data::jsonb ->> 'event_id'
LEFT JOIN history r ON r.tenant = h.tenant AND r.run_id = h.run_id AND r.effect = h.effect AND r.attempt = h.attempt AND r.kind = 'wait.registered'
WHERE h.kind = 'wait.answered' AND (
    r.seq IS NULL OR r.seq > h.seq
    OR r.data::jsonb ->> 'type' IS DISTINCT FROM e.type
    OR coalesce(r.data::jsonb ->> 'from', e.source) <> e.source
    OR (e.target <> '' AND e.target <> h.run_id)
    OR (e.target = '' AND (h.data::jsonb -> 'key' IS NULL OR NOT r.data::jsonb -> 'keys' @> jsonb_build_array(h.data::jsonb -> 'key')
        OR NOT EXISTS (SELECT FROM generate_series(1, cardinality(e.keys), 2) i
            WHERE e.keys[i] = h.data::jsonb -> 'key' ->> 'namespace' AND e.keys[i + 1] = h.data::jsonb -> 'key' ->> 'value')))
    OR convert_from(h.payload, 'UTF8')::jsonb ->> 'id' IS DISTINCT FROM e.id
    OR convert_from(h.payload, 'UTF8')::jsonb ? 'forged')

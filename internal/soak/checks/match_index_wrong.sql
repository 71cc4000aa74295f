-- Key rows exist exactly for live events and open waits.
(
    SELECT format('event key %s %s=%s %s %s is missing', tenant, namespace, value, type, number) FROM (
        SELECT e.tenant, k.namespace, k.value, e.type, e.number
        FROM events e, LATERAL (
            SELECT e.keys[i] AS namespace, e.keys[i + 1] AS value FROM generate_series(1, cardinality(e.keys), 2) i WHERE e.target = ''
            UNION SELECT '', e.target WHERE e.target <> '' OR cardinality(e.keys) = 0) k
        WHERE e.state = 'live'
        EXCEPT SELECT tenant, namespace, value, type, number FROM event_keys) missing
)
UNION ALL
(
    SELECT format('event key %s %s=%s %s %s is left over', tenant, namespace, value, type, number) FROM (
        SELECT tenant, namespace, value, type, number FROM event_keys
        EXCEPT
        SELECT e.tenant, k.namespace, k.value, e.type, e.number
        FROM events e, LATERAL (
            SELECT e.keys[i] AS namespace, e.keys[i + 1] AS value FROM generate_series(1, cardinality(e.keys), 2) i WHERE e.target = ''
            UNION SELECT '', e.target WHERE e.target <> '' OR cardinality(e.keys) = 0) k
        WHERE e.state = 'live') leftover
)
UNION ALL
(
    SELECT format('wait key %s %s=%s %s %s is missing', tenant, namespace, value, type, number) FROM (
        SELECT w.tenant, w.keys[i] AS namespace, w.keys[i + 1] AS value, w.type, w.number
        FROM waits w, generate_series(1, cardinality(w.keys), 2) i WHERE w.held_number IS NULL
        EXCEPT SELECT tenant, namespace, value, type, number FROM wait_keys) missing
)
UNION ALL
(
    SELECT format('wait key %s %s=%s %s %s is left over', tenant, namespace, value, type, number) FROM (
        SELECT tenant, namespace, value, type, number FROM wait_keys
        EXCEPT
        SELECT w.tenant, w.keys[i], w.keys[i + 1], w.type, w.number
        FROM waits w, generate_series(1, cardinality(w.keys), 2) i WHERE w.held_number IS NULL) leftover
)

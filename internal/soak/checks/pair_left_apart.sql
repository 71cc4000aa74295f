-- O6: no live event meets an open wait of a run that goes on. Judged from the rows themselves, not from the match index.
WITH live AS MATERIALIZED (
    SELECT e.tenant, e.source, e.id, e.number, e.type, e.target, e.keys[i] AS namespace, e.keys[i + 1] AS value
    FROM events e, generate_series(1, cardinality(e.keys), 2) i
    WHERE e.state = 'live' AND NOT e.erased AND (e.expires_at IS NULL OR e.expires_at > rdv_now())
), open AS MATERIALIZED (
    SELECT w.tenant, w.run_id, w.effect, w.type, w.from_source, w.keys[i] AS namespace, w.keys[i + 1] AS value
    FROM waits w JOIN runs r USING (tenant, run_id), generate_series(1, cardinality(w.keys), 2) i
    WHERE w.held_number IS NULL AND r.sealed_at IS NULL
)
SELECT format('%s/%s/%s and %s %s', l.tenant, l.source, l.id, o.run_id, o.effect)
FROM live l JOIN open o USING (tenant, type, namespace, value)
WHERE l.target IN ('', o.run_id) AND o.from_source IN ('', l.source)
UNION
SELECT format('%s/%s/%s to %s, and its %s', e.tenant, e.source, e.id, w.run_id, w.effect)
FROM events e JOIN waits w ON w.tenant = e.tenant AND w.run_id = e.target AND w.type = e.type AND w.held_number IS NULL
JOIN runs r ON r.tenant = w.tenant AND r.run_id = w.run_id
WHERE e.state = 'live' AND e.target <> '' AND (cardinality(e.keys) = 0 OR cardinality(w.keys) = 0)
    AND w.from_source IN ('', e.source) AND r.sealed_at IS NULL

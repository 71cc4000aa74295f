-- Every wait whose one event was accepted is answered, by that event; unless the wait was withdrawn or its run ended.
SELECT format('%s/%s %s and %s/%s (%s)', p.tenant, p.run_id, p.effect, p.source, p.id, e.state)
FROM soak.pairs p
JOIN soak.accepted USING (tenant, source, id)
JOIN soak.registered USING (tenant, run_id, effect)
JOIN events e USING (tenant, source, id)
LEFT JOIN history h ON h.tenant = p.tenant AND h.run_id = p.run_id AND h.effect = p.effect AND h.closes
LEFT JOIN runs r ON r.tenant = p.tenant AND r.run_id = p.run_id
WHERE NOT (e.state = 'consumed' AND e.run_id = p.run_id AND e.effect = p.effect AND h.kind = 'wait.answered')
    AND NOT coalesce(h.kind = 'wait.withdrawn', false) AND r.sealed_at IS NULL

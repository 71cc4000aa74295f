-- How many live events are targeted at each run: they stand under the empty namespace.
SELECT k.place, i.n
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (tenant, run_id, place)
CROSS JOIN LATERAL (SELECT count(*) AS n FROM event_keys i WHERE i.tenant = k.tenant AND i.namespace = '' AND i.value = k.run_id) i
WHERE i.n > 0

-- How many live events are targeted at each run: they stand under the empty namespace.
SELECT k.place, count(*)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (tenant, run_id, place)
JOIN event_keys i ON i.tenant = k.tenant AND i.namespace = '' AND i.value = k.run_id
GROUP BY k.place

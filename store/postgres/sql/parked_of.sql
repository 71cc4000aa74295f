-- Mail: parked waits per run that are not quarantined.
SELECT k.place, w.n
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (tenant, run_id, place)
CROSS JOIN LATERAL (
    -- Not as conditions: the waits of one run are to be looked at, not all parked ones.
    SELECT count(*) FILTER (WHERE w.held_number IS NOT NULL AND w.quarantined_at IS NULL) AS n FROM waits w
    WHERE w.tenant = k.tenant AND w.run_id = k.run_id
) w
WHERE w.n > 0

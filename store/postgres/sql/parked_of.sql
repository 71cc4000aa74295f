-- Mail: parked waits per run that are not quarantined.
SELECT k.place, count(*)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (tenant, run_id, place)
JOIN waits w ON w.tenant = k.tenant AND w.run_id = k.run_id
WHERE w.held_number IS NOT NULL AND w.quarantined_at IS NULL
GROUP BY k.place

-- No claim stands once everything has settled: neither from the event's side nor from the wait's.
SELECT format('event %s/%s/%s claimed for %s %s', tenant, source, id, claim_run, claim_effect) FROM events WHERE state = 'claimed'
UNION ALL
SELECT format('wait %s/%s %s holds %s/%s, attempts %s, next %s, quarantined %s', tenant, run_id, effect, held_source, held_id, attempts, next_attempt_at, quarantined_at)
FROM waits WHERE held_number IS NOT NULL

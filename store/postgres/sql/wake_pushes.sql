-- Idle push registrations of runs, of workflows that this transaction has locked, that take one of those kinds of records: they are due now. One statement a batch.
UPDATE push_registrations p SET state = 'live', next_attempt_at = n.at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[]) WITH ORDINALITY AS n (tenant, run_id, kinds, at, place)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE p.tenant = ANY (ARRAY[n.tenant]) AND p.run_id = n.run_id AND p.state = 'idle' AND p.takes & n.kinds <> 0
RETURNING n.place

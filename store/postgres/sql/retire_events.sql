-- Events that became dead letters, each only while its version is the one that was read (R6): claim and takes are over, and nothing else about them changed; no
-- payload is touched. The numbers come sorted and the join keeps their order, so that rows are locked in one order everywhere (R7).
UPDATE events e SET
    version = e.version + 1, state = 'dead', dead_reason = n.dead_reason, dead_detail = n.dead_detail, dead_at = n.dead_at,
    claim_run = '', claim_effect = '', claimed_at = NULL, offer_failures = 0, take_until = NULL, take_open = false, takes = 0
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[]) AS n (number, version, dead_reason, dead_detail, dead_at)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE e.number = ANY (ARRAY[n.number]) AND e.version = n.version

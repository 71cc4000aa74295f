-- Events that were answered, each only while its version is the one that was read (R6): the payload is in the history now, claim and takes are over, and
-- nothing else about them changed. The numbers come sorted and the join keeps their order, so that rows are locked in one order everywhere (R7).
UPDATE events e SET
    version = e.version + 1, state = 'consumed', payload = NULL, workflow_id = n.workflow_id, run_id = n.run_id, effect = n.effect, seq = n.seq,
    claim_run = '', claim_effect = '', claimed_at = NULL, offer_failures = 0, take_until = NULL, take_open = false, takes = 0
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS n (number, version, workflow_id, run_id, effect, seq)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE e.number = ANY (ARRAY[n.number]) AND e.version = n.version

-- Events as they are left, each only while its version is the one that was read (R6). The numbers come sorted and the join keeps their order, so that
-- rows are locked in one order everywhere (R7).
UPDATE events e SET
    version = e.version + 1,
    digest = n.digest, live_since = n.live_since, expires_at = n.expires_at, target = n.target, state = n.state, claim_run = n.claim_run,
    claim_effect = n.claim_effect, claimed_at = n.claimed_at, workflow_id = n.workflow_id, run_id = n.run_id, effect = n.effect, seq = n.seq,
    dead_reason = n.dead_reason, dead_detail = n.dead_detail, dead_at = n.dead_at, erased = n.erased, offer_failures = n.offer_failures,
    take = n.take, take_until = n.take_until, take_open = n.take_open, takes = n.takes, requeues = n.requeues,
    purged = n.purged, op = n.op, op_actor = n.op_actor, op_basis = n.op_basis,
    payload = CASE WHEN n.shed THEN NULL ELSE e.payload END, keys = CASE WHEN n.purged THEN '{}' ELSE e.keys END
FROM unnest(
    $1::bigint[], $2::bigint[], $3::bytea[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::timestamptz[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::timestamptz[], $18::boolean[],
    $19::integer[], $20::bigint[], $21::timestamptz[], $22::boolean[], $23::integer[], $24::integer[], $25::boolean[], $26::text[], $27::text[], $28::text[], $29::boolean[])
AS n (
    number, version, digest, live_since, expires_at, target, state, claim_run, claim_effect, claimed_at, workflow_id, run_id, effect, seq,
    dead_reason, dead_detail, dead_at, erased, offer_failures, take, take_until, take_open, takes, requeues, purged, op, op_actor, op_basis, shed)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE e.number = ANY (ARRAY[n.number]) AND e.version = n.version

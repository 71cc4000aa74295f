-- New events, by identity (R7). One that is there already is a violation of the primary key.
INSERT INTO events (
    number, version, tenant, source, id, type, keys, content_type, payload, digest, received_at, live_since, expires_at, target, state, claim_run,
    claim_effect, claimed_at, workflow_id, run_id, effect, seq, dead_reason, dead_detail, dead_at, erased, offer_failures, take, take_until,
    take_open, takes, requeues, purged, op, op_actor, op_basis, minted_actor, minted_basis, trace_parent, trace_state)
SELECT
    n.number, 1, n.tenant, n.source, n.id, n.type, n.keys::text[], n.content_type, n.payload, n.digest, n.received_at, n.live_since,
    n.expires_at, n.target, n.state, n.claim_run, n.claim_effect, n.claimed_at, n.workflow_id, n.run_id, n.effect, n.seq, n.dead_reason,
    n.dead_detail, n.dead_at, n.erased, n.offer_failures, n.take, n.take_until, n.take_open, n.takes, n.requeues, n.purged, n.op, n.op_actor, n.op_basis, n.minted_actor, n.minted_basis,
    n.trace_parent, n.trace_state
FROM unnest(
    $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::bytea[], $10::timestamptz[],
    $11::timestamptz[], $12::timestamptz[], $13::text[], $14::text[], $15::text[], $16::text[], $17::timestamptz[], $18::text[], $19::text[],
    $20::text[], $21::bigint[], $22::text[], $23::text[], $24::timestamptz[], $25::boolean[], $26::integer[], $27::bigint[], $28::timestamptz[],
    $29::boolean[], $30::integer[], $31::integer[], $32::boolean[], $33::text[], $34::text[], $35::text[], $36::text[], $37::text[], $38::text[], $39::text[])
AS n (
    number, tenant, source, id, type, keys, content_type, payload, digest, received_at, live_since, expires_at, target, state, claim_run,
    claim_effect, claimed_at, workflow_id, run_id, effect, seq, dead_reason, dead_detail, dead_at, erased, offer_failures, take, take_until,
    take_open, takes, requeues, purged, op, op_actor, op_basis, minted_actor, minted_basis, trace_parent, trace_state)

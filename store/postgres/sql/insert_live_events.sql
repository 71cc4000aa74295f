-- New live events, by identity (R7): what the doors store. One that is there already is a violation of the primary key.
INSERT INTO events (
    number, version, tenant, source, id, type, keys, content_type, payload, digest, received_at, live_since, expires_at, target,
    minted_actor, minted_basis, trace_parent, trace_state,
    state, claim_run, claim_effect, workflow_id, run_id, effect, seq, dead_reason, dead_detail, erased, offer_failures, take, take_open, takes, requeues,
    purged, op, op_actor, op_basis)
SELECT
    n.number, 1, n.tenant, n.source, n.id, n.type, n.keys::text[], n.content_type, n.payload, n.digest, n.received_at, n.live_since, n.expires_at,
    n.target, n.minted_actor, n.minted_basis, n.trace_parent, n.trace_state,
    -- Nothing has happened to them yet.
    'live', '', '', '', '', '', 0, '', '', false, 0, 0, false, 0, 0, false, '', '', ''
FROM unnest(
    $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::bytea[], $10::timestamptz[],
    $11::timestamptz[], $12::timestamptz[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[])
AS n (
    number, tenant, source, id, type, keys, content_type, payload, digest, received_at, live_since, expires_at, target, minted_actor, minted_basis,
    trace_parent, trace_state)

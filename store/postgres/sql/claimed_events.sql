-- The events whose standing claims name those waits.
SELECT k.place,
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    '', NULL::bytea -- no payload leaves the store
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (tenant, run_id, effect, place)
CROSS JOIN LATERAL (
    SELECT * FROM events e WHERE e.tenant COLLATE "POSIX" = k.tenant AND e.claim_run = k.run_id AND e.claim_effect = k.effect AND e.claim_run <> '' OFFSET 0
) e

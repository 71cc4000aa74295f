-- The live events targeted at runs.
SELECT
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    '', NULL::bytea -- no payload leaves the store
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (tenant, run_id, place)
CROSS JOIN LATERAL (SELECT i.number FROM event_keys i WHERE i.tenant = k.tenant AND i.namespace = '' AND i.value = k.run_id OFFSET 0) i
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = i.number OFFSET 0) e
-- The caller sorts the runs.
ORDER BY k.place, e.number

-- Live events under each key, whatever their type.
SELECT k.place,
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    '', NULL::bytea -- no payload leaves the store
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS k (namespace, value, place)
CROSS JOIN LATERAL (
    SELECT i.type, i.number
    FROM event_keys i
    WHERE i.tenant = $1 AND i.namespace = k.namespace AND i.value = k.value
    ORDER BY i.type, i.number
    LIMIT $4
) i
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = i.number OFFSET 0) e
ORDER BY k.place, i.type, i.number

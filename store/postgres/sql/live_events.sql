-- The match index from the side of waits: live events under each key, the lowest numbers first.
SELECT k.place,
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    '', NULL::bytea -- no payload leaves the store
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
    WITH ORDINALITY AS k (tenant, namespace, value, type, after, most, place)
CROSS JOIN LATERAL (
    SELECT i.number
    FROM event_keys i
    WHERE i.tenant = k.tenant AND i.namespace = k.namespace AND i.value = k.value AND i.type = k.type AND i.number > k.after
    ORDER BY i.number
    LIMIT k.most
) i
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = i.number OFFSET 0) e
ORDER BY k.place, i.number

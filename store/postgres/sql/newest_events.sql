-- The newest live events: those without an expiry of their own by age, then those that expire last. An event comes once for each of its key rows.
SELECT i.place,
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    '', NULL::bytea -- no payload leaves the store
FROM (
    (SELECT 1::bigint AS place, i.live_since AS at, i.number
    FROM event_keys i
    WHERE i.tenant COLLATE "POSIX" = $1 AND i.expires_at IS NULL
    ORDER BY i.live_since DESC, i.number DESC
    LIMIT $2)
    UNION ALL
    (SELECT 2::bigint, i.expires_at, i.number
    FROM event_keys i
    WHERE i.tenant COLLATE "POSIX" = $1 AND i.expires_at IS NOT NULL
    ORDER BY i.expires_at DESC, i.number DESC
    LIMIT $2)
) i
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = i.number OFFSET 0) e
ORDER BY i.place, i.at DESC, i.number DESC

-- Of a tenant's newest live events those of a type: of those without an expiry of their own by age, and of the others of those that expire last. Every row says
-- how many key rows were looked at, of the longer of the two walks; where no event is of the type there is one row without any.
WITH walk AS MATERIALIZED (
    (SELECT false AS own, i.number, i.type
    FROM event_keys i
    WHERE i.tenant COLLATE "POSIX" = $1 AND i.expires_at IS NULL
    ORDER BY i.live_since DESC, i.number DESC
    LIMIT $4)
    UNION ALL
    (SELECT true, i.number, i.type
    FROM event_keys i
    WHERE i.tenant COLLATE "POSIX" = $1 AND i.expires_at IS NOT NULL
    ORDER BY i.expires_at DESC, i.number DESC
    LIMIT $4)
)
SELECT l.looked, e.number IS NOT NULL,
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    '', NULL::bytea -- no payload leaves the store
FROM (SELECT greatest(count(*) FILTER (WHERE own), count(*) FILTER (WHERE NOT own)) AS looked FROM walk) l
LEFT JOIN (SELECT DISTINCT i.number FROM walk i WHERE i.type = $2 ORDER BY i.number DESC LIMIT $3) i ON true
LEFT JOIN LATERAL (SELECT * FROM events e WHERE e.number = i.number OFFSET 0) e ON true
ORDER BY i.number DESC

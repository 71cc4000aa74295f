-- Events by identity.
SELECT
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    -- Only where it is asked for: a payload out of line is not even fetched otherwise.
    CASE WHEN $4::boolean THEN e.content_type ELSE '' END, CASE WHEN $4::boolean THEN e.payload END
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant, source, id)
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.tenant = k.tenant AND e.source = k.source AND e.id = k.id OFFSET 0) e

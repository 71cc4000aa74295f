-- Events by number.
SELECT
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    -- Only where it is asked for: a payload out of line is not even fetched otherwise.
    CASE WHEN $2::boolean THEN e.content_type ELSE '' END, CASE WHEN $2::boolean THEN e.payload END
FROM unnest($1::bigint[]) AS k (number)
CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.number = k.number OFFSET 0) e

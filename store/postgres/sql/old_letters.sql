-- Dead letters by age, for each tenant its own number of them behind its own position, locked; rows locked by others are passed over.
SELECT
    e.number, e.version, e.tenant, e.source, e.id, e.type, e.keys, e.digest, e.received_at, e.live_since, e.expires_at, e.target, e.state,
    e.claim_run, e.claim_effect, e.claimed_at, e.workflow_id, e.run_id, e.effect, e.seq, e.dead_reason, e.dead_detail, e.dead_at, e.erased,
    e.offer_failures, e.take, e.take_until, e.take_open, e.takes, e.requeues, e.purged, e.op, e.op_actor, e.op_basis, e.minted_actor, e.minted_basis, e.trace_parent, e.trace_state,
    octet_length(e.payload),
    '', NULL::bytea -- no payload leaves the store
FROM unnest($2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[]) AS k (tenant, after, number, most)
CROSS JOIN LATERAL (
    SELECT * FROM events e
    WHERE e.tenant COLLATE "POSIX" = k.tenant AND ((CASE WHEN NOT e.purged THEN e.dead_at END), e.number) > (k.after, k.number)
        AND (CASE WHEN NOT e.purged THEN e.dead_at END) IS NOT NULL AND (CASE WHEN NOT e.purged THEN e.dead_at END) <= $1 -- as in the index events_died
    ORDER BY (CASE WHEN NOT e.purged THEN e.dead_at END), e.number
    LIMIT k.most
    FOR NO KEY UPDATE SKIP LOCKED
) e
ORDER BY e.dead_at, e.number

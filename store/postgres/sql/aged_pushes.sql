-- Live push registrations that nobody sends for and that have been failing since an instant or earlier, for each tenant its own number of them behind its own
-- position, locked; rows locked by others are passed over.
SELECT
    p.tenant, p.run_id, p.id, p.workflow_id, p.namespace, p.gate, p.incarnation, p.version, p.created_at, p.takes, p.settings, p.next_seq, p.next_index, p.state,
    p.next_attempt_at, p.attempts, p.failing_since, p.rejects, p.attempt_no, p.lost, p.error, p.parked_at, p.reason, p.lease_token, p.lease_owner,
    p.lease_request, p.lease_until, p.lease_revoked, p.ended_token, p.ended_as, p.settle_id, p.settle_outcome, p.unpark_op, p.skipped, p.logged, p.last
FROM unnest($3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bigint[]) AS k (tenant, after, run_id, id, most)
CROSS JOIN LATERAL (
    SELECT *
    FROM push_registrations p
    WHERE p.tenant COLLATE "POSIX" = k.tenant AND p.state = 'live' AND p.failing_since IS NOT NULL AND p.failing_since <= $1
        AND (p.lease_until IS NULL OR p.lease_until <= $2) AND (p.failing_since, p.run_id, p.id) > (k.after, k.run_id, k.id)
    ORDER BY p.failing_since, p.run_id, p.id
    LIMIT k.most
    FOR NO KEY UPDATE SKIP LOCKED
) p

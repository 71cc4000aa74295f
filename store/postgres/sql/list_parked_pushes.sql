-- A page of parked push registrations by (run, id): those that pass, and the last that it may look at.
SELECT
    p.passes, p.last_one,
    p.tenant, p.run_id, p.id, p.workflow_id, p.namespace, p.gate, p.incarnation, p.version, p.created_at, p.takes, p.settings, p.next_seq, p.next_index, p.state,
    p.next_attempt_at, p.attempts, p.failing_since, p.rejects, p.attempt_no, p.lost, p.error, p.parked_at, p.reason, p.lease_token, p.lease_owner,
    p.lease_request, p.lease_until, p.lease_revoked, p.ended_token, p.ended_as, p.settle_id, p.settle_outcome, p.unpark_op, p.skipped, p.logged, p.last
FROM (
    SELECT p.*,
        row_number() OVER (ORDER BY p.run_id, p.id) = $6::bigint AS last_one,
        ($2 = '' OR p.reason = $2) AND ($3 = '' OR p.gate = $3) AS passes
    FROM push_registrations p
    WHERE p.tenant COLLATE "POSIX" = $1 AND p.state = 'parked' AND (p.run_id, p.id) > ($4::text, $5::text)
    ORDER BY p.run_id, p.id
    LIMIT $6
) p
WHERE p.passes OR p.last_one
ORDER BY p.run_id, p.id
LIMIT $7

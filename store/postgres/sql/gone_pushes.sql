-- Deleted push registrations whose last send lease is over, locked; rows locked by others are passed over.
SELECT
    p.tenant, p.run_id, p.id, p.workflow_id, p.namespace, p.gate, p.incarnation, p.version, p.created_at, p.takes, p.settings, p.next_seq, p.next_index, p.state,
    p.next_attempt_at, p.attempts, p.failing_since, p.rejects, p.attempt_no, p.lost, p.error, p.parked_at, p.reason, p.lease_token, p.lease_owner,
    p.lease_request, p.lease_until, p.lease_revoked, p.ended_token, p.ended_as, p.settle_id, p.settle_outcome, p.unpark_op, p.skipped, p.logged, p.last
FROM push_registrations p
WHERE p.state = 'gone' AND p.lease_until <= $1
ORDER BY p.lease_until
LIMIT $2
FOR NO KEY UPDATE SKIP LOCKED

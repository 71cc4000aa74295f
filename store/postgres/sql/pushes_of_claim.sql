-- What a claim leased and nobody settled since, locked.
SELECT
    p.tenant, p.run_id, p.id, p.workflow_id, p.namespace, p.gate, p.incarnation, p.version, p.created_at, p.takes, p.settings, p.next_seq, p.next_index, p.state,
    p.next_attempt_at, p.attempts, p.failing_since, p.rejects, p.attempt_no, p.lost, p.error, p.parked_at, p.reason, p.lease_token, p.lease_owner,
    p.lease_request, p.lease_until, p.lease_revoked, p.ended_token, p.ended_as, p.settle_id, p.settle_outcome, p.unpark_op, p.skipped, p.logged, p.last
FROM push_registrations p
WHERE p.lease_owner = $1 AND p.lease_request = $2 AND p.lease_owner <> '' AND NOT p.lease_revoked AND p.state = 'live'
ORDER BY p.next_attempt_at, p.tenant, p.run_id, p.id
FOR NO KEY UPDATE

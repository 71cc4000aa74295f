-- Push registrations by key, locked and read as they are under the lock; rows locked by others are passed over.
SELECT
    p.tenant, p.run_id, p.id, p.workflow_id, p.namespace, p.gate, p.incarnation, p.version, p.created_at, p.takes, p.settings, p.next_seq, p.next_index, p.state,
    p.next_attempt_at, p.attempts, p.failing_since, p.rejects, p.attempt_no, p.lost, p.error, p.parked_at, p.reason, p.lease_token, p.lease_owner,
    p.lease_request, p.lease_until, p.lease_revoked, p.ended_token, p.ended_as, p.settle_id, p.settle_outcome, p.unpark_op, p.skipped, p.logged, p.last
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant, run_id, id)
CROSS JOIN LATERAL (
    SELECT * FROM push_registrations p WHERE p.tenant = k.tenant AND p.run_id = k.run_id AND p.id = k.id FOR NO KEY UPDATE SKIP LOCKED
) p

-- Push registrations that this transaction has locked, but for what callers set.
UPDATE push_registrations p SET
    incarnation = n.incarnation, version = n.version, created_at = n.created_at, next_seq = n.next_seq, next_index = n.next_index, state = n.state,
    next_attempt_at = n.next_attempt_at, attempts = n.attempts, failing_since = n.failing_since, rejects = n.rejects, attempt_no = n.attempt_no,
    lost = n.lost, error = n.error, parked_at = n.parked_at, reason = n.reason, lease_token = n.lease_token, lease_owner = n.lease_owner,
    lease_request = n.lease_request, lease_until = n.lease_until, lease_revoked = n.lease_revoked, ended_token = n.ended_token, ended_as = n.ended_as,
    settle_id = n.settle_id, settle_outcome = n.settle_outcome, unpark_op = n.unpark_op, skipped = n.skipped, logged = n.logged, last = n.last
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::bigint[], $8::integer[], $9::text[], $10::timestamptz[],
    $11::integer[], $12::timestamptz[], $13::integer[], $14::bigint[], $15::integer[], $16::text[], $17::timestamptz[], $18::text[], $19::bigint[],
    $20::text[], $21::text[], $22::timestamptz[], $23::boolean[], $24::bigint[], $25::text[], $26::text[], $27::bytea[], $28::text[], $29::bigint[],
    $30::integer[], $31::bytea[])
AS n (
    tenant, run_id, id, incarnation, version, created_at, next_seq, next_index, state, next_attempt_at, attempts, failing_since, rejects, attempt_no, lost,
    error, parked_at, reason, lease_token, lease_owner, lease_request, lease_until, lease_revoked, ended_token, ended_as, settle_id, settle_outcome,
    unpark_op, skipped, logged, last)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE p.tenant = ANY (ARRAY[n.tenant]) AND p.run_id = n.run_id AND p.id = n.id

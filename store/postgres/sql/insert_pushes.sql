-- New push registrations. One that is there already is a violation of the primary key.
INSERT INTO push_registrations (
    tenant, run_id, id, incarnation, version, created_at, next_seq, next_index, state, next_attempt_at, attempts, failing_since, rejects, attempt_no, lost,
    error, parked_at, reason, lease_token, lease_owner, lease_request, lease_until, lease_revoked, ended_token, ended_as, settle_id, settle_outcome,
    unpark_op, skipped, logged, last, workflow_id, namespace, gate, takes, settings)
SELECT
    n.tenant, n.run_id, n.id, n.incarnation, n.version, n.created_at, n.next_seq, n.next_index, n.state, n.next_attempt_at, n.attempts, n.failing_since,
    n.rejects, n.attempt_no, n.lost, n.error, n.parked_at, n.reason, n.lease_token, n.lease_owner, n.lease_request, n.lease_until, n.lease_revoked,
    n.ended_token, n.ended_as, n.settle_id, n.settle_outcome, n.unpark_op, n.skipped, n.logged, n.last, n.workflow_id, n.namespace, n.gate, n.takes,
    n.settings
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::bigint[], $8::integer[], $9::text[], $10::timestamptz[],
    $11::integer[], $12::timestamptz[], $13::integer[], $14::bigint[], $15::integer[], $16::text[], $17::timestamptz[], $18::text[], $19::bigint[],
    $20::text[], $21::text[], $22::timestamptz[], $23::boolean[], $24::bigint[], $25::text[], $26::text[], $27::bytea[], $28::text[], $29::bigint[],
    $30::integer[], $31::bytea[], $32::text[], $33::text[], $34::text[], $35::bigint[], $36::bytea[])
AS n (
    tenant, run_id, id, incarnation, version, created_at, next_seq, next_index, state, next_attempt_at, attempts, failing_since, rejects, attempt_no, lost,
    error, parked_at, reason, lease_token, lease_owner, lease_request, lease_until, lease_revoked, ended_token, ended_as, settle_id, settle_outcome,
    unpark_op, skipped, logged, last, workflow_id, namespace, gate, takes, settings)

-- New waits. One that is there already is a violation of the primary key.
INSERT INTO waits (
    tenant, number, version, run_id, effect, workflow_id, shard, attempt, type, keys, from_source, trace_parent, trace_state, registered_at, deadline,
    open_since, held_number, held_source, held_id, claim_number, parked_at, attempts, next_attempt_at, last_error, take, take_until, take_settled,
    quarantined_at)
SELECT
    n.tenant, n.number, 1, n.run_id, n.effect, n.workflow_id, n.shard, n.attempt, n.type, n.keys::text[], n.from_source, n.trace_parent,
    n.trace_state, n.registered_at, n.deadline, n.open_since, n.held_number, n.held_source, n.held_id, n.claim_number, n.parked_at, n.attempts, n.next_attempt_at,
    n.last_error, n.take, n.take_until, n.take_settled, n.quarantined_at
FROM unnest(
    $1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::integer[], $8::text[], $9::text[], $10::text[], $11::text[],
    $12::text[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::bigint[], $17::text[], $18::text[], $19::bigint[], $20::timestamptz[],
    $21::integer[], $22::timestamptz[], $23::text[], $24::bigint[], $25::timestamptz[], $26::boolean[], $27::timestamptz[])
AS n (
    tenant, number, run_id, effect, workflow_id, shard, attempt, type, keys, from_source, trace_parent, trace_state, registered_at, deadline, open_since,
    held_number, held_source, held_id, claim_number, parked_at, attempts, next_attempt_at, last_error, take, take_until, take_settled, quarantined_at)

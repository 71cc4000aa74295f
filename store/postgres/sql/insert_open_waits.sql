-- New waits that hold nothing. One that is there already is a violation of the primary key.
INSERT INTO waits (
    tenant, number, version, run_id, effect, workflow_id, shard, attempt, type, keys, from_source, trace_parent, trace_state, registered_at, deadline, open_since,
    held_source, held_id, claim_number, attempts, last_error, take, take_settled)
SELECT
    n.tenant, n.number, 1, n.run_id, n.effect, n.workflow_id, n.shard, n.attempt, n.type, n.keys::text[], n.from_source, n.trace_parent, n.trace_state,
    n.registered_at, n.deadline, n.open_since, '', '', 0, 0, '', 0, false
FROM unnest(
    $1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::integer[], $8::text[], $9::text[], $10::text[], $11::text[],
    $12::text[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[])
AS n (
    tenant, number, run_id, effect, workflow_id, shard, attempt, type, keys, from_source, trace_parent, trace_state, registered_at, deadline, open_since)

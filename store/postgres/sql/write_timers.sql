-- Armings, whole. Where one stands under the key, it is over.
INSERT INTO timers (
    tenant, workflow_id, timer_id, run_id, class, effect, shard, fire_at, armed_seq, due_at, ready_at, attempts, last_error, parks, token, holder, hold_epoch,
    held_until, trace_parent, trace_state)
SELECT
    n.tenant, n.workflow_id, n.timer_id, n.run_id, n.class, n.effect, n.shard, n.fire_at, n.armed_seq, n.due_at, n.ready_at, n.attempts,
    n.last_error, n.parks, n.token, n.holder, n.hold_epoch, n.held_until, n.trace_parent, n.trace_state
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::timestamptz[], $9::bigint[], $10::timestamptz[],
    $11::timestamptz[], $12::integer[], $13::text[], $14::integer[], $15::bigint[], $16::text[], $17::bigint[], $18::timestamptz[], $19::text[], $20::text[])
AS n (
    tenant, workflow_id, timer_id, run_id, class, effect, shard, fire_at, armed_seq, due_at, ready_at, attempts, last_error, parks, token, holder, hold_epoch,
    held_until, trace_parent, trace_state)
ON CONFLICT (tenant, workflow_id, timer_id) DO UPDATE SET
    run_id = excluded.run_id, class = excluded.class, effect = excluded.effect, shard = excluded.shard, fire_at = excluded.fire_at,
    armed_seq = excluded.armed_seq, due_at = excluded.due_at, ready_at = excluded.ready_at, attempts = excluded.attempts,
    last_error = excluded.last_error, parks = excluded.parks, token = excluded.token, holder = excluded.holder, hold_epoch = excluded.hold_epoch,
    held_until = excluded.held_until, trace_parent = excluded.trace_parent, trace_state = excluded.trace_state

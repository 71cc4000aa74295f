-- Rows of workflows this transaction has locked, whole.
UPDATE workflows w SET
    run_id = n.run_id, type = n.type, queue = n.queue, status = n.status, head_seq = n.head_seq, created_at = n.created_at,
    started_at = n.started_at, closed_at = n.closed_at, updated_at = n.updated_at, parent = n.parent, failure_code = n.failure_code,
    failure_reason = n.failure_reason, failed_effect = n.failed_effect, open_effects = n.open_effects, open_waits = n.open_waits,
    live_timers = n.live_timers, registrations = n.registrations, reopened = n.reopened, lease_owner = n.lease_owner, lease_epoch = n.lease_epoch, lease_expires = n.lease_expires, lease_ended = n.lease_ended,
    acquire_id = n.acquire_id, reclaims = n.reclaims, pause_request = n.pause_request::jsonb, cancel_request = n.cancel_request::jsonb,
    paused_actor = n.paused_actor, paused_basis = n.paused_basis, paused_at = n.paused_at
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[], $9::timestamptz[], $10::timestamptz[],
    $11::timestamptz[], $12::text[], $13::text[], $14::text[], $15::text[], $16::integer[], $17::integer[], $18::integer[], $19::integer[],
    $20::bigint[], $21::text[], $22::bigint[], $23::timestamptz[], $24::text[], $25::text[], $26::integer[], $27::text[], $28::text[], $29::text[], $30::text[],
    $31::timestamptz[])
AS n (
    tenant, workflow_id, run_id, type, queue, status, head_seq, created_at, started_at, closed_at, updated_at, parent, failure_code, failure_reason,
    failed_effect, open_effects, open_waits, live_timers, registrations, reopened, lease_owner, lease_epoch, lease_expires, lease_ended, acquire_id, reclaims,
    pause_request, cancel_request, paused_actor, paused_basis, paused_at)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE w.tenant = ANY (ARRAY[n.tenant]) AND w.workflow_id = n.workflow_id

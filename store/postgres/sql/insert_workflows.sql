-- New workflows. One that is there already is a violation of the primary key.
INSERT INTO workflows (
    tenant, workflow_id, shard, run_id, type, queue, status, head_seq, created_at, started_at, closed_at, updated_at, parent, failure_code,
    failure_reason, failed_effect, open_effects, open_waits, live_timers, registrations, reopened, lease_owner, lease_epoch, lease_expires, lease_ended, acquire_id,
    reclaims, pause_request, cancel_request, paused_actor, paused_basis, paused_at)
SELECT
    n.tenant, n.workflow_id, n.shard, n.run_id, n.type, n.queue, n.status, n.head_seq, n.created_at, n.started_at, n.closed_at, n.updated_at,
    n.parent, n.failure_code, n.failure_reason, n.failed_effect, n.open_effects, n.open_waits, n.live_timers, n.registrations, n.reopened, n.lease_owner,
    n.lease_epoch, n.lease_expires, n.lease_ended, n.acquire_id, n.reclaims, n.pause_request::jsonb, n.cancel_request::jsonb, n.paused_actor, n.paused_basis, n.paused_at
FROM unnest(
    $1::text[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::timestamptz[], $10::timestamptz[],
    $11::timestamptz[], $12::timestamptz[], $13::text[], $14::text[], $15::text[], $16::text[], $17::integer[], $18::integer[], $19::integer[],
    $20::integer[], $21::bigint[], $22::text[], $23::bigint[], $24::timestamptz[], $25::text[], $26::text[], $27::integer[], $28::text[], $29::text[], $30::text[],
    $31::text[], $32::timestamptz[])
AS n (
    tenant, workflow_id, shard, run_id, type, queue, status, head_seq, created_at, started_at, closed_at, updated_at, parent, failure_code,
    failure_reason, failed_effect, open_effects, open_waits, live_timers, registrations, reopened, lease_owner, lease_epoch, lease_expires, lease_ended, acquire_id,
    reclaims, pause_request, cancel_request, paused_actor, paused_basis, paused_at)
-- None of an id that a remnant has.
WHERE NOT EXISTS (SELECT FROM remnants x WHERE x.tenant COLLATE "POSIX" = n.tenant AND x.workflow_id = n.workflow_id)

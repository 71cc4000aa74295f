-- Workflows by key, unlocked.
SELECT
    w.tenant, w.workflow_id, w.shard, w.run_id, w.type, w.queue, w.status, w.head_seq, w.created_at, w.started_at, w.closed_at, w.updated_at, w.parent,
    w.failure_code, w.failure_reason, w.failed_effect, w.open_effects, w.open_waits, w.live_timers, w.registrations, w.reopened, w.lease_owner, w.lease_epoch,
    w.lease_expires, w.lease_ended, w.acquire_id, w.reclaims, w.pause_request::text, w.cancel_request::text, w.paused_actor, w.paused_basis, w.paused_at
FROM unnest($1::text[], $2::text[]) AS k (tenant, workflow_id)
CROSS JOIN LATERAL (SELECT * FROM workflows w WHERE w.tenant = k.tenant AND w.workflow_id = k.workflow_id OFFSET 0) w

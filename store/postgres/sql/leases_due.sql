-- Owners whose lease ran out, for each tenant its own number of them behind its own position.
SELECT
    w.tenant, w.workflow_id, w.shard, w.run_id, w.type, w.queue, w.status, w.head_seq, w.created_at, w.started_at, w.closed_at, w.updated_at, w.parent,
    w.failure_code, w.failure_reason, w.failed_effect, w.open_effects, w.open_waits, w.live_timers, w.registrations, w.reopened, w.lease_owner, w.lease_epoch, w.lease_expires, w.lease_ended,
    w.acquire_id, w.reclaims, w.pause_request::text, w.cancel_request::text, w.paused_actor, w.paused_basis, w.paused_at
FROM unnest($2::text[], $3::timestamptz[], $4::text[], $5::bigint[]) AS k (tenant, after, workflow_id, most)
CROSS JOIN LATERAL (
    SELECT w.*
    FROM workflows w
    WHERE w.tenant COLLATE "POSIX" = k.tenant AND w.lease_owner <> '' AND w.lease_expires <= $1 AND (w.lease_expires, w.workflow_id) > (k.after, k.workflow_id)
        AND ($6::integer[] IS NULL OR w.shard = ANY ($6))
    ORDER BY w.lease_expires, w.workflow_id
    LIMIT k.most
) w
ORDER BY w.lease_expires, w.tenant, w.workflow_id

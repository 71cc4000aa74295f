-- A page of a tenant's workflows that started at an instant, by id: those that pass, and the last that it may look at.
SELECT
    w.passes, w.last,
    w.tenant, w.workflow_id, w.shard, w.run_id, w.type, w.queue, w.status, w.head_seq, w.created_at, w.started_at, w.closed_at, w.updated_at, w.parent,
    w.failure_code, w.failure_reason, w.failed_effect, w.open_effects, w.open_waits, w.live_timers, w.registrations, w.reopened, w.lease_owner, w.lease_epoch, w.lease_expires, w.lease_ended,
    w.acquire_id, w.reclaims, w.pause_request::text, w.cancel_request::text, w.paused_actor, w.paused_basis, w.paused_at
FROM (
    SELECT w.*,
        row_number() OVER (ORDER BY w.workflow_id) = $3::bigint AS last,
        (cardinality($5::text[]) = 0 OR w.type = ANY ($5))
            AND (cardinality($6::text[]) = 0 OR w.status = ANY ($6))
            AND (cardinality($7::text[]) = 0 OR w.queue = ANY ($7))
            AND starts_with(w.workflow_id, $8) AS passes
    FROM workflows w
    WHERE w.tenant COLLATE "POSIX" = $1 AND w.started_at = $2::timestamptz AND w.workflow_id > $9
    ORDER BY w.workflow_id
    LIMIT $3
) w
WHERE w.passes OR w.last
ORDER BY w.workflow_id
LIMIT $4

-- A page of a tenant's workflows, newest start first, then by id: two adjacent ranges of one index, each with the limit.
SELECT
    w.tenant, w.workflow_id, w.shard, w.run_id, w.type, w.queue, w.status, w.head_seq, w.created_at, w.started_at, w.closed_at, w.updated_at, w.parent,
    w.failure_code, w.failure_reason, w.failed_effect, w.open_effects, w.open_waits, w.live_timers, w.reopened, w.lease_owner, w.lease_epoch,
    w.lease_expires, w.lease_ended, w.acquire_id, w.reclaims, w.pause_request::text, w.cancel_request::text, w.paused_actor, w.paused_basis, w.paused_at
FROM (
    -- The rest of those that started when the last row of the page before did.
    (SELECT w.* FROM workflows w
    WHERE w.tenant COLLATE "POSIX" = $1 AND w.started_at = $2::timestamptz AND w.workflow_id > $3
        AND (cardinality($5::text[]) = 0 OR w.type = ANY ($5))
        AND (cardinality($6::text[]) = 0 OR w.status = ANY ($6))
        AND (cardinality($7::text[]) = 0 OR w.queue = ANY ($7))
        AND starts_with(w.workflow_id, $8)
    ORDER BY w.workflow_id
    LIMIT $4)
    UNION ALL
    -- Those that started before.
    (SELECT w.* FROM workflows w
    WHERE w.tenant COLLATE "POSIX" = $1 AND w.started_at < $2::timestamptz
        AND (cardinality($5::text[]) = 0 OR w.type = ANY ($5))
        AND (cardinality($6::text[]) = 0 OR w.status = ANY ($6))
        AND (cardinality($7::text[]) = 0 OR w.queue = ANY ($7))
        AND starts_with(w.workflow_id, $8)
    ORDER BY w.started_at DESC, w.workflow_id
    LIMIT $4)
) w
ORDER BY w.started_at DESC, w.workflow_id
LIMIT $4

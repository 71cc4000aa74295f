-- For each of some shards and each tenant that has timers there that can be taken now, the one that could be taken the longest.
WITH RECURSIVE t (shard, tenant, since, workflow_id, timer_id) AS (
    -- A walk from tenant to tenant over the index, in each shard that has any: its cost is the number of tenants, not of timers.
    SELECT k.shard, first.*
    FROM unnest($2::integer[]) AS k (shard)
    CROSS JOIN LATERAL (SELECT FROM timers t WHERE t.shard = k.shard AND t.ready_at <= $1 ORDER BY t.ready_at LIMIT 1) due
    CROSS JOIN LATERAL (
        SELECT t.tenant, t.ready_at, t.workflow_id, t.timer_id
        FROM timers t
        WHERE t.shard + 0 = k.shard
        ORDER BY t.tenant COLLATE "POSIX", t.ready_at, t.workflow_id, t.timer_id
        LIMIT 1
    ) first
    UNION ALL
    SELECT t.shard, next.*
    FROM t
    CROSS JOIN LATERAL (
        SELECT n.tenant, n.ready_at, n.workflow_id, n.timer_id
        FROM timers n
        WHERE n.shard + 0 = t.shard AND n.tenant COLLATE "POSIX" > t.tenant
        ORDER BY n.tenant COLLATE "POSIX", n.ready_at, n.workflow_id, n.timer_id
        LIMIT 1
    ) next
)
SELECT DISTINCT ON (d.tenant, d.shard) d.tenant, d.shard, d.since, d.workflow_id, d.timer_id
FROM (
    SELECT * FROM t WHERE t.since <= $1
    UNION ALL
    -- Held by an owner that was deposed since.
    SELECT k.shard, h.tenant, h.due_at, h.workflow_id, h.timer_id
    FROM unnest($2::integer[]) AS k (shard)
    CROSS JOIN LATERAL (SELECT * FROM shard_leases l WHERE l.pool = 'timer' AND l.shard = k.shard OFFSET 0) l
    CROSS JOIN LATERAL (SELECT * FROM timers h WHERE - h.shard = - k.shard AND h.held_until IS NOT NULL AND h.hold_epoch < l.epoch OFFSET 0) h
    WHERE h.ready_at > $1 AND h.due_at <= $1
) d
ORDER BY d.tenant, d.shard, d.since, d.workflow_id, d.timer_id

-- Tenants that have timers in some shards that can be taken now, the longest so first.
WITH RECURSIVE s (shard) AS (
    -- Shards that have any.
    SELECT k.shard
    FROM unnest($2::integer[]) AS k (shard)
    CROSS JOIN LATERAL (SELECT FROM timers t WHERE t.shard = k.shard AND t.ready_at <= $1 ORDER BY t.ready_at LIMIT 1) t
), t (shard, tenant) AS (
    -- A walk from tenant to tenant over the index, in each shard: its cost is the number of tenants, not of timers.
    SELECT s.shard, (SELECT t.tenant FROM timers t WHERE t.shard + 0 = s.shard ORDER BY t.tenant COLLATE "POSIX" LIMIT 1) FROM s
    UNION ALL
    SELECT t.shard, (
        SELECT n.tenant FROM timers n WHERE n.shard + 0 = t.shard AND n.tenant COLLATE "POSIX" > t.tenant ORDER BY n.tenant COLLATE "POSIX" LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
), due (tenant, since) AS (
    SELECT t.tenant, first.ready_at
    FROM t
    CROSS JOIN LATERAL (
        SELECT i.ready_at
        FROM timers i
        WHERE i.shard + 0 = t.shard AND i.tenant COLLATE "POSIX" = t.tenant AND i.ready_at <= $1
        ORDER BY i.ready_at
        LIMIT 1
    ) first
    UNION ALL
    -- Held by an owner that was deposed since.
    SELECT h.tenant, h.due_at
    FROM unnest($2::integer[]) AS k (shard)
    CROSS JOIN LATERAL (SELECT * FROM shard_leases l WHERE l.pool = 'timer' AND l.shard = k.shard OFFSET 0) l
    CROSS JOIN LATERAL (SELECT * FROM timers h WHERE - h.shard = - k.shard AND h.held_until IS NOT NULL AND h.hold_epoch < l.epoch OFFSET 0) h
    WHERE h.ready_at > $1 AND h.due_at <= $1
)
SELECT d.tenant
FROM due d
GROUP BY d.tenant
ORDER BY min(d.since), d.tenant
LIMIT $3

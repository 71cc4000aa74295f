-- A pool's leases.
SELECT
    l.pool, l.shard, l.owner, l.epoch, l.expires_at, l.serving, l.address
FROM shard_leases l
WHERE l.pool = $1
ORDER BY l.shard

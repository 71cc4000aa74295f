-- Leases to renew: fences are not waited for.
SELECT
    l.pool, l.shard, l.owner, l.epoch, l.expires_at, l.serving, l.address
FROM unnest($2::integer[]) AS k (shard)
-- The caller sorts the shards, and each row is locked as its shard comes: in one order in every transaction (R7).
CROSS JOIN LATERAL (SELECT * FROM shard_leases l WHERE l.pool = $1 AND l.shard = k.shard FOR NO KEY UPDATE) l

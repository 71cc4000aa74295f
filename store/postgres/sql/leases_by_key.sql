-- Leases of shards by key.
SELECT
    l.pool, l.shard, l.owner, l.epoch, l.expires_at, l.serving, l.address
FROM unnest($1::text[], $2::integer[]) AS k (pool, shard)
CROSS JOIN LATERAL (SELECT * FROM shard_leases l WHERE l.pool = k.pool AND l.shard = k.shard OFFSET 0) l

-- The walk over all leases of shards: their keys, by primary key.
SELECT '', l.pool, '', l.shard::bigint, 0::bigint, false
FROM shard_leases l
WHERE (l.pool, l.shard) > ($1::text, $2::bigint)
ORDER BY l.pool, l.shard
LIMIT $3::bigint

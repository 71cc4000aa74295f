-- Leases of shards that never had one. One that is there already is a violation of the primary key.
INSERT INTO shard_leases (pool, shard, owner, epoch, expires_at, serving, address)
SELECT n.pool, n.shard, n.owner, n.epoch, n.expires_at, n.serving, n.address
FROM unnest($1::text[], $2::integer[], $3::text[], $4::bigint[], $5::timestamptz[], $6::boolean[], $7::text[])
    AS n (pool, shard, owner, epoch, expires_at, serving, address)

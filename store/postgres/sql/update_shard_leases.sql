-- Leases this transaction has locked, whole.
UPDATE shard_leases l SET owner = n.owner, epoch = n.epoch, expires_at = n.expires_at, serving = n.serving, address = n.address
FROM unnest($1::text[], $2::integer[], $3::text[], $4::bigint[], $5::timestamptz[], $6::boolean[], $7::text[])
    AS n (pool, shard, owner, epoch, expires_at, serving, address)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE l.pool = ANY (ARRAY[n.pool]) AND l.shard = n.shard

-- Pods, whole, over what stands under their keys.
INSERT INTO members (pool, incarnation, address, started_at, draining, expires_at)
SELECT n.pool, n.incarnation, n.address, n.started_at, n.draining, n.expires_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::boolean[], $6::timestamptz[])
    AS n (pool, incarnation, address, started_at, draining, expires_at)
ON CONFLICT (pool, incarnation) DO UPDATE SET
    address = excluded.address, started_at = excluded.started_at, draining = excluded.draining, expires_at = excluded.expires_at

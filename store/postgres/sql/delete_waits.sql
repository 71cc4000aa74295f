-- Waits that are closed, each only while its version is the one that was read.
DELETE FROM waits w USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (tenant, number, version)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE w.tenant COLLATE "POSIX" = ANY (ARRAY[n.tenant]) AND w.number = n.number AND w.version = n.version

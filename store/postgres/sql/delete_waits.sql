-- Waits that are closed, each only while its version is the one that was read.
DELETE FROM waits w USING unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (tenant, number, version)
WHERE w.tenant = n.tenant AND w.number = n.number AND w.version = n.version

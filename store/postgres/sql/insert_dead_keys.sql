-- Keys of what lists of dead letters show from here on. A row left over by a hand is the very row that is to be there.
INSERT INTO dead_keys (tenant, namespace, value, number)
SELECT n.tenant, n.namespace, n.value, n.number
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS n (tenant, namespace, value, number)
ON CONFLICT DO NOTHING

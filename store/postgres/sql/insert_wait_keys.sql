-- Key rows of what is new and matchable.
INSERT INTO wait_keys (
    tenant, namespace, value, type, number, open_since)
SELECT
    n.tenant, n.namespace, n.value, n.type, n.number, n.open_since
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[])
AS n (
    tenant, namespace, value, type, number, open_since)

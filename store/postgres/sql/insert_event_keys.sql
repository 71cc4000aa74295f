-- Key rows of what is new and matchable.
INSERT INTO event_keys (
    tenant, namespace, value, type, number, live_since, expires_at)
SELECT
    n.tenant, n.namespace, n.value, n.type, n.number, n.live_since, n.expires_at
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::timestamptz[])
AS n (
    tenant, namespace, value, type, number, live_since, expires_at)

-- Waits that do not decode: only what counts their failures is known, so only that is written.
UPDATE waits w SET
    version = w.version + 1,
    attempts = n.attempts, next_attempt_at = n.next_attempt_at, last_error = n.last_error, take = n.take, take_until = n.take_until,
    take_settled = n.take_settled, quarantined_at = n.quarantined_at
FROM unnest(
    $1::text[], $2::bigint[], $3::bigint[], $4::integer[], $5::timestamptz[], $6::text[], $7::bigint[], $8::timestamptz[], $9::boolean[],
    $10::timestamptz[])
AS n (
    tenant, number, version, attempts, next_attempt_at, last_error, take, take_until, take_settled, quarantined_at)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE w.tenant COLLATE "POSIX" = ANY (ARRAY[n.tenant]) AND w.number = n.number AND w.version = n.version

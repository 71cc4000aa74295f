-- Waits as they are left, each only while its version is the one that was read. Their keys and what was registered never change.
UPDATE waits w SET
    version = w.version + 1,
    attempt = n.attempt, open_since = n.open_since, held_number = n.held_number, held_source = n.held_source, held_id = n.held_id,
    claim_number = n.claim_number, parked_at = n.parked_at, attempts = n.attempts, next_attempt_at = n.next_attempt_at, last_error = n.last_error, take = n.take,
    take_until = n.take_until, take_settled = n.take_settled, quarantined_at = n.quarantined_at
FROM unnest(
    $1::text[], $2::bigint[], $3::bigint[], $4::integer[], $5::timestamptz[], $6::bigint[], $7::text[], $8::text[], $9::bigint[],
    $10::timestamptz[], $11::integer[], $12::timestamptz[], $13::text[], $14::bigint[], $15::timestamptz[], $16::boolean[], $17::timestamptz[])
AS n (
    tenant, number, version, attempt, open_since, held_number, held_source, held_id, claim_number, parked_at, attempts, next_attempt_at, last_error, take,
    take_until, take_settled, quarantined_at)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE w.tenant COLLATE "POSIX" = ANY (ARRAY[n.tenant]) AND w.number = n.number AND w.version = n.version

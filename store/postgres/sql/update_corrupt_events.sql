-- Events that do not decode: only where they stand and what counts their failures is known, so only that is written.
UPDATE events e SET
    version = e.version + 1,
    state = n.state, dead_reason = n.dead_reason, dead_detail = n.dead_detail, dead_at = n.dead_at, offer_failures = n.offer_failures, take = n.take,
    take_until = n.take_until, take_open = n.take_open, takes = n.takes
FROM unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::integer[], $8::bigint[], $9::timestamptz[],
    $10::boolean[], $11::integer[])
AS n (
    number, version, state, dead_reason, dead_detail, dead_at, offer_failures, take, take_until, take_open, takes)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE e.number = ANY (ARRAY[n.number]) AND e.version = n.version

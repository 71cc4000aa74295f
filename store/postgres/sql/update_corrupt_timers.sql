-- Of timers that do not decode, only when they come again and what counts their failures is written: the rest is left to whoever mends them.
UPDATE timers t SET
    due_at = n.due_at, attempts = n.attempts, last_error = n.last_error, parks = n.parks, token = n.token, holder = n.holder, hold_epoch = n.hold_epoch,
    held_until = n.held_until, ready_at = n.ready_at
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::integer[],
    $11::text[], $12::integer[])
AS n (tenant, workflow_id, timer_id, token, holder, hold_epoch, held_until, ready_at, due_at, attempts, last_error, parks)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE t.tenant = ANY (ARRAY[n.tenant]) AND t.workflow_id = n.workflow_id AND t.timer_id = n.timer_id

-- Rows of workflows this transaction has locked, of which only what every append moves has changed (HI-40): head, last instant, counts.
UPDATE workflows w SET
    head_seq = n.head_seq, updated_at = n.updated_at, open_effects = n.open_effects, open_waits = n.open_waits, live_timers = n.live_timers,
    registrations = n.registrations
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::integer[], $6::integer[], $7::integer[], $8::integer[])
    AS n (tenant, workflow_id, head_seq, updated_at, open_effects, open_waits, live_timers, registrations)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE w.tenant = ANY (ARRAY[n.tenant]) AND w.workflow_id = n.workflow_id

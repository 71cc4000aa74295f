-- What callers set of push registrations that this transaction has locked.
UPDATE push_registrations p SET
    gate = n.gate, takes = n.takes, settings = n.settings
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[])
AS n (
    tenant, run_id, id, gate, takes, settings)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE p.tenant = ANY (ARRAY[n.tenant]) AND p.run_id = n.run_id AND p.id = n.id

-- Of push registrations that do not decode, only their schedule and their send lease are written: the rest is left to whoever mends them.
UPDATE push_registrations p SET
    next_attempt_at = n.next_attempt_at, lease_token = n.lease_token, lease_owner = n.lease_owner, lease_request = n.lease_request,
    lease_until = n.lease_until, lease_revoked = n.lease_revoked
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[], $6::text[], $7::text[], $8::timestamptz[], $9::boolean[])
AS n (
    tenant, run_id, id, next_attempt_at, lease_token, lease_owner, lease_request, lease_until, lease_revoked)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE p.tenant = ANY (ARRAY[n.tenant]) AND p.run_id = n.run_id AND p.id = n.id

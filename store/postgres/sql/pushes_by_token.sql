-- The keys of push registrations by the token of their send lease.
SELECT p.tenant, p.run_id, p.id
FROM unnest($1::bigint[]) AS k (token)
CROSS JOIN LATERAL (SELECT * FROM push_registrations p WHERE p.lease_token = k.token AND p.lease_token <> 0 OFFSET 0) p

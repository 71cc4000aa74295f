-- The places of push registrations of a namespace that are due but for a send lease that has run out, the longest so first.
SELECT p.tenant, p.run_id, p.id, p.workflow_id, p.gate, p.next_attempt_at
FROM push_registrations p
WHERE p.namespace = $1 AND p.state = 'live' AND p.lease_until IS NOT NULL AND p.lease_until <= $3 AND p.next_attempt_at <= $2
    AND ($4 = '' OR p.tenant = $4)
ORDER BY p.lease_until
LIMIT $5

-- Pods that have left.
DELETE FROM members m USING unnest($1::text[], $2::text[]) AS n (pool, incarnation)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE m.pool = ANY (ARRAY[n.pool]) AND m.incarnation = n.incarnation

-- Keys of what lists of dead letters show no longer.
DELETE FROM dead_keys i USING unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS n (tenant, namespace, value, number)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE i.tenant = ANY (ARRAY[n.tenant]) AND i.namespace = n.namespace AND i.value = n.value AND i.number = n.number

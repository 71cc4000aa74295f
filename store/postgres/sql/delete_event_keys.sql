-- Events that are matchable no longer, or under other keys: their key rows go.
DELETE FROM event_keys i USING unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS n (tenant, namespace, value, type, number)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE i.tenant = ANY (ARRAY[n.tenant]) AND i.namespace = n.namespace AND i.value = n.value AND i.type = n.type AND i.number = n.number

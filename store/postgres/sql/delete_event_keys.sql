-- Events that are matchable no longer, or under other keys: their key rows go.
DELETE FROM event_keys i USING unnest($1::bigint[]) AS n (number)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE i.number + 0 = ANY (ARRAY[n.number]) -- as in the index event_keys_number

-- Events that are matchable no longer, or under other keys: their key rows go.
DELETE FROM event_keys i USING unnest($1::bigint[]) AS n (number)
WHERE i.number + 0 = n.number -- as in the index event_keys_number

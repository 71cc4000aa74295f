-- Events that are matchable no longer, or under other keys: their key rows go.
DELETE FROM event_keys i USING unnest($1::bigint[]) AS n (number)
WHERE i.number = n.number

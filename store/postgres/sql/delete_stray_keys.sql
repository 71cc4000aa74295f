-- Key rows of events whose keys do not decode: by what the rows of those say beside them, as in the index event_keys_since.
DELETE FROM event_keys i
USING unnest($1::bigint[]) AS n (number)
CROSS JOIN LATERAL (SELECT e.tenant, e.expires_at IS NOT NULL AS own, e.live_since FROM events e WHERE e.number = n.number OFFSET 0) e
WHERE i.tenant COLLATE "POSIX" = ANY (ARRAY[e.tenant]) AND (i.expires_at IS NOT NULL) = e.own AND i.live_since = e.live_since AND i.number = n.number

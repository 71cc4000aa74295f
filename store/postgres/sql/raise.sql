-- No number up to these is given again. A sequence does not go back, and 0 is none of its values.
SELECT setval(s.name::regclass, greatest(s.value, coalesce(pg_sequence_last_value(s.name::regclass), 0)))
FROM unnest(ARRAY['event_number', 'wait_number', 'take_token'], ARRAY[$1::bigint, $2::bigint, $3::bigint]) AS s (name, value)
WHERE s.value > 0

-- Up to where numbers were given.
SELECT
    coalesce(pg_sequence_last_value('event_number'), 0), coalesce(pg_sequence_last_value('wait_number'), 0),
    coalesce(pg_sequence_last_value('take_token'), 0)

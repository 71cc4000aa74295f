SELECT nextval('wait_number') FROM generate_series(1, $1::bigint)

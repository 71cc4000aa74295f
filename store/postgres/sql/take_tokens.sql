SELECT nextval('take_token') FROM generate_series(1, $1::bigint)

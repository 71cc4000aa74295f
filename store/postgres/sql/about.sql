-- How many rows a table has, as the last analysis or vacuum told; -1 for a table that had none.
SELECT c.reltuples::bigint FROM pg_class c WHERE c.oid = to_regclass($1::text)

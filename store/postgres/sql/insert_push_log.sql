-- Entries of attempt logs.
INSERT INTO push_log (tenant, run_id, id, incarnation, attempt_no, entry_id, at, kept, entry)
SELECT n.tenant, n.run_id, n.id, n.incarnation, n.attempt_no, n.entry_id, n.at, n.kept, n.entry
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::timestamptz[], $8::boolean[], $9::bytea[])
AS n (
    tenant, run_id, id, incarnation, attempt_no, entry_id, at, kept, entry)

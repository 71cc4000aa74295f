-- What pruned runs left.
INSERT INTO remnants (tenant, run_id, workflow_id, first_seq, last_seq)
SELECT n.tenant, n.run_id, n.workflow_id, n.first_seq, n.last_seq
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS n (tenant, run_id, workflow_id, first_seq, last_seq)

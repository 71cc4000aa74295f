-- Remnants by key.
SELECT x.tenant, x.run_id, x.workflow_id, x.first_seq, x.last_seq
FROM unnest($1::text[], $2::text[]) AS k (tenant, run_id)
CROSS JOIN LATERAL (SELECT * FROM remnants x WHERE x.tenant = k.tenant AND x.run_id = k.run_id OFFSET 0) x

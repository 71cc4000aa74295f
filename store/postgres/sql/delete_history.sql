-- Records of pruned runs.
DELETE FROM history h USING unnest($1::text[], $2::text[], $3::bigint[]) AS n (tenant, workflow_id, seq)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE h.tenant = ANY (ARRAY[n.tenant]) AND h.workflow_id = n.workflow_id AND h.seq = n.seq

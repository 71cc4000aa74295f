-- Records that pruned runs left.
SELECT k.tenant, k.workflow_id, h.seq
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS k (tenant, workflow_id, first_seq, last_seq)
CROSS JOIN LATERAL (
    SELECT h.seq FROM history h
    WHERE h.tenant = k.tenant AND h.workflow_id = k.workflow_id AND h.seq >= k.first_seq AND h.seq <= k.last_seq
    ORDER BY h.seq
    LIMIT $5::bigint
) h
LIMIT $5::bigint

-- Records are numbered 1..head, and head is what the workflow's row says.
SELECT format('%s/%s: %s records, %s..%s, head %s', tenant, workflow_id, count(h.seq), min(h.seq), max(h.seq), w.head_seq)
FROM workflows w LEFT JOIN history h USING (tenant, workflow_id)
GROUP BY tenant, workflow_id, w.head_seq
HAVING count(h.seq) <> w.head_seq OR min(h.seq) <> 1 OR max(h.seq) <> w.head_seq
UNION ALL
SELECT format('%s/%s seq %s has no workflow', h.tenant, h.workflow_id, h.seq)
FROM history h LEFT JOIN workflows w USING (tenant, workflow_id)
WHERE w.workflow_id IS NULL

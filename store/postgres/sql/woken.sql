-- Marks of workflows.
SELECT
    m.tenant, m.workflow_id, m.run_id, m.queue, m.since, m.cause, m.seq, m.notices, m.next_notice_at, m.links
FROM unnest($1::text[], $2::text[]) AS k (tenant, workflow_id)
CROSS JOIN LATERAL (SELECT * FROM woken m WHERE m.tenant = k.tenant AND m.workflow_id = k.workflow_id OFFSET 0) m

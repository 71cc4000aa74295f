-- Runs of a workflow stand one behind the other, linked both ways; a run ends with its terminal record, and the workflow names the last.
SELECT format('%s/%s', r.tenant, r.run_id)
FROM runs r
JOIN workflows w USING (tenant, workflow_id)
LEFT JOIN runs n ON n.tenant = r.tenant AND n.run_id = r.next_run
LEFT JOIN history t ON t.tenant = r.tenant AND t.workflow_id = r.workflow_id AND t.seq = r.last_seq
WHERE (r.next_run <> '' AND (n.previous_run IS DISTINCT FROM r.run_id OR n.first_seq <> r.last_seq + 1 OR t.kind <> 'run.continued'))
    OR (r.next_run = '' AND w.run_id <> r.run_id)
    OR (r.sealed_at IS NOT NULL AND (r.last_seq = 0 OR t.run_id IS DISTINCT FROM r.run_id OR t.kind IS DISTINCT FROM r.outcome))
    OR (r.next_run = '' AND r.sealed_at IS NOT NULL AND r.last_seq <> w.head_seq)
    OR EXISTS (SELECT FROM history h WHERE h.tenant = r.tenant AND h.workflow_id = r.workflow_id AND h.run_id = r.run_id
        AND (h.seq < r.first_seq OR (r.sealed_at IS NOT NULL AND h.seq > r.last_seq)))

-- I13: what fires, is cancelled or times out ends the one arming that it names, at the instant that was due; nothing ended it before. So none has two outcomes.
SELECT format('%s/%s seq %s: %s of %s', r.tenant, r.run_id, r.seq, r.kind, r.timer_id)
FROM history r LEFT JOIN soak.armings a ON a.tenant = r.tenant AND a.workflow_id = r.workflow_id AND a.run_id = r.run_id AND a.class = 'author' AND a.name = r.timer_id
    AND a.seq = (r.data::jsonb ->> 'armed_seq')::bigint
WHERE r.kind IN ('timer.fired', 'timer.cancelled')
    AND (a.ended IS DISTINCT FROM r.seq OR r.kind = 'timer.fired' AND a.fire_at <> (r.data::jsonb ->> 'fire_at')::timestamptz)
UNION ALL
SELECT format('%s/%s seq %s: %s %s', r.tenant, r.run_id, r.seq, r.kind, r.effect)
FROM history r LEFT JOIN soak.armings a ON a.tenant = r.tenant AND a.workflow_id = r.workflow_id AND a.run_id = r.run_id AND a.name = r.effect AND a.ended = r.seq
    AND a.class = CASE r.kind WHEN 'run.timed_out' THEN 'run' ELSE 'wait' END
WHERE r.kind IN ('wait.timed_out', 'run.timed_out') AND a.fire_at IS DISTINCT FROM (r.data::jsonb ->> 'deadline')::timestamptz

-- timers.md section 2: a reopening arms again what was outstanding when the run ended, at its own instants, and nothing else.
WITH timers AS (
    SELECT tenant, workflow_id, run_id, timer_id, seq, kind, batch_id, data::jsonb ->> 'fire_at' AS fire_at FROM history WHERE kind LIKE 'timer.%'
), outstanding AS (
    SELECT DISTINCT ON (r.tenant, r.run_id, r.seq, t.timer_id) r.tenant, r.run_id, r.seq, t.timer_id, t.fire_at, t.kind
    FROM history r JOIN timers t ON t.tenant = r.tenant AND t.run_id = r.run_id AND t.seq < r.seq
    WHERE r.kind = 'run.reopened' ORDER BY r.tenant, r.run_id, r.seq, t.timer_id, t.seq DESC
), fresh AS (
    SELECT r.tenant, r.run_id, r.seq, t.timer_id, t.fire_at
    FROM history r JOIN timers t ON t.tenant = r.tenant AND t.run_id = r.run_id AND t.seq > r.seq AND t.batch_id = r.batch_id AND t.kind = 'timer.started'
    WHERE r.kind = 'run.reopened'
)
SELECT format('%s/%s reopened at seq %s: %s of %s', coalesce(o.tenant, f.tenant), coalesce(o.run_id, f.run_id), coalesce(o.seq, f.seq), coalesce(o.timer_id, f.timer_id),
    coalesce(o.fire_at, f.fire_at))
FROM (SELECT * FROM outstanding WHERE kind = 'timer.started') o FULL JOIN fresh f USING (tenant, run_id, seq, timer_id, fire_at)
WHERE o.kind IS NULL OR f.seq IS NULL

-- I13: nothing fires before its instant, by the store's clock.
SELECT format('%s/%s seq %s %s %s early', tenant, run_id, seq, kind, coalesce(data::jsonb ->> 'fire_at', data::jsonb ->> 'deadline')::timestamptz - recorded_at)
FROM history
WHERE kind IN ('timer.fired', 'wait.timed_out', 'run.timed_out') AND recorded_at < coalesce(data::jsonb ->> 'fire_at', data::jsonb ->> 'deadline')::timestamptz

-- timers.md section 1: a row is a live arming, and a live arming has its row. None is left behind.
SELECT format('%s/%s %s %s of seq %s: %s', coalesce(t.tenant, a.tenant), coalesce(t.run_id, a.run_id), coalesce(t.class, a.class), coalesce(t.timer_id, a.name),
    coalesce(t.armed_seq, a.seq), CASE WHEN a.seq IS NULL THEN 'a row is left behind' ELSE 'the row is missing' END)
FROM timers t FULL JOIN (SELECT * FROM soak.armings WHERE ended IS NULL) a ON a.tenant = t.tenant AND a.workflow_id = t.workflow_id AND a.run_id = t.run_id
    AND a.class = t.class AND a.name = CASE t.class WHEN 'author' THEN t.timer_id ELSE t.effect END AND a.seq = t.armed_seq AND a.fire_at = t.fire_at
WHERE t.timer_id IS NULL OR a.seq IS NULL

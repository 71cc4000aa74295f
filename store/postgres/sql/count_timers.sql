-- A tenant's timers by class, exactly: all of them are read.
SELECT
    t.class, count(*) FILTER (WHERE t.due_at > $2), count(*) FILTER (WHERE t.due_at <= $2), count(*) FILTER (WHERE t.parks > 0),
    count(*) FILTER (WHERE t.attempts > 0), min(t.due_at) FILTER (WHERE t.due_at <= $2)
FROM timers t
WHERE t.tenant = $1
GROUP BY t.class

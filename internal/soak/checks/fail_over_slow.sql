-- shards.md section 5: what is due waits no longer than that (5 s) in which nothing was done to the timer-workers or the database. Of runs that were never leased.
SELECT format('%s/%s %s %s of seq %s, due %s, ended %s: %s', f.tenant, f.run_id, f.class, f.name, f.seq, f.due, f.ended_at, f.ended_at - f.due)
FROM soak.fired f CROSS JOIN soak.limits l
WHERE EXISTS (
    SELECT FROM (SELECT f.due AS since UNION ALL SELECT d.ended FROM soak.disturbances d WHERE d.ended > f.due) s
    WHERE s.since + l.fail_over < f.ended_at
        AND NOT EXISTS (SELECT FROM soak.disturbances d WHERE d.ended > s.since AND d.began < s.since + l.fail_over))

-- What is live, each count up to a maximum; the oldest of each among what was counted. The orders only choose the index to walk.
SELECT e.n, e.oldest, o.n, p.n, p.oldest, q.n, m.n, m.oldest, t.n, d.n, d.oldest
FROM
    -- Key rows are few per event and stand together in the order of numbers.
    (SELECT count(*) AS n, min(live_since) AS oldest FROM (SELECT DISTINCT ON (number + 0) live_since FROM event_keys ORDER BY number + 0 LIMIT $1) i) e,
    (SELECT count(*) AS n FROM (SELECT FROM waits WHERE held_number IS NULL ORDER BY tenant COLLATE "POSIX", number LIMIT $1) i) o,
    (SELECT count(*) AS n, min(parked_at) AS oldest
        FROM (SELECT parked_at FROM waits WHERE held_number IS NOT NULL AND quarantined_at IS NULL ORDER BY tenant COLLATE "POSIX", next_attempt_at LIMIT $1) i) p,
    (SELECT count(*) AS n FROM (SELECT FROM waits WHERE quarantined_at IS NOT NULL ORDER BY tenant COLLATE "POSIX", quarantined_at LIMIT $1) i) q,
    (SELECT count(*) AS n, min(since) AS oldest FROM (SELECT since FROM woken ORDER BY tenant COLLATE "POSIX", next_notice_at LIMIT $1) i) m,
    (SELECT count(*) AS n FROM (SELECT FROM timers ORDER BY shard, ready_at LIMIT $1) i) t,
    (SELECT count(*) AS n, min(i.due_at) AS oldest
        FROM (
            SELECT d.due_at
            FROM unnest($3::integer[]) AS s (shard)
            CROSS JOIN LATERAL (
                (SELECT t.due_at FROM timers t WHERE t.shard = s.shard AND t.ready_at <= $2 ORDER BY t.ready_at LIMIT $1)
                UNION ALL
                -- Due, too, and held.
                (SELECT t.due_at
                FROM (SELECT * FROM timers t WHERE - t.shard = - s.shard AND t.held_until IS NOT NULL OFFSET 0) t
                WHERE t.ready_at > $2 AND t.due_at <= $2
                LIMIT $1)
            ) d
            LIMIT $1
        ) i) d

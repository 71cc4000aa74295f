-- A tenant's dead letters by reason, as many as asked for from the lowest number on. The index tells the reasons.
SELECT i.dead_reason, count(*), max(i.number)
FROM (
    SELECT e.dead_reason, e.number
    FROM events e
    WHERE e.tenant COLLATE "POSIX" = $1 AND e.dead_at IS NOT NULL AND NOT e.purged
    ORDER BY e.number
    LIMIT $2
) i
GROUP BY i.dead_reason

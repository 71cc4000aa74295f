-- Dead letters by reason, each up to a maximum: the index alone answers.
SELECT k.dead_reason, i.n
FROM unnest($1::text[]) AS k (dead_reason)
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM (SELECT FROM events e WHERE e.dead_reason = k.dead_reason AND e.dead_at IS NOT NULL AND NOT e.purged ORDER BY e.tenant COLLATE "POSIX" LIMIT $2) e
) i
WHERE i.n > 0

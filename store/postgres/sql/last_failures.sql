-- A run's effects whose last closing is a failure and which are not open again, in the order of bytes; whether it was final stands in its data.
SELECT 1::bigint AS place, h.tenant, h.workflow_id,
    h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, NULL::bytea, h.content_type, h.source, h.operator_actor, h.operator_basis,
    h.recorded_at, h.batch_id
FROM history h
WHERE h.tenant COLLATE "POSIX" = $1 AND h.run_id = $2 AND h.effect <> '' AND h.closes AND h.kind = 'effect.failed'
    AND (
        -- An attempt opens once and closes once (G7).
        SELECT max(l.seq) FILTER (WHERE l.closes) = h.seq AND count(*) FILTER (WHERE l.closes) = count(*) FILTER (WHERE NOT l.closes)
        FROM history l
        WHERE l.tenant COLLATE "POSIX" = h.tenant AND l.run_id = h.run_id AND l.effect = h.effect AND l.effect <> '')
ORDER BY h.effect

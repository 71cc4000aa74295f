-- A run's effects that nothing closed (G3), by the effect index alone.
SELECT 1::bigint AS place, h.tenant, h.workflow_id,
    h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, NULL::bytea, h.content_type, h.source, h.operator_actor, h.operator_basis,
    h.recorded_at, h.batch_id
FROM history h
WHERE h.tenant COLLATE "POSIX" = $1 AND h.run_id = $2 AND h.effect <> '' AND NOT h.closes AND h.kind = 'effect.started'
    AND NOT EXISTS (
        SELECT FROM history c
        WHERE c.tenant COLLATE "POSIX" = h.tenant AND c.run_id = h.run_id AND c.effect = h.effect AND c.effect <> '' AND c.attempt = h.attempt AND c.closes
        OFFSET 0)
ORDER BY h.seq
LIMIT $3

-- A run's failed effects that were not done later, the last first; whether a failure was final stands in its data.
SELECT 1::bigint AS place, h.tenant, h.workflow_id,
    h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, NULL::bytea, h.content_type, h.source, h.operator_actor, h.operator_basis,
    h.recorded_at, h.batch_id
FROM history h
WHERE h.tenant COLLATE "POSIX" = $1 AND h.run_id = $2 AND h.effect <> '' AND h.closes AND h.kind = 'effect.failed'
    AND NOT EXISTS (
        SELECT FROM history d
        WHERE d.tenant COLLATE "POSIX" = h.tenant AND d.run_id = h.run_id AND d.effect = h.effect AND d.effect <> '' AND d.closes
            AND d.kind = 'effect.done' AND d.seq > h.seq
        OFFSET 0)
ORDER BY h.seq DESC

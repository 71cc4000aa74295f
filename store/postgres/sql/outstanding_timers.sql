-- A run's timers that were armed and neither fired nor cancelled since, by the index of timers alone.
SELECT 1::bigint AS place, h.tenant, h.workflow_id,
    h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, NULL::bytea, h.content_type, h.source, h.operator_actor, h.operator_basis,
    h.recorded_at, h.batch_id
FROM history h
WHERE h.tenant COLLATE "POSIX" = $1 AND h.run_id = $2 AND h.timer_id IS NOT NULL AND h.kind = 'timer.started'
    AND NOT EXISTS (
        SELECT FROM history l
        WHERE l.tenant COLLATE "POSIX" = h.tenant AND l.run_id = h.run_id AND l.timer_id = h.timer_id AND l.seq > h.seq
        OFFSET 0)
ORDER BY h.seq
LIMIT $3

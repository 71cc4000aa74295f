-- The last record about each timer; no history is read.
SELECT k.place, k.tenant, h.workflow_id,
    h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, NULL::bytea, h.content_type, h.source, h.operator_actor, h.operator_basis,
    h.recorded_at, h.batch_id
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (tenant, run_id, timer_id, place)
CROSS JOIN LATERAL (
    SELECT * FROM history h
    WHERE h.tenant COLLATE "POSIX" = k.tenant AND h.run_id = k.run_id AND h.timer_id = k.timer_id
    ORDER BY h.seq DESC
    LIMIT 1
) h

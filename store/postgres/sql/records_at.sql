-- Single records, payloads whole.
SELECT k.place, k.tenant, h.workflow_id,
    h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, h.payload, h.content_type, h.source, h.operator_actor, h.operator_basis,
    h.recorded_at, h.batch_id
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS k (tenant, workflow_id, seq, place)
CROSS JOIN LATERAL (SELECT * FROM history h WHERE h.tenant = k.tenant AND h.workflow_id = k.workflow_id AND h.seq = k.seq OFFSET 0) h

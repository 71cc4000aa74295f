-- Records. One that answers a wait copies payload and content type from the stored event, before that sheds them (I6): no payload leaves the store.
INSERT INTO history (
    tenant, workflow_id, seq, run_id, kind, v, effect, attempt, closes, data, payload, content_type, source, operator_actor, operator_basis,
    recorded_at, batch_id, timer_id)
SELECT
    n.tenant, n.workflow_id, n.seq, n.run_id, n.kind, n.v, n.effect, n.attempt, n.closes, n.data, coalesce(e.payload, n.payload),
    coalesce(e.content_type, n.content_type), n.source, n.operator_actor, n.operator_basis, n.recorded_at, n.batch_id, n.timer_id
FROM unnest(
    $1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::integer[], $9::boolean[], $10::text[], $11::bytea[],
    $12::text[], $13::text[], $14::text[], $15::text[], $16::timestamptz[], $17::text[], $18::bigint[], $19::text[])
AS n (
    tenant, workflow_id, seq, run_id, kind, v, effect, attempt, closes, data, payload, content_type, source, operator_actor, operator_basis,
    recorded_at, batch_id, payload_of, timer_id)
-- 0 is no event's number.
LEFT JOIN LATERAL (SELECT e.payload, e.content_type FROM events e WHERE e.number = n.payload_of OFFSET 0) e ON true

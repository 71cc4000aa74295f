-- News that starts the notices anew. Where a mark stands, only its age stays.
INSERT INTO woken (
    tenant, workflow_id, run_id, queue, since, cause, seq, notices, next_notice_at, links)
SELECT
    n.tenant, n.workflow_id, n.run_id, n.queue, n.since, n.cause, n.seq, n.notices, n.next_notice_at, n.links::text[]
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::bigint[], $8::integer[], $9::timestamptz[], $10::text[])
AS n (
    tenant, workflow_id, run_id, queue, since, cause, seq, notices, next_notice_at, links)
ON CONFLICT (tenant, workflow_id) DO UPDATE SET
    run_id = excluded.run_id, queue = excluded.queue, cause = excluded.cause, seq = excluded.seq, links = excluded.links, notices = excluded.notices,
    next_notice_at = excluded.next_notice_at

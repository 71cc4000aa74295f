-- Notices of marks that were handed out.
UPDATE woken m SET notices = n.notices, next_notice_at = n.next_notice_at
FROM unnest($1::text[], $2::text[], $3::integer[], $4::timestamptz[]) AS n (tenant, workflow_id, notices, next_notice_at)
-- = ANY, not =: so there is no order to join by, and the array alone can drive the plan.
WHERE m.tenant = ANY (ARRAY[n.tenant]) AND m.workflow_id = n.workflow_id

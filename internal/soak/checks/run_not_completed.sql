-- A run that an executor drives and whose events were all accepted comes to its end: no wake-up is lost for good.
SELECT format('%s/%s is %s at seq %s, lease %s/%s %s, woken %s, next notice in %s', c.tenant, c.workflow_id, w.status, w.head_seq, w.lease_owner, w.lease_epoch, w.lease_ended,
    k.notices, k.next_notice_at - rdv_now())
FROM soak.completes c LEFT JOIN workflows w USING (tenant, workflow_id) LEFT JOIN woken k USING (tenant, workflow_id)
WHERE w.status IS DISTINCT FROM 'completed'

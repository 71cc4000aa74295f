-- What a reply said was recorded, is: an arming with its instant, a cancel or the fire that was quicker, a pause, a resumption, a reopening.
SELECT format('%s/%s seq %s: %s of %s, not %s', p.tenant, p.run_id, p.seq, p.kinds, p.timer_id, h.kind)
FROM soak.recorded p LEFT JOIN runs r USING (tenant, run_id)
LEFT JOIN history h ON h.tenant = p.tenant AND h.workflow_id = r.workflow_id AND h.seq = p.seq
WHERE h.run_id IS DISTINCT FROM p.run_id OR NOT h.kind = ANY (p.kinds) OR coalesce(h.timer_id, '') <> p.timer_id
    OR p.fire_at <> (h.data::jsonb ->> 'fire_at')::timestamptz

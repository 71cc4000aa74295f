-- I1, I2: an event that a door called accepted is there.
SELECT format('%s/%s/%s by the %s door', a.tenant, a.source, a.id, a.door)
FROM soak.accepted a LEFT JOIN events e USING (tenant, source, id)
WHERE e.number IS NULL

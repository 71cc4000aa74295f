-- A wait whose registration was answered is in the history, and so is the answer that a reply held.
SELECT format('%s/%s %s, answered: %s', s.tenant, s.run_id, s.effect, s.answered)
FROM soak.registered s
WHERE NOT EXISTS (SELECT FROM history h WHERE h.tenant = s.tenant AND h.run_id = s.run_id AND h.effect = s.effect AND h.kind = 'wait.registered')
    OR (s.answered AND NOT EXISTS (SELECT FROM history h WHERE h.tenant = s.tenant AND h.run_id = s.run_id AND h.effect = s.effect AND h.kind = 'wait.answered'))
